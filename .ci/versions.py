"""Checks that all places that name the version name one: `python .ci/versions.py [TAG]`.

With a tag such as v0.1.2 the changelog must say the day of the release and the site's switcher
list 0.1; without one both may still be to come.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def problems(root: Path, tag: str | None = None) -> list[str]:
    """Return what disagrees with the version of pyproject.toml, in words."""

    def found(name: str, pattern: str) -> str:
        match = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        return match[1] if match else "none"

    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = project["version"]
    minor = ".".join(version.split(".")[:2])
    day = found("CHANGELOG.md", r"^## [\d.]+ \(([^)]*)\)")
    released = re.fullmatch(r"\d{4}-\d\d-\d\d", day) is not None
    sites = re.findall(r'"([\d.]+)"', found("docs/conf.py", r"^site_releases = \[(.*)\]"))
    said = {
        "CITATION.cff: version": (found("CITATION.cff", r"^version: (.*)"), version),
        "CHANGELOG.md: newest heading": (found("CHANGELOG.md", r"^## (\S+)"), version),
        "conda/recipe.yaml: version": (found("conda/recipe.yaml", r'^  version: "(.*)"'), version),
    }
    if released or tag:
        dated = found("CITATION.cff", r"^date-released: (.*)")
        said["CITATION.cff: date-released"] = (dated, day)
        said["docs/conf.py: newest of site_releases"] = (sites[0] if sites else "none", minor)
    if tag:
        said["tag"] = (tag, f"v{version}")
    wrong = [f"{place} is {a}, not {b}" for place, (a, b) in said.items() if a != b]
    if tag and not released:
        wrong.append(f"CHANGELOG.md: {version} is ({day}), not the day of the release")
    if sites != sorted(sites, key=lambda name: [int(n) for n in name.split(".")], reverse=True):
        wrong.append("docs/conf.py: site_releases is not newest first")
    return wrong


if __name__ == "__main__":
    sys.exit("\n".join(problems(ROOT, *sys.argv[1:2])) or None)
