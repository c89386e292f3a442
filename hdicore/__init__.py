"""Exact highest-density intervals from forests: arrays in, arrays out, numpy alone."""

from importlib.metadata import version as _version
from pathlib import Path as _Path

try:
    from hdicore._core import (
        Forest,
        LeafIndex,
        Scorer,
        available_threads,
        centred_oob_intervals,
        weighted_hdi,
    )
except ModuleNotFoundError as error:
    if error.name == "hdicore._core":
        error.add_note(
            "The compiled part of hdicore is missing. In a checkout, run 'pip install -e .' first."
        )
    raise

__all__ = [
    "Forest",
    "LeafIndex",
    "Scorer",
    "__version__",
    "available_threads",
    "centred_oob_intervals",
    "get_include",
    "weighted_hdi",
]
__version__ = _version("hdicore")


def get_include() -> str:
    """Return the folder to compile with to ``#include "hdicore/c_api.h"``.

    Returns
    -------
    str
        An absolute path.
    """
    package = _Path(__file__).resolve().parent
    installed = package / "include"
    return str(installed if installed.is_dir() else package.parent / "src_cpp" / "include")
