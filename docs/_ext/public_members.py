"""Leaves members that are scikit-learn's own out of the pages of classes."""

METADATA = ("get_metadata_routing", "set_fit_request", "set_score_request", "set_predict_request")


def _skip(_app, _what, name, obj, _skip, _options):
    module = getattr(getattr(obj, "fget", obj), "__module__", None) or ""  # fget: of a property
    return True if module.startswith("sklearn") or name in METADATA else None


def setup(app):
    """Register with Sphinx."""
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True}
