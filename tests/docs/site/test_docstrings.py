"""Public docstrings have complete sections, by numpydoc's own validation."""

import importlib
import inspect
from contextlib import suppress

import pytest

PACKAGES = [
    *("hdicore", "hdiforest", "hdiforest.serving", "hdiforest.adapters.dask"),
    *("hdiforest.calibration", "hdiforest.metrics", "hdiforest.adapters.quantile_forest"),
]
with suppress(ImportError):  # of skpro, or of what it needs
    PACKAGES.append(importlib.import_module("hdiforest.adapters.skpro").__name__)
# What is not asked of every docstring: a second paragraph, names of others, examples.
EXEMPT = {"ES01", "SA01", "EX01"}


def is_own(cls, member):
    """Whether a class of ours has it, and not scikit-learn's, nor as a field of a record."""
    owner = next(base for base in cls.__mro__ if member in vars(base))
    is_field = member in (*getattr(cls, "_fields", ()), *getattr(cls, "__dataclass_fields__", ()))
    made = getattr(getattr(cls, member), "__module__", None) or owner.__module__
    return owner.__module__.startswith(("hdicore", "hdiforest")) and not (
        is_field or made.startswith("sklearn")
    )


def public_names():
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in set(module.__all__) - {"__version__"}:
            value = getattr(module, name)
            yield f"{package}.{name}"
            if inspect.isclass(value):
                members = [member for member in dir(value) if not member.startswith("_")]
                yield from (f"{package}.{name}.{m}" for m in members if is_own(value, m))


NAMES = sorted(public_names())


@pytest.fixture(scope="module")
def validator():
    """numpydoc's validator, which takes functions of the compiled module for functions."""
    pytest.importorskip("numpydoc", reason="needs the extra [docs]")
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
    is_compiled = name.startswith("hdicore.") and not inspect.isfunction(value)
    found = validate(name, validator) if is_compiled else validate(name)
    assert [error for error in found["errors"] if error[0] not in EXEMPT] == []
