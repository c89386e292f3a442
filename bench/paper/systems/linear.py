"""Linear systems: quantile regression, and a reconstruction of IntPred from the same lines."""

from __future__ import annotations

import time
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures

from tasks import LARGE, VERY_LARGE

from .design import standardised
from .interface import Candidate, Family, Fitted, Levelled, Part, out_of_fold
from .padding import Base, Padded
from .quantile_lines import fit_lines, read_lines

_QR_LEVELS = np.array([0.3, 0.6, 0.8, 0.85, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99, 0.997])
_BASE_LEVELS = np.array([0.3, 0.6, 0.8, 0.95])  # to be padded
_HIGHEST = 0.999  # quantiles 0 and 1 have no line
# Terms of pairs of features are tried below this number of features: so says a comment in the
# paper's source.
_PAIRS_BELOW = 25
_N_WAVES = 200
_WAVE_RIDGES = (0.3, 3.0, 30.0)


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
        levels = np.minimum(levels, _HIGHEST)
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
        bands = out_of_fold(part, lambda inner, basis=basis: Band(inner, basis, _QR_LEVELS))
        fit = partial(_fit_levels, part, basis)
        found["QR"].append(Levelled({"terms": basis.terms}, part.y, _QR_LEVELS, bands, fit))
        padded = _padded(part, basis, bands[..., np.searchsorted(_QR_LEVELS, _BASE_LEVELS)])
        found["QR"] += padded
        found["IntPred"] += padded
    for ridge in _WAVE_RIDGES:
        basis = Basis("waves", ridge)
        bands = out_of_fold(part, lambda inner, basis=basis: Band(inner, basis, _BASE_LEVELS))
        found["IntPred"] += _padded(part, basis, bands)
    return found


def _terms(terms: str, seed: int) -> Any:
    if terms == "pairs":
        return PolynomialFeatures(2, include_bias=False)
    if terms == "waves":
        # Of a Gaussian kernel as wide as two rows are apart on average; scaled to unit variance.
        waves = RBFSampler(gamma="scale", n_components=_N_WAVES, random_state=seed)
        return make_pipeline(waves, FunctionTransformer(lambda Z: Z * np.sqrt(_N_WAVES)))
    return FunctionTransformer()


def _fit_levels(part: Part, basis: Basis, levels: np.ndarray) -> Fitted:
    start = time.process_time()
    band = Band(part, basis, levels)
    return Fitted(band, time.process_time() - start)


def _padded(part: Part, basis: Basis, bands: np.ndarray) -> list[Padded]:
    """Return the band of each base level, padded."""

    @cache
    def fit(level: float) -> tuple[Base, float]:
        band, seconds = _fit_levels(part, basis, np.array([level]))
        return (lambda X: band(X)[..., 0]), seconds

    return [
        Padded(
            {"terms": basis.terms, "ridge": basis.ridge, "level": level},
            part.y,
            bands[..., i],
            partial(fit, level),
        )
        for i, level in enumerate(_BASE_LEVELS.tolist())
    ]


FAMILY = Family(
    "linear",
    2,
    ("QR", "IntPred"),
    tune,
    most_splits_of={**dict.fromkeys(LARGE, 8), **dict.fromkeys(VERY_LARGE, 5)},
)
