"""Gives the functions of the compiled module the signatures of its stub, hdicore/_core.pyi."""

import ast
from functools import cache
from pathlib import Path

import hdicore


@cache
def signatures():
    """Return the signature, such as ``(X, *, n_threads=0)``, of each name of the stub.

    Names are those in `hdicore._core`: ``Forest`` for a class, ``Forest.apply`` for a method.
    """
    stub = Path(hdicore.__file__).with_name("_core.pyi").read_text(encoding="utf-8")
    return dict(_signatures(ast.parse(stub).body, ""))


def _signatures(body, prefix):
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _signatures(node.body, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            name = (prefix + node.name).removesuffix(".__init__")
            if "__" not in name:
                yield name, f"({ast.unparse(_bare(node, is_method=bool(prefix)))})"


def _bare(function, is_method):
    """Return the arguments of a function without self and without types."""
    arguments = function.args
    decorators = {node.id for node in function.decorator_list if isinstance(node, ast.Name)}
    if is_method and "staticmethod" not in decorators:
        del arguments.args[0]
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        argument.annotation = None
    return arguments


def _signature(_app, _what, name, obj, _options, _signature, _returns):
    package, _, rest = name.partition(".")
    if package == "hdicore" and not isinstance(obj, property) and rest in signatures():
        return signatures()[rest], None
    return None


def setup(app):
    """Register with Sphinx."""
    # Before numpydoc's own handler: the first answer is taken.
    app.connect("autodoc-process-signature", _signature, priority=100)
    return {"parallel_read_safe": True}
