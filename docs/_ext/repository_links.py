"""Turns a page's links to files outside docs/ into links to the repository's site."""

import re

LINK = re.compile(r"(?<!!)(\[[^\]]*\])\(\.\./([^)]+)\)")


def _rewrite(app, _name, source):
    url = app.config.repository_url
    source[0] = LINK.sub(rf"\1({url}/blob/main/\2)", source[0])


def setup(app):
    """Register with Sphinx."""
    app.add_config_value("repository_url", "", "env")
    app.connect("source-read", _rewrite)
    return {"parallel_read_safe": True}
