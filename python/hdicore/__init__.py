"""Exact highest-density intervals from forests: arrays in, arrays out, numpy alone."""

from pathlib import Path as _Path

try:
    from hdicore._core import BaseKind as BaseKind
    from hdicore._core import (
        CalibratedScorer,
        CalibrationGroups,
        CrossCalibration,
        Forest,
        LeafIndex,
        OutOfBagScorer,
        PostProcess,
        PredictiveDistribution,
        Scorer,
        available_threads,
        find_mismatch,
        instructions,
        intervals_of_outputs,
        kinds,
        moving_quantiles,
        read_calibration,
        weighted_hdi,
    )
    from hdicore._core import Kind as Kind
except ModuleNotFoundError as error:
    if error.name == "hdicore._core":
        error.add_note(
            "The compiled part of hdicore is missing. In a checkout, run 'pip install -e .' first."
        )
    raise

__all__ = [
    "CalibratedScorer",
    "CalibrationGroups",
    "CrossCalibration",
    "Forest",
    "LeafIndex",
    "OutOfBagScorer",
    "PostProcess",
    "PredictiveDistribution",
    "Scorer",
    "__version__",
    "available_threads",
    "find_mismatch",
    "get_include",
    "instructions",
    "intervals_of_outputs",
    "kinds",
    "moving_quantiles",
    "read_calibration",
    "weighted_hdi",
]


def __getattr__(name: str) -> str:
    if name == "__version__":  # asked for seldom, and its import takes as long as the backend's
        from importlib.metadata import version

        return version("hdicore")
    raise AttributeError(f"module 'hdicore' has no attribute {name!r}")


def get_include() -> str:
    """Return the folder to compile with to ``#include "hdicore/c_api.h"``.

    Returns
    -------
    str
        An absolute path.
    """
    package = _Path(__file__).resolve().parent
    installed = package / "include"
    return str(installed if installed.is_dir() else package.parents[1] / "src_cpp" / "include")
