"""The committed inputs of all fuzz targets: one text file, one input a line, bytes as hex.

    python tests/engine/fuzz/corpus.py TARGET NAME FILE    # add the bytes of a file under a name

A line is "target name bytes". Inputs that the fuzzer chose are named by a hash; an input that
somebody named says what it found.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus.txt"
Inputs = dict[str, bytes]  # by name


def read(path: Path = CORPUS) -> dict[str, Inputs]:
    """Return the inputs of each target."""
    corpus: dict[str, Inputs] = {}
    for line in path.read_text(encoding="ascii").splitlines():
        target, name, data = line.split(" ")
        corpus.setdefault(target, {})[name] = bytes.fromhex(data)
    return corpus


def write(corpus: dict[str, Inputs], path: Path = CORPUS) -> None:
    """Replace the file: sorted, so that a changed input is a changed line."""
    lines = [
        f"{target} {name} {corpus[target][name].hex()}\n"
        for target in sorted(corpus)
        for name in sorted(corpus[target])
    ]
    path.write_text("".join(lines), encoding="ascii", newline="\n")


def unpack(target: str, folder: Path) -> Path:
    """Write each input of a target to a file in an empty folder; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in read().get(target, {}).items():
        (folder / name).write_bytes(data)
    return folder


def files_of(folder: Path) -> Inputs:
    """Return the content of all files of a folder."""
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    corpus = read()
    parser.add_argument("target", choices=sorted(corpus))
    parser.add_argument("name", help="what the input found, for_example_like_this")
    parser.add_argument("file", type=Path)
    asked = parser.parse_args(arguments)
    if not asked.name.isidentifier():
        parser.error(f"the name was expected to be letters, digits and _, but is {asked.name!r}")
    corpus[asked.target][asked.name] = asked.file.read_bytes()
    write(corpus)


if __name__ == "__main__":
    main()
