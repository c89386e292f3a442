"""Turns links to files outside docs/ into links to pages made of them, or to the repository."""

import re

from benchmark_pages import PAGE_OF

LINK = re.compile(r"(?<!!)(\[[^\]]*\])\(\.\./([^)#]+)(#[^)]*)?\)")
OWN_PAGES = {"CHANGELOG.md": "changelog.md", **PAGE_OF}


def _rewrite(app, name, source):
    def relinked(found):
        text, path, anchor = found.groups(default="")
        page = OWN_PAGES.get(path)
        target = page if page else f"{app.config.repository_url}/blob/main/{path}"
        return f"{text}({target}{anchor})"

    if "/" not in name:  # pages of docs/ itself
        source[0] = LINK.sub(relinked, source[0])


def setup(app):
    """Register with Sphinx."""
    app.add_config_value("repository_url", "", "env")
    app.connect("source-read", _rewrite)
    return {"parallel_read_safe": True}
