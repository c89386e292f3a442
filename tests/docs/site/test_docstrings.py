"""Public docstrings have complete sections, by numpydoc's own validation."""

import importlib
import inspect
import re

import pytest

from ...oracle import ROOT
from .public_names import PACKAGES, exported

# What is not asked of every docstring: a second paragraph, names of others, examples.
EXEMPT = {"ES01", "SA01", "EX01"}


def is_own(cls, member):
    """Whether a class of ours has it, and not scikit-learn's, nor as a field or a constant."""
    owner = next(base for base in cls.__mro__ if member in vars(base))
    is_field = member in (*getattr(cls, "_fields", ()), *getattr(cls, "__dataclass_fields__", ()))
    made = getattr(getattr(cls, member), "__module__", None) or owner.__module__
    is_constant = isinstance(getattr(cls, member), bool | str)
    return owner.__module__.startswith(("hdicore", "hdiforest")) and not (
        is_field or is_constant or made.startswith("sklearn")
    )


def public_names():
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in exported(package):
            value = getattr(module, name)
            yield f"{package}.{name}"
            if inspect.isclass(value):
                members = [member for member in dir(value) if not member.startswith("_")]
                yield from (f"{package}.{name}.{m}" for m in members if is_own(value, m))


NAMES = sorted(public_names())


@pytest.fixture(scope="module")
def validator():
    """numpydoc's validator, which takes functions of the compiled module for functions."""
    pytest.importorskip("numpydoc", reason="needs the group docs")
    from numpydoc.docscrape import get_doc_object
    from numpydoc.validate import Validator

    class Compiled(Validator):
        def __init__(self, obj_name):
            super().__init__(get_doc_object(self._load_obj(obj_name)))
            self.raw_doc = f"\n{self.raw_doc}\n"  # as it would stand in Python

        @property
        def is_function_or_method(self):
            return callable(self.obj) and not inspect.isclass(self.obj)

        @property
        def method_returns_something(self):
            return True

    return Compiled


@pytest.mark.parametrize("name", NAMES)
def test_sections_are_complete(name, validator):
    from numpydoc.validate import validate

    value = validator._load_obj(name)
    is_python = inspect.isfunction(value) or ".".join(name.split(".")[:2]) in PACKAGES[1:]
    is_compiled = name.startswith("hdicore.") and not is_python
    found = validate(name, validator) if is_compiled else validate(name)
    assert [error for error in found["errors"] if error[0] not in EXEMPT] == []


def names_in_the_reference():
    """What the pages in docs/api list, by full names."""
    for path in (ROOT / "docs" / "api").glob("*.md"):
        text = path.read_text(encoding="utf-8")
        module = re.search(r"currentmodule:: (\S+)", text)
        for name in re.findall(r"^   (\w[\w.]*)$", text, re.M):
            yield f"{module[1]}.{name}" if module else name


def test_the_reference_lists_all_that_is_public_and_nothing_else():
    listed = [name for name in names_in_the_reference() if name.rpartition(".")[0] in PACKAGES]
    assert sorted(listed) == sorted(f"{p}.{name}" for p in PACKAGES for name in exported(p))
    others = {name.rpartition(".")[0] for name in names_in_the_reference()} - {*PACKAGES}
    assert others <= {"hdiforest.adapters.skpro"}
