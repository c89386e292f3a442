"""The compiled module has the signatures and docstrings of its stub, from which it is built."""

import ast
import inspect
import re
from pathlib import Path

from hdicore import _core


def stub_functions():
    """The classes and functions of the stub, with the objects that they describe."""
    stub = ast.parse(Path(_core.__file__).with_name("_core.pyi").read_text(encoding="utf-8"))
    for node in stub.body:
        if isinstance(node, ast.FunctionDef):
            yield node, getattr(_core, node.name)
        elif isinstance(node, ast.ClassDef) and not node.bases:
            cls = getattr(_core, node.name)
            yield node, cls
            functions = [f for f in node.body if isinstance(f, ast.FunctionDef)]
            public = [f for f in functions if not f.name.startswith("__")]
            yield from ((function, getattr(cls, function.name)) for function in public)


def without_rows(docstring):
    """A docstring without the entry of the first parameter of a query."""
    return re.sub(r"^(X|leaves) : .*\n( .*\n)+", "", docstring, flags=re.MULTILINE)


def test_docstrings_are_those_of_the_stub():
    for node, value in stub_functions():
        expected, found = ast.get_docstring(node), inspect.getdoc(value)
        if expected is None:  # a query of LeafIndex has that of Scorer, but for its rows
            expected = without_rows(inspect.getdoc(getattr(_core.Scorer, node.name)))
            assert "leaves : (n, n_trees) int\n" in found
            found = without_rows(found)
        assert found == expected, node.name
