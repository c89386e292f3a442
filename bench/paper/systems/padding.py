"""Intervals at a level for systems that have none: a base interval, padded by what it missed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hdiforest.metrics import coverage_score, mean_width_score

from .interface import Choice, Fitted

# What a system without levels gives: lower and upper ends (n, 2) for rows.
Base = Callable[[np.ndarray], np.ndarray]


class Padded:
    """A way to set up a system, and pads that make its intervals cover what is asked for.

    At level c, both ends move out by the c-quantile of how far y lies outside its base interval
    (inwards, where that is negative): the scores of conformalised quantile regression (Romano,
    Patterson, Candes, 2019), here of the training part, each row's base from rows it is not among.
    """

    def __init__(
        self,
        settings: dict[str, Any],
        y: np.ndarray,
        base: np.ndarray,
        fit_base: Callable[[], tuple[Base, float]],
    ) -> None:
        """Take base intervals (n, 2) for the part's rows."""
        self.settings = settings
        self._y, self._base, self._fit_base = y, base, fit_base
        self._scores = missed_by(base, y)

    def reach(self, target: float) -> Choice:
        """Pad to the target itself: at least so many of the training rows are covered."""
        intervals = pad(self._base, self._scores, np.array([target]))[..., 0]
        return Choice(target, coverage_score(self._y, intervals), mean_width_score(intervals))

    def fit(self, levels: np.ndarray) -> Fitted:
        """Fit the base to the whole training part."""
        model, seconds = self._fit_base()
        return Fitted(lambda X: pad(model(X), self._scores, levels), seconds)


def pad(base: np.ndarray, scores: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return (n, 2, k) intervals; where the ends would cross, their middle."""
    pads = np.quantile(scores, levels, method="inverted_cdf")
    middle = base.mean(axis=1)[:, None]
    lower = np.minimum(base[:, :1] - pads, middle)
    upper = np.maximum(base[:, 1:] + pads, middle)
    return np.stack([lower, upper], axis=1)


def padded_width(base: np.ndarray, y: np.ndarray, coverage: float) -> float:
    """Return the mean width of base intervals (n, 2) once padded to cover y so often."""
    if not np.isfinite(base).all():
        return float("inf")
    intervals = pad(base, missed_by(base, y), np.array([coverage]))
    return float((intervals[:, 1] - intervals[:, 0]).mean())


def missed_by(base: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return how far each y lies outside its interval, negative inside."""
    return np.maximum(base[:, 0] - y, y - base[:, 1])
