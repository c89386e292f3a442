"""Floors, rooms and lengths of functions are counted right, and so are modules that are entered."""

import importlib
import runpy
import sys

import pytest

from ..oracle import ROOT, scripts_of


@pytest.fixture(scope="module")
def house():
    with scripts_of(""):
        yield importlib.import_module("modules_entered")


FILES = {
    "__init__.py": '"""The face."""\n',
    "face.py": "import typing\nif typing.TYPE_CHECKING:\n    import hdiforest.upper.a\n",
    "upper/__init__.py": "",
    "upper/a.py": "from hdiforest.upper import b\n",
    "upper/b.py": "def late():\n    from hdiforest.lower.c import four\n\n    return four\n",
    "lower/__init__.py": "",
    "lower/c.py": 'def four():\n    """Say\n    more."""\n    return 4\n\n\nMADE = four()\n',
}


@pytest.fixture
def tree(tmp_path):
    """A package of a face, and two rooms of which one imports the other."""
    for name, text in FILES.items():
        path = tmp_path / "python" / "hdiforest" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_floors_rooms_and_lines(house, tree):
    figures = house.describe(tree)
    expected = {
        "files": 7,
        "modules in the root, beside __init__ and __main__": 1,
        "rooms": 4,
        "arrows between rooms": 2,
        "floors of rooms": 3,
        "floors of files": 4,
        "floors of files, without what type checkers import": 3,
        "lines of docstrings": 3,
        "lines of a function, longest": 4,
    }
    assert {name: figures[name] for name in expected} == expected


def test_a_circle_is_one_floor(house):
    graph = {"top": {"a"}, "a": {"b"}, "b": {"a", "low"}, "low": set()}
    assert house.floors(graph) == {"low": 1, "a": 2, "b": 2, "top": 3}
    assert house.circles(graph) == 2


def test_functions_that_run_are_entered_and_imports_are_not(house, tree, monkeypatch):
    package = tree / "python" / "hdiforest"
    monkeypatch.setitem(sys.modules, "hdiforest", None)  # the real one is not touched
    lower = runpy.run_path(str(package / "lower" / "c.py"))
    with house.entered_modules(package) as modules:
        runpy.run_path(str(package / "lower" / "c.py"))
    assert modules == set()
    with house.entered_modules(package) as modules:
        lower["four"]()
    assert modules == {"lower/c.py"}


def test_the_house_as_it_stands_is_described(house):
    figures = house.describe(ROOT)
    assert figures["rooms in circles"] == 0
    assert figures["files"] > 50
