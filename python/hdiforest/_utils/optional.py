"""Optional packages: imported when needed, and one sentence when they are missing."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class MissingPackageError(ImportError):
    """An optional package is not installed; the message says how to get it."""


def need(module: str, who: str = "this command", extra: str | None = "cli") -> ModuleType:
    """Import a module of an optional package.

    Parameters
    ----------
    module : str
    who : str
        What needs it.
    extra : str or None
        The extra of this package that installs it; None: the package is installed by its name.

    Raises
    ------
    MissingPackageError
        If the package is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        wanted = package if extra is None else f"'hdicore[{extra}]'"
        raise MissingPackageError(
            f"{who} needs {package}: pip install {wanted}", name=package
        ) from None


class OptionalModule:
    """A module of an optional package, which `need` imports when something of it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what tools ask any object for
            raise AttributeError(name)
        return getattr(sys.modules.get(self._name) or need(self._name), name)


pa, pc = OptionalModule("pyarrow"), OptionalModule("pyarrow.compute")
