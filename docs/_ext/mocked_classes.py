"""Shows the arguments of classes that inherit from those of a package that is not installed."""

from sphinx.util.inspect import signature, stringify_signature


def _own(_app, what, _name, obj, _options, shown, annotation):
    if what != "class" or shown != "(*args, **kwargs)":  # those of the stand-in
        return None
    arguments = signature(obj.__init__, bound_method=True)
    return stringify_signature(arguments, show_annotation=False), annotation


def setup(app):
    """Register with Sphinx."""
    app.connect("autodoc-process-signature", _own)
    return {"parallel_read_safe": True}
