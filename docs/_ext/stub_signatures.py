"""Gives the functions of the compiled module the signatures of its stub, hdicore/_core.pyi."""

import ast
import inspect
from functools import cache
from pathlib import Path

import hdicore


@cache
def _functions():
    """Return the arguments, without self and types, of each function of the stub by its name.

    Names are those in `hdicore._core`: ``Forest`` for a class, ``Forest.apply`` for a method.
    """
    stub = Path(hdicore.__file__).with_name("_core.pyi").read_text(encoding="utf-8")
    return dict(_functions_in(ast.parse(stub).body, ""))


def signatures():
    """Return signatures, such as ``(X, *, n_threads=0)``, by name."""
    return {name: f"({ast.unparse(arguments)})" for name, arguments in _functions().items()}


def parameters():
    """Return the names of parameters, in their order, by name."""
    return {
        name: tuple(a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))
        for name, arguments in _functions().items()
    }


def _functions_in(body, prefix):
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions_in(node.body, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            name = (prefix + node.name).removesuffix(".__init__")
            if "__" not in name:
                yield name, _bare(node, is_method=bool(prefix))


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
    found = signatures().get(rest) if package == "hdicore" and callable(obj) else None
    return None if found is None else (found, None)


def setup(app):
    """Register with Sphinx."""
    # Sphinx 9.0 replaces the signature of a class only where it has found one.
    for name, signature in signatures().items():
        if "." not in name and isinstance(cls := getattr(hdicore, name, None), type):
            cls.__signature__ = inspect.signature(eval(f"lambda {signature[1:-1]}: None"))
    # Before numpydoc's own handler: the first answer is taken.
    app.connect("autodoc-process-signature", _signature, priority=100)
    return {"parallel_read_safe": True}
