"""Turns links to files outside docs/ into links to the repository."""

import re

OWN_PAGES = {"CHANGELOG.md": "changelog.md"}


def _rewrite(app, name, source):
    def relinked(found):
        text, path, anchor = found.groups(default="")
        page = OWN_PAGES.get(path)
        target = (
            "../" * name.count("/") + page
            if page
            else f"{app.config.repository_url}/blob/main/{path}"
        )
        return f"{text}({target}{anchor})"

    # A page of a folder of docs/ is one step further from the root.
    up = "../" * (1 + name.count("/"))
    link = re.compile(rf"(?<!!)(\[[^\]]*\])\({re.escape(up)}(?!\.\./)([^)#]+)(#[^)]*)?\)")
    source[0] = link.sub(relinked, source[0])


def setup(app):
    """Register with Sphinx."""
    app.add_config_value("repository_url", "", "env")
    app.connect("source-read", _rewrite)
    return {"parallel_read_safe": True}
