"""The role of names in docstrings: a link where the name has a page, and else plain code."""

from docutils import nodes
from sphinx.domains.python import PyXRefRole


class NameRole(PyXRefRole):
    """A reference to a Python object that need not exist."""

    def process_link(self, env, refnode, has_explicit_title, title, target):
        """Mark the reference as optional."""
        refnode["optional"] = True
        title, target = super().process_link(env, refnode, has_explicit_title, title, target)
        return title, target.removesuffix("()")


def _as_code(_app, _env, node, content):
    if not node.get("optional"):
        return None
    content["classes"] = []  # those of a link
    return content


def setup(app):
    """Register with Sphinx."""
    role = NameRole(innernodeclass=nodes.literal)
    app.add_role_to_domain("py", "name", role)
    # Behind intersphinx, which finds names of other projects.
    app.connect("missing-reference", _as_code, priority=900)
    return {"parallel_read_safe": True}
