"""Intervals at a level for systems that have none: a base interval, padded by what it missed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .interface import LEVELS, Candidate, Fitted, Model

# What a system without levels gives: lower and upper ends (n, 2).
Base = Callable[[np.ndarray], np.ndarray]


def padded_candidate(
    settings: dict[str, Any], base: np.ndarray, y: np.ndarray, fit: Callable[[], tuple[Base, float]]
) -> Candidate:
    """Make a candidate of base intervals for the training rows, found without these rows.

    At level c, both ends move out by the c-quantile of how far y lies outside its base interval
    (inwards, where that is negative): the scores of conformalised quantile regression (Romano,
    Patterson, Candes, 2019), here of the training part.
    """
    scores = _missed_by(base, y)

    def fitted() -> Fitted:
        model, seconds = fit()
        return Fitted(padded(model, scores), seconds)

    return Candidate(settings, LEVELS, pad(base, scores, LEVELS), fitted)


def padded(base: Base, scores: np.ndarray) -> Model:
    """Return the model that pads the base's intervals for the level that is asked for."""
    return lambda X, levels: pad(base(X), scores, levels)


def pad(base: np.ndarray, scores: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return (n, 2, k) intervals; where the ends would cross, their middle."""
    pads = np.quantile(scores, levels, method="inverted_cdf")
    middle = base.mean(axis=1)[:, None]
    lower = np.minimum(base[:, :1] - pads, middle)
    upper = np.maximum(base[:, 1:] + pads, middle)
    return np.stack([lower, upper], axis=1)


def padded_width(base: np.ndarray, y: np.ndarray, coverage: float) -> float:
    """Return the mean width of the base's intervals (n, 2) once padded to cover y so often."""
    ends = pad(base, _missed_by(base, y), np.array([coverage]))
    return float((ends[:, 1] - ends[:, 0]).mean())


def _missed_by(base: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.maximum(base[:, 0] - y, y - base[:, 1])
