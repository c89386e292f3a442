"""Count the engine's instructions, stage by stage, and compare two commits by them.

    python bench/instructions/count.py [--machine aarch64] [-o FILE]
    python bench/instructions/count.py --compare REV_A [REV_B] [--tolerance PERCENT] [-o FILE]

The driver beside this file runs one stage of the engine on one fixed case under callgrind, or that
of another machine under qemu, and only this stage is counted. A comparison builds the engine of
each commit with the driver of the same commit; `WORKTREE`, the default of REV_B, means the files as
they stand. It exits with 1 if any count rose by more than the tolerance, and with 2 if nothing
could be counted.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STAGES = ("lay_out", "route", "build", "mean", "hdi", "hdi5", "quantiles", "leaves_hdi")
LEAF_SIZES = (1, 5, 50)
SAME_WITH_ALL = ("lay_out", "route", "build")  # stages that merge nothing
FLAGS = ("-std=c++20", "-O3")
WORKTREE = "WORKTREE"
PLUGIN = "counter.so"
# A finished run, and the match of its number of instructions.
Counted = tuple[subprocess.CompletedProcess[str], re.Match[str] | None]


class CannotCountError(Exception):
    """Says in one sentence why nothing could be counted."""


@dataclass(frozen=True)
class Count:
    """Instructions of one stage on one case."""

    stage: str
    leaf_size: int
    instruction_set: str
    instructions: int
    n: int  # units that went through
    unit: str
    checksum: str  # of the results

    @property
    def per_unit(self) -> float:
        """Instructions for each unit."""
        return self.instructions / self.n


def run(*command: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, command)], capture_output=True, text=True, **options)


def needed_tool(name: str, found: str | None) -> str:
    if found is None or shutil.which(found) is None:
        raise CannotCountError(f"{name} was not found.")
    return found


def compiler() -> str:
    return needed_tool("A C++ compiler (c++ or $CXX)", os.environ.get("CXX") or shutil.which("c++"))


def program_of(name: str) -> str:
    return needed_tool(name, shutil.which(name))


def in_parallel(work: Callable, items: Sequence) -> list:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, items))


def under_callgrind(program: Path, *arguments: str, **options: object) -> Counted:
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "profile"
        done = run(
            program_of("valgrind"),
            "--quiet",
            "--tool=callgrind",
            "--toggle-collect=counted_work",
            f"--callgrind-out-file={profile}",
            program,
            *arguments,
            **options,
        )
        text = profile.read_text() if profile.exists() else ""
    return done, re.search(r"^totals: (\d+)$", text, re.MULTILINE)


def under_qemu(program: Path, *arguments: str, **options: object) -> Counted:
    """Count by the plugin beside the program."""
    objdump = program_of("aarch64-linux-gnu-objdump")
    listing = run(objdump, "--disassemble=counted_work", program).stdout
    addresses = re.search(
        r"^0*(\w+) <counted_work>:$.*?^ *(\w+):[^\n]*\tret$", listing, re.MULTILINE | re.DOTALL
    )
    if addresses is None:
        raise CannotCountError("objdump saw no counted_work.")
    start, stop = addresses.groups()
    plugin = f"{program.parent / PLUGIN},start={start},stop={stop}"
    done = run(program_of("qemu-aarch64"), "-plugin", plugin, program, *arguments, **options)
    return done, re.search(r"^instructions: (\d+)$", done.stderr, re.MULTILINE)


def build_plugin(folder: Path) -> None:
    flags = ("-shared", "-fPIC", "-O2")
    done = run(program_of("cc"), *flags, HERE / "qemu_counter.c", "-o", folder / PLUGIN)
    if done.returncode:
        raise CannotCountError(f"qemu's plugin does not build: {done.stderr.strip()}")


@dataclass(frozen=True)
class Machine:
    """How the driver is built and counted."""

    compiler: Callable[[], str]
    link_flags: tuple[str, ...]
    runner: str  # the program that counts
    count: Callable[..., Counted]  # takes the driver and its arguments
    instruction_sets: tuple[str, ...]
    prepare: Callable[[Path], None] = lambda _folder: None  # builds what `count` needs beside it


MACHINES = {
    # valgrind runs no wider set.
    "native": Machine(compiler, (), "valgrind", under_callgrind, ("portable", "avx2")),
    "aarch64": Machine(
        lambda: program_of("aarch64-linux-gnu-g++"),
        ("-static",),
        "qemu-aarch64",
        under_qemu,
        ("portable",),
        build_plugin,
    ),
}
NATIVE = MACHINES["native"]


def build(
    tree: Path,
    folder: Path,
    flags: Sequence[str] = FLAGS,
    name: str = WORKTREE,
    machine: Machine = NATIVE,
) -> Path:
    """Compile the engine of `tree` and its driver into a program in `folder`."""
    cxx = machine.compiler()
    machine.prepare(folder)
    sources = [
        *sorted((tree / "src_cpp").rglob("*.cpp")),
        tree / HERE.relative_to(ROOT) / "driver.cpp",
    ]
    objects = [folder / f"{number}.o" for number in range(len(sources))]
    includes = [f"-I{tree}/src_cpp", f"-I{tree}/src_cpp/include"]
    program = folder / "driver"

    def compile_one(source: Path, to: Path) -> subprocess.CompletedProcess[str]:
        return run(cxx, *flags, *includes, "-c", source, "-o", to)

    steps = in_parallel(lambda pair: compile_one(*pair), [*zip(sources, objects, strict=True)])
    if not any(step.returncode for step in steps):
        steps = [run(cxx, "-pthread", *machine.link_flags, *objects, "-o", program)]
    for step in steps:
        if step.returncode:
            lines = step.stderr.splitlines() or [f"{cxx} failed without a message"]
            first = next((line for line in lines if "error" in line), lines[0])
            raise CannotCountError(f"The driver does not build with the engine of {name}: {first}")
    return program


def count(
    program: Path,
    stage: str,
    leaf_size: int,
    instruction_set: str = "portable",
    machine: Machine = NATIVE,
) -> Count:
    """Run one stage of the built driver, and count its instructions."""
    done, found = machine.count(
        program,
        stage,
        str(leaf_size),
        # Else the first call of a library's function would count the search for it too.
        env=os.environ | {"LD_BIND_NOW": "1", "HDICORE_INSTRUCTIONS": instruction_set},
    )
    if done.returncode:
        last = (done.stderr.splitlines() or ["no message"])[-1]
        raise CannotCountError(f"Stage {stage}, leaf size {leaf_size}, failed: {last}")
    if found is None or int(found[1]) == 0:
        raise CannotCountError(f"{machine.runner} saw no counted_work in stage {stage}.")
    return Count(stage, leaf_size, instruction_set, int(found[1]), **json.loads(done.stdout))


def cases_of(
    stages: Sequence[str], leaf_sizes: Sequence[int], instruction_sets: Sequence[str]
) -> list[tuple[str, int, str]]:
    """Stage, leaf size and instruction set of each count."""
    return [
        (stage, leaf_size, instruction_set)
        for stage in stages
        for instruction_set in instruction_sets[: 1 if stage in SAME_WITH_ALL else None]
        for leaf_size in leaf_sizes
    ]


def count_all(
    tree: Path,
    cases: Sequence[tuple[str, int, str]],
    name: str = WORKTREE,
    machine: Machine = NATIVE,
) -> list[Count]:
    program_of(machine.runner)  # known to be missing before anything is compiled
    with tempfile.TemporaryDirectory() as folder:
        program = build(tree, Path(folder), name=name, machine=machine)
        return in_parallel(lambda case: count(program, *case, machine=machine), cases)


def git(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run(needed_tool("git", shutil.which("git")), "-C", ROOT, *arguments)


def commit_of(revision: str) -> str:
    """Hash of the commit that `revision` names; `WORKTREE` stays itself."""
    if revision == WORKTREE:
        return WORKTREE
    done = git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if done.returncode:
        raise CannotCountError(f"{revision} names no commit of the repository at {ROOT}.")
    return done.stdout.strip()


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Folder with the files of a commit, for as long as the context lasts."""
    if commit == WORKTREE:
        yield ROOT
        return
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        done = git("worktree", "add", "--detach", tree, commit)
        try:
            if done.returncode:
                reason = (done.stderr.splitlines() or ["no message"])[-1]
                raise CannotCountError(f"{commit} could not be checked out: {reason}")
            yield tree
        finally:
            git("worktree", "remove", "--force", tree)


def report(machine: Machine) -> dict[str, object]:
    """Name what the counts depend on beside the engine."""
    return {
        "compiler": run(machine.compiler(), "--version").stdout.splitlines()[0],
        machine.runner: run(program_of(machine.runner), "--version").stdout.splitlines()[0],
        "flags": FLAGS,
    }


def table_of(counts: list[Count], leaf_sizes: Sequence[int]) -> Table:
    table = Table("stage", "set", "instructions for each", title="by least rows to a leaf")
    for leaf_size in leaf_sizes:
        table.add_column(str(leaf_size), justify="right")
    for row in dict.fromkeys((found.stage, found.instruction_set) for found in counts):
        of_stage = [found for found in counts if (found.stage, found.instruction_set) == row]
        table.add_row(*row, of_stage[0].unit, *(f"{found.per_unit:,.1f}" for found in of_stage))
    return table


def compared(names: Sequence[str], pairs: list[tuple[Count, Count]], tolerance: float) -> Table:
    table = Table("stage", "leaf", "set", "for each", title="instructions")
    for name in (*names, "ratio"):
        table.add_column(name, justify="right")
    table.add_column("results")
    for before, after in pairs:
        ratio = f"{after.per_unit / before.per_unit:.4f}"
        table.add_row(
            before.stage,
            str(before.leaf_size),
            before.instruction_set,
            before.unit,
            f"{before.per_unit:,.1f}",
            f"{after.per_unit:,.1f}",
            f"[bold red]{ratio}[/]" if rose(before, after, tolerance) else ratio,
            "same" if after.checksum == before.checksum else "[bold]changed[/]",
        )
    return table


def rose(before: Count, after: Count, tolerance: float) -> bool:
    return after.instructions > before.instructions * (1 + tolerance / 100)


def write(path: Path | None, content: dict[str, object]) -> None:
    if path is None:
        return
    try:
        path.write_text(json.dumps(content, indent=2) + "\n")
    except OSError as error:
        raise CannotCountError(f"{path} could not be written: {error.strerror}.") from error


def compare(
    options: argparse.Namespace, cases: Sequence[tuple[str, int, str]], machine: Machine
) -> int:
    names = [*options.compare, WORKTREE][:2]
    commits = [commit_of(name) for name in names]
    both = []
    for name, commit in zip(names, commits, strict=True):
        with checked_out(commit) as tree:
            both.append(count_all(tree, cases, name, machine))
    pairs = list(zip(*both, strict=True))
    Console().print(compared(names, pairs, options.tolerance))
    counts = [list(map(asdict, found)) for found in both]
    write(options.output, report(machine) | {"commits": commits, "counts": counts})

    changed = sum(before.checksum != after.checksum for before, after in pairs)
    if changed:
        print(f"The results of {changed} of {len(pairs)} counts changed.")
    n_risen = sum(rose(*pair, options.tolerance) for pair in pairs)
    print(f"{n_risen} of {len(pairs)} counts rose by more than {options.tolerance:g} %.")
    return int(n_risen > 0)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--compare", nargs="+", metavar="REV", help=f"one commit or two; the second: {WORKTREE}"
    )
    parser.add_argument("--tolerance", type=float, default=2, help="rise to accept, in percent")
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=STAGES)
    parser.add_argument("--leaf-sizes", nargs="+", type=int, default=LEAF_SIZES)
    parser.add_argument("--machine", choices=MACHINES, default="native")
    parser.add_argument("--instructions", nargs="+", metavar="SET")
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    options = parser.parse_args(arguments)
    if options.compare and len(options.compare) > 2:
        parser.error("--compare takes one commit or two")
    machine = MACHINES[options.machine]
    instruction_sets = options.instructions or machine.instruction_sets
    cases = cases_of(options.stages, options.leaf_sizes, instruction_sets)
    try:
        if options.compare:
            return compare(options, cases, machine)
        counts = count_all(ROOT, cases, machine=machine)
        Console().print(table_of(counts, options.leaf_sizes))
        write(options.output, report(machine) | {"counts": list(map(asdict, counts))})
    except CannotCountError as error:
        print(f"count.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
