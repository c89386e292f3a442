"""A calibration as arrays and facts that JSON can hold, for a model file, and back."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdiforest._utils.typing import Array
from hdiforest.calibration.audit import Audit
from hdiforest.calibration.choice import Choice
from hdiforest.calibration.finish import Finish, Lattice
from hdiforest.calibration.record import Calibration, Level

_COLUMNS = ("coverage", "level", "pad", "mean_width", "interval_score", "realised")  # of Choice
N_AUDIT = 7  # coverage, standard error, mean width, three thirds, worst of five
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
        coverage, level, pad, mean_width, interval_score and realised, each (k,) float64; audit,
        (k, 7) float64: the numbers of `Audit` in their order, with NaN for None; and, if there is
        a lattice, the training targets on it, (m,) float64.
    facts : dict
        Texts, numbers, lists, True, False and None; no number in it is infinite or NaN.
    """
    choices = [level.choice for level in calibration.levels]
    arrays = {name: np.array([getattr(c, name) for c in choices]) for name in _COLUMNS}
    arrays["audit"] = np.array([audit_row(level.audit) for level in calibration.levels])
    arrays |= finish_arrays(calibration.finish)
    facts = {
        "method": calibration.method,
        "confidence": calibration.confidence,
        "weighted": calibration.weighted,
        "n": calibration.n,
        "families": [choice.family for choice in choices],
        "kinds": [choice.kind for choice in choices],
        **finish_facts(calibration.finish),
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
        Level(
            Choice(
                facts["families"][i],
                facts["kinds"][i],
                **{name: column[i] for name, column in columns.items()},
                n=n,
            ),
            audit_of(arrays["audit"][i].tolist()),
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


def finish_facts(finish: Finish) -> dict[str, Any]:
    """Return a finish as facts."""
    return {
        "low": finish.low,
        "high": finish.high,
        "lattice": None if finish.lattice is None else list(finish.lattice),
        "clip": finish.clip,
    }


def finish_arrays(finish: Finish) -> dict[str, Array]:
    """Return the training targets that are ends, if there are some."""
    return {} if finish.targets is None else {"targets": finish.targets}


def finish_of(facts: Mapping[str, Any], targets: NDArray[Any] | None) -> Finish:
    """Return the finish of facts that have its entries, or raise ValueError."""
    given = facts["lattice"]
    if not isinstance(facts["clip"], bool):
        raise ValueError(f"clip must be true or false, got {reprlib.repr(facts['clip'])}")
    if given is not None and not (isinstance(given, list) and len(given) == 3):
        raise ValueError(f"lattice must be null or three numbers, got {reprlib.repr(given)}")
    return Finish(
        _number("low", facts["low"]),
        _number("high", facts["high"]),
        None if given is None else Lattice(*(_number("lattice", value) for value in given)),
        facts["clip"],
        # Calibrations are given to callers, so they must not depend on a file that arrays map.
        None if targets is None else np.array(targets),
    )


def audit_row(audit: Audit | None) -> list[float]:
    """Return the numbers of an audit in their order, NaN for None."""
    if audit is None:
        return [math.nan] * N_AUDIT
    coverage, standard_error, mean_width, thirds, worst = astuple(audit)
    by_width = [math.nan if third is None else third for third in thirds]
    return [coverage, standard_error, mean_width, *by_width, worst]


def audit_of(row: list[float]) -> Audit | None:
    """Return the audit that `audit_row` took apart."""
    if all(map(math.isnan, row)):
        return None
    narrow, middle, wide = (None if math.isnan(third) else third for third in row[3:6])
    return Audit(row[0], row[1], row[2], (narrow, middle, wide), row[6])


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
