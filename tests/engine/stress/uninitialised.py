"""Use every member of objects made without __init__: TypeError, and never a crash.

Classes and members are found by looking. Members of `object` itself must only not crash.
"""

from __future__ import annotations

import argparse
import copy
import inspect
import pickle
from collections.abc import Callable, Iterator

import numpy as np
from children import RIGHT, WRONG, Case, row_of_children
from outcome import Row

from hdicore import _core

# These make an object or fill it.
WITHOUT_OBJECT = {"__init__", "__new__", "__setstate__"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def run(options: argparse.Namespace) -> Iterator[Row]:
    classes = [value for value in vars(_core).values() if isinstance(value, type)]
    for cls in classes:
        if options.only in cls.__name__:
            yield row_of_children(f"{cls.__name__}.__new__({cls.__name__})", cases_of(cls))


def cases_of(cls: type) -> dict[str, Case]:
    cases: dict[str, Case] = {"copy": refusing(lambda: copy.copy(cls.__new__(cls)))}
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        cases[f"pickle, protocol {protocol}"] = refusing(
            lambda protocol=protocol: pickle.dumps(cls.__new__(cls), protocol)
        )
    rows = np.zeros((1, 1), dtype=np.int32)
    for name in dir(cls):
        found = inspect.getattr_static(cls, name)
        own = found is not inspect.getattr_static(object, name, None)
        needs_object = own and name not in WITHOUT_OBJECT and not isinstance(found, staticmethod)
        check = refusing if needs_object else surviving
        if isinstance(found, property):
            cases[name] = check(lambda name=name: getattr(cls.__new__(cls), name))
        elif callable(getattr(cls, name)):
            for given in ((), (rows,), (rows, 0.5)):
                cases[f"{name} with {len(given)} arguments"] = check(
                    lambda name=name, given=given: getattr(cls.__new__(cls), name)(*given)
                )
    return cases


def refusing(use: Callable[[], object]) -> Case:
    def case() -> str:
        try:
            use()
        except TypeError:
            return RIGHT
        return WRONG

    return case


def surviving(use: Callable[[], object]) -> Case:
    def case() -> str:
        try:
            use()
        except Exception:
            return RIGHT
        return RIGHT

    return case
