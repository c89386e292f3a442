"""Calibrations as numbers and arrays, and back."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdiforest._utils.typing import Array
from hdiforest.calibration._bases import Base
from hdiforest.calibration._postprocess import Lattice, PostProcess
from hdiforest.calibration._result import (
    CROSS_METHODS,
    Calibration,
    CrossCalibration,
    CrossCheck,
    FixedLevel,
    Level,
)

_COLUMNS = ("coverage", "level", "pad", "mean_width", "interval_score", "realised")


N_AUDIT = 7  # coverage, standard error, mean width, three thirds, worst of five


_FACTS = (
    *("method", "confidence", "weighted", "n", "families", "kinds"),
    *("low", "high", "lattice", "clip"),
)


def _fixed_to_arrays(calibration: Calibration) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return the arrays and the facts from which `from_arrays` makes an equal calibration.

    Parameters
    ----------
    calibration : Calibration
        With k levels.

    Returns
    -------
    arrays : dict
        coverage, level, pad, mean_width, interval_score and realised, each (k,) float64; audit,
        (k, 7) float64: the numbers of `CrossCheck` in their order, with NaN for None; and, if there
        is a lattice, the training targets on it, (m,) float64.
    facts : dict
        Texts, numbers, lists, True, False and None; no number in it is infinite or NaN.
    """
    levels = calibration.levels
    numbers = [
        (each.coverage, each.base.level, each.q_hat, each.mean_width, each.interval_score,
         each.realised)
        for each in levels
    ]  # fmt: skip
    columns = np.array(numbers, dtype=np.float64).T
    arrays = {name: column.copy() for name, column in zip(_COLUMNS, columns, strict=True)}
    arrays["audit"] = np.array([audit_row(level.cross_check) for level in levels])
    arrays |= finish_arrays(calibration.postprocess)
    facts = {
        "method": calibration.method,
        "confidence": calibration.confidence,
        "weighted": calibration.weighted,
        "n": calibration.n,
        "families": [level.base.family for level in levels],
        "kinds": [level.base.kind for level in levels],
        **finish_facts(calibration.postprocess),
    }
    return arrays, facts


def _fixed_from_arrays(arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> Calibration:
    """Return the calibration that `to_arrays` took apart.

    Parameters
    ----------
    arrays, facts : mappings
        As `to_arrays` returns them. Nothing is trusted.

    Raises
    ------
    ValueError
        If an entry is missing, not known, of another type or shape, or out of range.
    """
    given = {name: array for name, array in arrays.items() if name != "targets"}
    check_entries("array", given, (*_COLUMNS, "audit"))
    check_entries("fact", facts, _FACTS)
    k = len(arrays["coverage"]) if np.ndim(arrays["coverage"]) == 1 else 0
    for name, array in given.items():
        shape = (k, N_AUDIT) if name == "audit" else (k,)
        if array.dtype != np.float64 or array.shape != shape or k == 0:
            raise ValueError(
                f"{name} must be float64 with {'a row' if name == 'audit' else 'a value'} for each "
                f"of one or more coverages, got {array.dtype} of shape {array.shape}"
            )
    for name in ("families", "kinds"):
        if not (isinstance(facts[name], list) and len(facts[name]) == k):
            raise ValueError(f"{name} must be a list of {k} names, got {reprlib.repr(facts[name])}")
    if not isinstance(facts["weighted"], bool):
        raise ValueError(f"weighted must be true or false, got {reprlib.repr(facts['weighted'])}")
    n, confidence = facts["n"], facts["confidence"]
    if type(n) is not int or not 0 < n < 2**63:
        raise ValueError(f"n must be a whole number in [1, 2**63), got {reprlib.repr(n)}")
    finish = finish_of(facts, arrays.get("targets"))
    columns = {name: arrays[name].tolist() for name in _COLUMNS}
    levels = tuple(
        FixedLevel(
            columns["coverage"][i],
            columns["mean_width"][i],
            columns["realised"][i],
            audit_of(arrays["audit"][i].tolist()),
            Base(facts["families"][i], facts["kinds"][i], columns["level"][i]),
            columns["pad"][i],
            columns["interval_score"][i],
        )
        for i in range(k)
    )
    return Calibration(
        facts["method"],
        levels,
        finish,
        n,
        None if confidence is None else _number("confidence", confidence),
        facts["weighted"],
    )


def finish_facts(finish: PostProcess) -> dict[str, Any]:
    """Return a finish as facts."""
    return {
        "low": finish.low,
        "high": finish.high,
        "lattice": None if finish.lattice is None else list(finish.lattice),
        "clip": finish.clip,
    }


def finish_arrays(finish: PostProcess) -> dict[str, Array]:
    """Return the training targets that are ends, if there are some."""
    return {} if finish.targets is None else {"targets": finish.targets}


def finish_of(facts: Mapping[str, Any], targets: NDArray[Any] | None) -> PostProcess:
    """Return the finish of facts that have its entries, or raise ValueError."""
    given = facts["lattice"]
    if not isinstance(facts["clip"], bool):
        raise ValueError(f"clip must be true or false, got {reprlib.repr(facts['clip'])}")
    if given is not None and not (isinstance(given, list) and len(given) == 3):
        raise ValueError(f"lattice must be null or three numbers, got {reprlib.repr(given)}")
    return PostProcess(
        _number("low", facts["low"]),
        _number("high", facts["high"]),
        None if given is None else Lattice(*(_number("lattice", value) for value in given)),
        facts["clip"],
        # Calibrations are given to callers, so they must not depend on a file that arrays map.
        None if targets is None else np.array(targets),
    )


def audit_row(audit: CrossCheck | None) -> list[float]:
    """Return the numbers of an audit in their order, NaN for None."""
    if audit is None:
        return [math.nan] * N_AUDIT
    coverage, standard_error, mean_width, thirds, worst = astuple(audit)
    by_width = [math.nan if third is None else third for third in thirds]
    return [coverage, standard_error, mean_width, *by_width, worst]


def audit_of(row: list[float]) -> CrossCheck | None:
    """Return the audit that `audit_row` took apart."""
    if all(map(math.isnan, row)):
        return None
    narrow, middle, wide = (None if math.isnan(third) else third for third in row[3:6])
    return CrossCheck(row[0], row[1], row[2], (narrow, middle, wide), row[6])


def _number(name: str, value: Any) -> float:
    # A bool is an int, and some ints are no floats.
    if type(value) is float or (type(value) is int and abs(value) < 2**53):
        return float(value)
    raise ValueError(f"{name} must be a number, got {reprlib.repr(value)}")


def check_entries(kind: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Raise ValueError unless exactly the known entries are given."""
    for name in known:
        if name not in given:
            raise ValueError(f"the {kind} {name} of the calibration is missing")
    for name in given:
        if name not in known:
            raise ValueError(f"the calibration has an unknown {kind} {reprlib.repr(name)}")


_CROSS_ARRAYS = ("coverage", "audit", "scores")


_CROSS_FACTS = ("method", "fold_sizes", "grouped", "low", "high", "lattice", "clip")


def _cross_to_arrays(calibration: CrossCalibration) -> tuple[dict[str, Array], dict[str, Any]]:
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
        As those of `hdiforest.calibration._arrays._fixed_to_arrays`.
    """
    arrays = {
        "coverage": np.array(calibration.coverages),
        "audit": np.array([audit_row(level.cross_check) for level in calibration.levels]),
        "scores": np.concatenate(calibration.scores),
    }
    if calibration.weights is not None:
        arrays["weights"] = np.concatenate(calibration.weights)
    arrays |= finish_arrays(calibration.postprocess)
    facts = {
        "method": calibration.method,
        "fold_sizes": [len(own) for own in calibration.scores],
        "grouped": calibration.grouped,
        **finish_facts(calibration.postprocess),
    }
    return arrays, facts


def _cross_from_arrays(
    arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]
) -> CrossCalibration:
    """Return the calibration that `to_arrays` took apart.

    Raises
    ------
    ValueError
        If an entry is missing, not known, of another type or shape, or out of range.
    """
    weighted = "weights" in arrays
    targets = arrays.get("targets")
    arrays = {name: array for name, array in arrays.items() if name != "targets"}
    check_entries("array", arrays, (*_CROSS_ARRAYS, "weights") if weighted else _CROSS_ARRAYS)
    check_entries("fact", facts, _CROSS_FACTS)
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
        levels=tuple(
            Level.from_check(c, audit) for c, audit in zip(coverages, audits, strict=True)
        ),
        scores=tuple(np.split(arrays["scores"], ends)),
        postprocess=finish_of(facts, targets),
        grouped=facts["grouped"],
        method=facts["method"],
        weights=tuple(np.split(arrays["weights"], ends)) if weighted else None,
    )


def to_arrays(
    calibration: Calibration | CrossCalibration,
) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return the arrays and the facts from which `from_arrays` makes an equal calibration."""
    if isinstance(calibration, CrossCalibration):
        return _cross_to_arrays(calibration)
    return _fixed_to_arrays(calibration)


def from_arrays(
    arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]
) -> Calibration | CrossCalibration:
    """Return the calibration that `to_arrays` took apart; nothing is trusted.

    Raises
    ------
    ValueError
        If an entry is missing, not known, of another type or shape, or out of range.
    """
    if facts.get("method") in CROSS_METHODS:
        return _cross_from_arrays(arrays, facts)
    return _fixed_from_arrays(arrays, facts)
