"""Makes the faults of `mutants.toml`, one at a time, in a copy of the tree: do the tests find them?

The tests that are named for a mutant are taken to pass without it; `pytest` tells. Mutants of C++
are compiled: the first time takes minutes, each further mutant the time of its folder.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = (".*", "__pycache__", "_build", "*.egg-info", "build", "dist")
MOST_SECONDS = 900  # of tests: those that a mutant makes endless are killed, and so is it
PYTEST = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "mutants")


def pytest_configure(config):
    """As a plugin: let Hypothesis draw the same examples each time, and not shrink what fails."""
    from hypothesis import Phase, settings

    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutants", derandomize=True, phases=phases, deadline=None)
    settings.load_profile("mutants")


class Mutant(NamedTuple):
    """A fault: text of a file that is replaced, and the tests that should find it."""

    name: str
    file: str
    old: str  # there once
    new: str
    tests: list[str]
    why: str  # it is a fault

    @property
    def is_compiled(self):
        return self.file.endswith(".cpp")

    def applied_to(self, text):
        """The text with the fault; None unless the place is there once."""
        return text.replace(self.old, self.new) if text.count(self.old) == 1 else None


class Copy:
    """A copy of the tree, whose objects are those of the tree without a mutant."""

    def __init__(self, folder):
        self.folder, self.objects = folder, folder / "build"
        self.kept = folder / "build_without_mutant"
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT), dirs_exist_ok=True)
        paths = os.pathsep.join((f"{folder}/python", f"{folder}/tests"))
        self.environment = os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}

    def run(self, *arguments, seconds=None):
        """Run Python in the copy; return its exit code, None if it takes too long, and output."""
        command, fate = (sys.executable, *arguments), {"cwd": self.folder, "env": self.environment}
        merged = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        try:
            done = subprocess.run(command, **fate, **merged, timeout=seconds)
        except subprocess.TimeoutExpired:
            return None, ""
        return done.returncode, done.stdout

    def build(self):
        """Compile what has changed; return whether that went well."""
        code, output = self.run("setup.py", "-q", "build_ext", "--inplace")
        print("" if code == 0 else output, end="")
        return code == 0

    def outcome(self, mutant):
        """What becomes of a mutant, and the first test that fails."""
        path = self.folder / mutant.file
        text = mutant.applied_to(path.read_text(encoding="utf-8"))
        if text is None:
            return "does not apply", ""
        if mutant.is_compiled and not self.kept.exists():
            if not self.build():
                raise SystemExit("the tree does not compile without a mutant")
            shutil.copytree(self.objects, self.kept)
        path.write_text(text, encoding="utf-8")
        try:
            if mutant.is_compiled and not self.build():
                return "does not compile", ""
            code, output = self.run(*PYTEST, *mutant.tests, seconds=MOST_SECONDS)
        finally:
            # With its old time, and objects of that time.
            shutil.copy2(ROOT / mutant.file, path)
            if mutant.is_compiled:
                shutil.rmtree(self.objects)
                shutil.copytree(self.kept, self.objects)
        if code is None or code == 1 or code < 0:  # below 0: of a signal
            failed = (line for line in output.splitlines() if line.startswith("FAILED "))
            return "killed", next(failed, "").removeprefix("FAILED ").partition(" - ")[0]
        if code == 0:
            return "survived", ""
        print(output)
        return "tests do not run", ""


def all_mutants():
    """The mutants of the table, those that are compiled last."""
    table = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text(encoding="utf-8"))
    mutants = [Mutant(**each) for each in table["mutant"]]
    return sorted(mutants, key=lambda mutant: mutant.is_compiled)


def main():
    """Run the mutants, and return 1 unless all of them are killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", help="run this one; repeatable")
    parser.add_argument("--python", action="store_true", help="leave out mutants of C++")
    keep = "where the copy is made, and kept with its objects"
    parser.add_argument("--folder", type=Path, metavar="FOLDER", help=keep)
    options = parser.parse_args()
    mutants = [each for each in all_mutants() if not (options.python and each.is_compiled)]
    if options.only:
        mutants = [each for each in mutants if each.name in options.only]
    if not mutants:
        parser.error("there is no such mutant")
    begin, n_killed = time.perf_counter(), 0
    with tempfile.TemporaryDirectory() as temporary:
        copy = Copy((options.folder or Path(temporary)).resolve())
        for mutant in mutants:
            start = time.perf_counter()
            outcome, test = copy.outcome(mutant)
            took = time.perf_counter() - start
            print(f"{outcome:16} {mutant.name:32} {took:4.0f} s  {test}", flush=True)
            n_killed += outcome == "killed"
    minutes = (time.perf_counter() - begin) / 60
    share = n_killed / len(mutants)
    print(f"{n_killed} of {len(mutants)} killed ({100 * share:.0f} %), {minutes:.0f} minutes")
    return int(n_killed < len(mutants))


if __name__ == "__main__":
    sys.exit(main())
