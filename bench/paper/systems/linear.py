"""Linear systems: quantile regression, and a reconstruction of IntPred from the same lines."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures

from .design import standardised
from .interface import SLOW_SPLITS, Candidate, Family, Fitted, Part
from .padding import padded_candidate
from .quantile_lines import fit_lines, read_lines

_QR_LEVELS = np.array([0.6, 0.7, 0.8, 0.85, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99, 0.997])
_INTPRED_LEVELS = np.array([0.6, 0.8, 0.9, 0.95])
# Terms of pairs of features are tried below this number of features: so says a comment in the
# paper's source.
_PAIRS_BELOW = 25
_N_WAVES = 200
_WAVE_RIDGES = (0.1, 1.0, 10.0)


class Basis(NamedTuple):
    """The functions of the features that lines are fitted to."""

    terms: str  # "linear", "pairs" or "waves"
    ridge: float = 0.0


class Band:
    """A line for the lower and one for the upper quantile of each central level."""

    def __init__(self, part: Part, basis: Basis, levels: np.ndarray) -> None:
        self._prepare = make_pipeline(standardised(part), _terms(basis.terms, part.seed))
        X = self._prepare.fit_transform(part.X.astype(np.float64))
        self._centre, self._unit = part.y.mean(), part.y.std() or 1.0
        quantiles = np.concatenate([(1 - levels) / 2, (1 + levels) / 2])
        self._lines = fit_lines(X, (part.y - self._centre) / self._unit, quantiles, basis.ridge)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return (n, 2, k) intervals; lines that cross are swapped."""
        read = read_lines(self._lines, self._prepare.transform(X.astype(np.float64)))
        ends = read.reshape(len(X), 2, -1) * self._unit + self._centre
        return np.sort(ends, axis=1)


def tune(part: Part) -> dict[str, list[Candidate]]:
    """Fit the lines of every basis and level once for both systems."""
    bases = [Basis("linear")]
    if part.X.shape[1] < _PAIRS_BELOW:
        bases.append(Basis("pairs"))
    found: dict[str, list[Candidate]] = {"QR": [], "IntPred": []}
    for basis in bases:
        bands = _out_of_fold(part, basis, _QR_LEVELS)
        settings = {"terms": basis.terms}
        fit = partial(_fit_levels, part, basis)
        found["QR"].append(Candidate(settings, _QR_LEVELS, bands, fit))
        at = np.searchsorted(_QR_LEVELS, _INTPRED_LEVELS)
        found["IntPred"] += _padded(part, basis, bands[..., at])
    for ridge in _WAVE_RIDGES:
        basis = Basis("waves", ridge)
        found["IntPred"] += _padded(part, basis, _out_of_fold(part, basis, _INTPRED_LEVELS))
    return found


def _terms(terms: str, seed: int) -> Any:
    if terms == "pairs":
        return PolynomialFeatures(2, include_bias=False)
    if terms == "waves":
        # Of a Gaussian kernel as wide as two rows are apart on average; scaled to unit variance.
        waves = RBFSampler(gamma="scale", n_components=_N_WAVES, random_state=seed)
        return make_pipeline(waves, FunctionTransformer(lambda Z: Z * np.sqrt(_N_WAVES)))
    return FunctionTransformer()


def _out_of_fold(part: Part, basis: Basis, levels: np.ndarray) -> np.ndarray:
    found = np.empty((len(part.y), 2, len(levels)))
    for learned, held_out in part.folds():
        found[held_out] = Band(part.take(learned), basis, levels)(part.X[held_out])
    return found


def _fit_levels(part: Part, basis: Basis) -> Fitted:
    """Fit lines when a level is asked for; the time is that of one level."""
    start = time.perf_counter()
    Band(part, basis, np.array([0.9]))
    seconds = time.perf_counter() - start
    return Fitted(lambda X, levels: Band(part, basis, _below_one(levels))(X), seconds)


def _below_one(levels: np.ndarray) -> np.ndarray:
    """Quantiles 0 and 1 have no line."""
    return np.minimum(levels, 0.999)


def _padded(part: Part, basis: Basis, bands: np.ndarray) -> list[Candidate]:
    """IntPred's candidates: the band of each level, padded."""

    def fit(level: float) -> tuple[Callable[[np.ndarray], np.ndarray], float]:
        start = time.perf_counter()
        band = Band(part, basis, np.array([level]))
        return (lambda X: band(X)[..., 0]), time.perf_counter() - start

    return [
        padded_candidate(
            {"terms": basis.terms, "ridge": basis.ridge, "level": float(level)},
            bands[..., i],
            part.y,
            partial(fit, level),
        )
        for i, level in enumerate(_INTPRED_LEVELS)
    ]


FAMILY = Family("linear", ("QR", "IntPred"), tune, fewer_splits=SLOW_SPLITS)
