"""A calibration as arrays and facts that JSON can hold, for a model file, and back."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdiforest.calibration.audit import Audit
from hdiforest.calibration.candidates import Array
from hdiforest.calibration.choice import Choice
from hdiforest.calibration.finish import Finish, Lattice
from hdiforest.calibration.record import Calibration, Level

_COLUMNS = ("coverage", "level", "pad", "mean_width", "realised")  # of Choice
_N_AUDIT = 7  # coverage, standard error, mean width, three thirds, worst of five
_FACTS = (
    *("method", "confidence", "weighted", "n", "families", "kinds"),
    *("low", "high", "lattice", "clip"),
)


def to_arrays(calibration: Calibration) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return the arrays and the facts from which `from_arrays` makes an equal calibration.

    Parameters
    ----------
    calibration : Calibration
        With k levels.

    Returns
    -------
    arrays : dict
        coverage, level, pad, mean_width, realised, each (k,) float64, and audit, (k, 7) float64:
        the numbers of `Audit` in their order, with NaN for None.
    facts : dict
        Texts, numbers, lists, True, False and None; no number in it is infinite or NaN.
    """
    choices = [level.choice for level in calibration.levels]
    arrays = {name: np.array([getattr(c, name) for c in choices]) for name in _COLUMNS}
    arrays["audit"] = np.array([_audit_row(level.audit) for level in calibration.levels])
    finish = calibration.finish
    facts = {
        "method": calibration.method,
        "confidence": calibration.confidence,
        "weighted": calibration.weighted,
        "n": calibration.n,
        "families": [choice.family for choice in choices],
        "kinds": [choice.kind for choice in choices],
        "low": finish.low,
        "high": finish.high,
        "lattice": None if finish.lattice is None else list(finish.lattice),
        "clip": finish.clip,
    }
    return arrays, facts


def from_arrays(arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> Calibration:
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
    _check_names("array", arrays, (*_COLUMNS, "audit"))
    _check_names("fact", facts, _FACTS)
    k = len(arrays["coverage"]) if np.ndim(arrays["coverage"]) == 1 else 0
    for name, array in arrays.items():
        shape = (k, _N_AUDIT) if name == "audit" else (k,)
        if array.dtype != np.float64 or array.shape != shape or k == 0:
            raise ValueError(
                f"{name} must be float64 with {'a row' if name == 'audit' else 'a value'} for each "
                f"of one or more coverages, got {array.dtype} of shape {array.shape}"
            )
    for name in ("families", "kinds"):
        if not (isinstance(facts[name], list) and len(facts[name]) == k):
            raise ValueError(f"{name} must be a list of {k} names, got {reprlib.repr(facts[name])}")
    for name in ("weighted", "clip"):
        if not isinstance(facts[name], bool):
            raise ValueError(f"{name} must be true or false, got {reprlib.repr(facts[name])}")
    n, given, confidence = facts["n"], facts["lattice"], facts["confidence"]
    if type(n) is not int or not 0 < n < 2**63:
        raise ValueError(f"n must be a whole number in [1, 2**63), got {reprlib.repr(n)}")
    if given is not None and not (isinstance(given, list) and len(given) == 3):
        raise ValueError(f"lattice must be null or three numbers, got {reprlib.repr(given)}")
    finish = Finish(
        _number("low", facts["low"]),
        _number("high", facts["high"]),
        None if given is None else Lattice(*(_number("lattice", value) for value in given)),
        facts["clip"],
    )
    columns = {name: arrays[name].tolist() for name in _COLUMNS}
    levels = tuple(
        Level(
            Choice(
                facts["families"][i],
                facts["kinds"][i],
                **{name: column[i] for name, column in columns.items()},
                n=n,
            ),
            _audit_of(arrays["audit"][i].tolist()),
        )
        for i in range(k)
    )
    return Calibration(
        facts["method"],
        levels,
        finish,
        None if confidence is None else _number("confidence", confidence),
        facts["weighted"],
    )


def _audit_row(audit: Audit | None) -> list[float]:
    if audit is None:
        return [math.nan] * _N_AUDIT
    coverage, standard_error, mean_width, thirds, worst = astuple(audit)
    by_width = [math.nan if third is None else third for third in thirds]
    return [coverage, standard_error, mean_width, *by_width, worst]


def _audit_of(row: list[float]) -> Audit | None:
    if all(map(math.isnan, row)):
        return None
    narrow, middle, wide = (None if math.isnan(third) else third for third in row[3:6])
    return Audit(row[0], row[1], row[2], (narrow, middle, wide), row[6])


def _number(name: str, value: Any) -> float:
    # A bool is an int, and some ints are no floats.
    if type(value) is float or (type(value) is int and abs(value) < 2**53):
        return float(value)
    raise ValueError(f"{name} must be a number, got {reprlib.repr(value)}")


def _check_names(kind: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in known:
        if name not in given:
            raise ValueError(f"the {kind} {name} of the calibration is missing")
    for name in given:
        if name not in known:
            raise ValueError(f"the calibration has an unknown {kind} {reprlib.repr(name)}")
