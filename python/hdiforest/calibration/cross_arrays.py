"""A cross-conformal calibration as arrays and facts that JSON can hold, and back."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdiforest._utils.typing import Array
from hdiforest.calibration.arrays import (
    N_AUDIT,
    audit_of,
    audit_row,
    check_entries,
    finish_arrays,
    finish_facts,
    finish_of,
)
from hdiforest.calibration.cross import CrossCalibration, CrossLevel

_ARRAYS = ("coverage", "audit", "scores")
_FACTS = ("method", "fold_sizes", "grouped", "low", "high", "lattice", "clip")


def to_arrays(calibration: CrossCalibration) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return the arrays and the facts from which `from_arrays` makes an equal calibration.

    Parameters
    ----------
    calibration : CrossCalibration
        With k coverages and n rows.

    Returns
    -------
    arrays : dict
        coverage (k,), audit (k, 7) and scores (n, k), fold after fold; weights (n, k) if rows have
        any; and, if there is a lattice, the training targets on it, (m,).
    facts : dict
        As those of `hdiforest.calibration.arrays.to_arrays`.
    """
    arrays = {
        "coverage": np.array(calibration.coverages),
        "audit": np.array([audit_row(level.audit) for level in calibration.levels]),
        "scores": np.concatenate(calibration.scores),
    }
    if calibration.weights is not None:
        arrays["weights"] = np.concatenate(calibration.weights)
    arrays |= finish_arrays(calibration.finish)
    facts = {
        "method": calibration.method,
        "fold_sizes": [len(own) for own in calibration.scores],
        "grouped": calibration.grouped,
        **finish_facts(calibration.finish),
    }
    return arrays, facts


def from_arrays(arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> CrossCalibration:
    """Return the calibration that `to_arrays` took apart.

    Raises
    ------
    ValueError
        If an entry is missing, not known, of another type or shape, or out of range.
    """
    weighted = "weights" in arrays
    targets = arrays.get("targets")
    arrays = {name: array for name, array in arrays.items() if name != "targets"}
    check_entries("array", arrays, (*_ARRAYS, "weights") if weighted else _ARRAYS)
    check_entries("fact", facts, _FACTS)
    sizes = facts["fold_sizes"]
    if not (isinstance(sizes, list) and all(type(size) is int and size > 0 for size in sizes)):
        raise ValueError(f"fold_sizes must be positive numbers, got {reprlib.repr(sizes)}")
    k = len(arrays["coverage"]) if arrays["coverage"].ndim == 1 else 0
    shapes = {
        "coverage": (k,),
        "audit": (k, N_AUDIT),
        "scores": (sum(sizes), k),
        "weights": (sum(sizes), k),
    }
    for name, array in arrays.items():
        if array.dtype != np.float64 or array.shape != shapes[name] or k == 0:
            raise ValueError(
                f"{name} must be float64 of shape {shapes[name]}, got {array.dtype} of shape "
                f"{array.shape}"
            )
    if not isinstance(facts["grouped"], bool):
        raise ValueError(f"grouped must be true or false, got {reprlib.repr(facts['grouped'])}")
    coverages = arrays["coverage"].tolist()
    if not all(0 < coverage < 1 for coverage in coverages):
        raise ValueError(f"coverages must be above 0 and below 1, got {coverages}")
    audits = [audit_of(row) for row in arrays["audit"].tolist()]
    # A calibration is given to callers, so it must not depend on a file that arrays map.
    arrays = {name: np.array(array) for name, array in arrays.items()}
    ends = np.cumsum(sizes)[:-1]
    return CrossCalibration(
        levels=tuple(CrossLevel(c, audit) for c, audit in zip(coverages, audits, strict=True)),
        scores=tuple(np.split(arrays["scores"], ends)),
        finish=finish_of(facts, targets),
        grouped=facts["grouped"],
        method=facts["method"],
        weights=tuple(np.split(arrays["weights"], ends)) if weighted else None,
    )
