"""Versions of the site: where each lies, and the file that the theme's version switcher reads."""

import json
import os
from pathlib import Path
from typing import NamedTuple


class Host(NamedTuple):
    """Where a site is published."""

    start: str  # address of the folder of all versions
    development: str  # name of the development version
    version: str  # name of this version

    @property
    def address(self):
        """Address of this version's first page."""
        return f"{self.start}{self.version}/"

    @property
    def release(self):
        """What the theme compares with the newest release."""
        return "dev" if self.version == self.development else self.version

    @property
    def switcher(self):
        """The theme's option: the development version says which versions there are."""
        url = f"{self.start}{self.development}/_static/switcher.json"
        return {"json_url": url, "version_match": self.version}

    def entries(self, releases):
        """Return the switcher's list: the development version, then releases, newest first."""
        found = [{"name": "development", "version": self.development}]
        found += [{"name": release, "version": release} for release in releases]
        if releases:
            found[1] |= {"name": f"{releases[0]} (newest)", "preferred": True}
        return [entry | {"url": f"{self.start}{entry['version']}/"} for entry in found]


def host():
    """Return where the site of this build goes, None for a local build.

    Read the Docs sets READTHEDOCS_VERSION, the workflow for GitHub Pages HDICORE_DOCS_VERSION.
    """
    if version := os.environ.get("READTHEDOCS_VERSION"):
        return Host("https://hdicore.readthedocs.io/en/", "latest", version)
    if version := os.environ.get("HDICORE_DOCS_VERSION"):
        return Host("https://hdicore.github.io/hdicore/", "dev", version)
    return None


def _write(app, error):
    if error is None and app.builder.format == "html" and (found := host()):
        entries = found.entries(app.config.site_releases)
        path = Path(app.outdir) / "_static" / "switcher.json"
        path.write_text(json.dumps(entries, indent=1), encoding="utf-8")


def setup(app):
    """Register with Sphinx."""
    app.add_config_value("site_releases", [], "html")
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True}
