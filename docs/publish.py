"""Puts a built site beside those of other versions, in a folder that GitHub Pages publishes.

    python docs/publish.py docs/_build/html FOLDER VERSION

The site replaces FOLDER/VERSION. FOLDER/index.html leads to the newest release, or to `dev`
while there is none.
"""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

REDIRECT = """\
<!doctype html>
<meta charset="utf-8">
<title>hdicore</title>
<meta http-equiv="refresh" content="0; url={version}/">
<a href="{version}/">hdicore</a>
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the arguments and publish."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("built", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("version", help="`dev`, or a release such as 0.1")
    given = parser.parse_args(arguments)
    publish(given.built, given.folder, given.version)


def publish(built: Path, folder: Path, version: str) -> None:
    """Replace one version in the folder and point its first page to the newest."""
    if not (built / "index.html").exists():
        raise SystemExit(f"no built site in {built}: it has no index.html")
    target = folder / version
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(built, target, ignore=shutil.ignore_patterns(".doctrees", ".buildinfo"))
    redirect = REDIRECT.format(version=newest(folder))
    (folder / "index.html").write_text(redirect, encoding="utf-8")


def newest(folder: Path) -> str:
    """Return the newest release in the folder, or `dev`."""
    names = [path.name for path in folder.iterdir() if (path / "index.html").exists()]
    releases = [name for name in names if name.replace(".", "").isdigit()]
    return max(releases, key=lambda name: [int(n) for n in name.split(".")], default="dev")


if __name__ == "__main__":
    main()
