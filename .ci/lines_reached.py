"""Says which lines of Python and C++ the tests reach, from what coverage.py and gcov counted.

    python .ci/lines_reached.py coverage.json gcovr.json [-o FILE.md]

`nox -s coverage` builds with HDICORE_COVERAGE=1, runs the tests and calls this. Printed are the
shares by folder; the file lists the lines that nothing reached, too.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

# Lines of each file: those that can run, and those of them that did.
Lines = dict[str, tuple[set[int], set[int]]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the arguments, print the table and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python", type=Path, help="of `coverage json`")
    parser.add_argument("cpp", type=Path, help="of `gcovr --json`")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args(arguments)
    lines = python_lines(given.python) | cpp_lines(given.cpp)
    print(table(lines))
    if given.output:
        text = f"{table(lines)}\n\n{unreached(lines)}\n"
        given.output.write_text(text, encoding="utf-8")


def python_lines(path: Path) -> Lines:
    """Return the lines of a report of coverage.py."""
    files = json.loads(path.read_text(encoding="utf-8"))["files"]
    return {
        name: ({*file["executed_lines"], *file["missing_lines"]}, {*file["executed_lines"]})
        for name, file in files.items()
    }


def cpp_lines(path: Path) -> Lines:
    """Return the lines of a report of gcovr; a line of a template counts once."""
    found: Lines = {}
    for file in json.loads(path.read_text(encoding="utf-8"))["files"]:
        runnable, reached = found.setdefault(file["file"], (set(), set()))
        for line in file["lines"]:
            runnable.add(line["line_number"])
            if line["count"]:
                reached.add(line["line_number"])
    return found


def folder_of(name: str) -> str:
    """Return the room that a file lies in."""
    parts = Path(name).parts[:-1]
    return "/".join(parts[: 3 if parts[0] == "python" else 2])


def table(lines: Lines) -> str:
    """Return a table of folders: lines, and the share that is reached."""
    folders: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, (runnable, reached) in lines.items():
        for key in (folder_of(name), "C++" if name.endswith("pp") else "Python", "together"):
            folders[key][0] += len(runnable)
            folders[key][1] += len(reached)
    totals = [key for key in ("Python", "C++", "together") if key in folders]
    rows = [
        f"| {key} | {folders[key][0]:,} | {100 * folders[key][1] / max(1, folders[key][0]):.1f} % |"
        for key in [*sorted(folders.keys() - totals), *totals]
    ]
    return "\n".join(["| | lines | reached |", "|---|---:|---:|", *rows])


def unreached(lines: Lines) -> str:
    """Return the lines that nothing reached, by file, as ranges."""
    said = []
    for name, (runnable, reached) in sorted(lines.items()):
        ranges: list[list[int]] = []
        for number in sorted(runnable):
            if number in reached:
                ranges.append([])
            elif ranges and ranges[-1]:
                ranges[-1][1] = number
            else:
                ranges.append([number, number])
        found = [f"{a}-{b}" if a < b else str(a) for a, b in filter(None, ranges)]
        if found:
            said.append(f"* `{name}`: {', '.join(found)}")
    return "\n".join(said)


if __name__ == "__main__":
    main()
