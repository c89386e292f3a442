"""Optional packages: imported when needed, and one sentence when they are missing."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any


class MissingPackageError(ImportError):
    """An optional package is not installed; the message says how to get it."""


def need(module: str, who: str = "this command", extra: str | None = "cli") -> ModuleType:
    """Import a module of an optional package that `who` needs, or raise MissingPackageError.

    An extra of this package installs it; None: it is installed by its own name.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        source = package if extra is None else f"'hdicore[{extra}]'"
        message = f"{who} needs {package}: pip install {source}"
        raise MissingPackageError(message, name=package) from None


class OptionalModule:
    """A module of an optional package, which `need` imports when something of it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what tools ask any object for
            raise AttributeError(name)
        # `sys.modules` may hold what another thread is still importing; `need` waits for it.
        return getattr(need(self._name), name)


pa, pc = OptionalModule("pyarrow"), OptionalModule("pyarrow.compute")
