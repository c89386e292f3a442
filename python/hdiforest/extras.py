"""Optional packages: imported when needed, and one sentence when they are missing."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


class MissingPackageError(ImportError):
    """An optional package is not installed; the message says how to get it."""


def need(module: str) -> ModuleType:
    """Import a module of an optional package.

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
        raise MissingPackageError(
            f"this command needs {package}: pip install 'hdicore[cli]'", name=package
        ) from None
