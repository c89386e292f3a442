"""Unpack and pack the raw results and the whole data sets, which lie beside a release.

    python bench/archive.py unpack [--data FILE]     # the release's, or a file that is here
    python bench/archive.py pack FILE                # what is in this tree, for the next release

Results go where the scripts keep theirs, `bench/*/results/`, and data to `bench/data/`; git ignores
both. A file that is there is left as it is, unless `--replace` is given.
"""

from __future__ import annotations

import argparse
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

BENCH = Path(__file__).resolve().parent
ADDRESS = "https://github.com/hdicore/hdicore/releases/latest/download/bench-data.tar.xz"
PATTERNS = ("*/results/**/*.jsonl", "data/sets.zip")


def kept() -> Iterator[Path]:
    """Yield the files that an archive holds, but for those of quick runs."""
    for pattern in PATTERNS:
        yield from (path for path in sorted(BENCH.glob(pattern)) if "quick" not in path.parts)


def pack(file: Path) -> None:
    with tarfile.open(file, "w:xz", preset=9) as archive:
        for path in kept():
            archive.add(path, path.relative_to(BENCH).as_posix())
    print(f"{file}: {len(list(kept()))} files, {file.stat().st_size / 1e6:.1f} MB")


def unpack(file: Path, replace: bool) -> None:
    with tarfile.open(file) as archive:
        members = [each for each in archive if replace or not (BENCH / each.name).exists()]
        archive.extractall(BENCH, members, filter="data")
    print(f"{len(members)} files are new below {BENCH}")


def fetch(folder: Path) -> Path:
    """Download the archive of the newest release."""
    file = folder / "bench-data.tar.xz"
    urllib.request.urlretrieve(ADDRESS, file)
    return file


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("pack").add_argument("file", type=Path)
    unpacking = commands.add_parser("unpack")
    unpacking.add_argument("--data", type=Path, help="an archive that is here already")
    unpacking.add_argument("--replace", action="store_true", help="files that are there, too")
    options = parser.parse_args(arguments)
    if options.command == "pack":
        pack(options.file)
        return 0
    try:
        with tempfile.TemporaryDirectory() as folder:
            unpack(options.data or fetch(Path(folder)), options.replace)
    except (OSError, tarfile.TarError) as error:
        what = options.data or ADDRESS
        print(
            f"archive.py: {what} was not unpacked: {error}; name a file by --data", file=sys.stderr
        )
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
