"""Writes what pybind11 is told of hdicore._core, as C++: names, arguments and docstrings.

All of it stands in the stub, `python/hdicore/_core.pyi`. The header has a struct for each class of
the stub and a function template for each of its functions, which registers one of C++ under this
name, with these arguments and defaults, and with the docstring. Python reads the signature from its
first line, as it does those of its own built-in functions.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

_HEADER = """\
// {name}: names, arguments and docstrings of hdicore._core; written by stub_header.py
#pragma once

#include <pybind11/pybind11.h>

namespace hdicore::bindings::stub {{

namespace py = pybind11;
{content}
}}  // namespace hdicore::bindings::stub
"""
_FUNCTION = """
template <class Scope, class Function>
{prefix}void {name}(Scope& scope, Function function) {{
    scope.{method}({arguments});
}}
"""
_CLASS = """
struct {name} {{
static constexpr const char* name = "{name}";
static constexpr const char* doc = {doc};
{functions}}};
"""
# The entry of the first parameter of a query.
_ROWS = re.compile(r"^(?:X|leaves) : .*\n(?:    .*\n)+", re.MULTILINE)


def write(stub: Path, header: Path) -> None:
    """Write the header of a stub, unless it is there and would not change."""
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    _share_docstrings(tree)
    text = _HEADER.format(name=header.name, content="".join(_definitions(tree)))
    header.parent.mkdir(parents=True, exist_ok=True)
    if not header.exists() or header.read_text(encoding="utf-8") != text:
        header.write_text(text, encoding="utf-8")


def _share_docstrings(tree: ast.Module) -> None:
    """Give queries of LeafIndex without a docstring that of Scorer, with leaves in place of X."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {
        (cls.name, function.name): function
        for cls in classes.values()
        for function in cls.body
        if isinstance(function, ast.FunctionDef)
    }
    leaves = _ROWS.search(ast.get_docstring(functions["LeafIndex", "mean"]) or "")
    for (cls, name), function in functions.items():
        shared = functions.get(("Scorer", name))
        if cls == "LeafIndex" and shared and leaves and not ast.get_docstring(function):
            text = _ROWS.sub(lambda _: leaves[0], ast.get_docstring(shared) or "")
            function.body.insert(0, ast.Expr(ast.Constant(text)))


def _definitions(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield _function(node, is_method=False)
        elif isinstance(node, ast.ClassDef) and not node.bases:
            yield _class(node)


def _class(node: ast.ClassDef) -> str:
    functions = [function for function in node.body if isinstance(function, ast.FunctionDef)]
    own = [f for f in functions if f.name == "__init__" or not f.name.startswith("__")]
    return _CLASS.format(
        name=node.name,
        doc=_literal(_docstring(node)),
        functions="".join(_function(function, is_method=True) for function in own),
    )


def _function(node: ast.FunctionDef, *, is_method: bool) -> str:
    decorators = {decorator.id for decorator in node.decorator_list if hasattr(decorator, "id")}
    described = [f'"{node.name}"', "function"]
    if node.name == "__init__":
        described += ["py::detail::is_new_style_constructor()", *_arguments(node, skipped=1)]
        described.append(_literal(_signature(node)))
    elif "property" in decorators:
        described.append(_literal(_docstring(node)))
    else:
        skipped = int(is_method and "staticmethod" not in decorators)
        described += [*_arguments(node, skipped), _literal(_signature(node) + _docstring(node))]
    methods = {"property": "def_property_readonly", "staticmethod": "def_static"}
    return _FUNCTION.format(
        prefix="static " if is_method else "",
        name=node.name.strip("_"),
        method=next((methods[name] for name in decorators if name in methods), "def"),
        arguments=", ".join(described),
    )


def _arguments(node: ast.FunctionDef, skipped: int) -> Iterator[str]:
    arguments = node.args
    n_without = len(arguments.args) - len(arguments.defaults)
    defaults = [None] * n_without + list(arguments.defaults)
    for argument, default in list(zip(arguments.args, defaults, strict=True))[skipped:]:
        yield _argument(argument, default)
    if arguments.kwonlyargs:
        yield "py::kw_only()"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _argument(argument, default)


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    if default is None:
        return f'py::arg("{argument.arg}")'
    value = ast.literal_eval(default)
    literals = {None: "py::none()", True: "true", False: "false"}
    literal = f'"{value}"' if isinstance(value, str) else repr(value)
    if value is None or isinstance(value, bool):
        literal = literals[value]
    return f'py::arg("{argument.arg}") = {literal}'


def _signature(node: ast.FunctionDef) -> str:
    """Return what Python takes for the signature if a docstring begins with it."""
    bare = ast.parse(ast.unparse(node)).body[0]
    assert isinstance(bare, ast.FunctionDef)
    for argument in (*bare.args.args, *bare.args.kwonlyargs):
        argument.annotation = None
    return f"{node.name}({ast.unparse(bare.args)})\n--\n\n"


def _docstring(node: ast.FunctionDef | ast.ClassDef) -> str:
    text = ast.get_docstring(node)
    if text is None:
        raise ValueError(f"{node.name} has no docstring in the stub")
    return text


def _literal(text: str) -> str:
    return f'R"doc({text})doc"'
