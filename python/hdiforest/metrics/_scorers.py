"""Scorers for scikit-learn's cross-validation and searches: greater is better."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._utils.checks import alternatives, one_share, reals, shares
from hdiforest._utils.typing import Array
from hdiforest.metrics._checks import weighted_mean
from hdiforest.metrics._crps import crps_of_rows
from hdiforest.metrics._intervals import coverage_score, interval_score

_KINDS = ("hdi", "equal_tailed", "lower", "upper", "smoothed_hdi", "calibrated")


_TWO_SIDED = tuple(kind for kind in _KINDS if kind not in ("lower", "upper"))


class _Scorer(ABC):
    """A callable that scikit-learn takes for `scoring`."""

    _name: str
    _sample_weight: bool | str | None = None  # what metadata routing shall pass

    def __call__(
        self, estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Score a fitted estimator on rows X with targets y."""
        targets = reals("y", y)
        if targets.ndim != 1:
            raise ValueError(
                f"{self._name} needs one target, y of shape (n,), got shape {targets.shape}"
            )
        return self._score(estimator, X, targets, sample_weight)

    @abstractmethod
    def _score(
        self, estimator: Any, X: Any, y: Array, sample_weight: ArrayLike | None
    ) -> float: ...

    def __repr__(self) -> str:
        given = ", ".join(
            f"{name}={value!r}" for name, value in vars(self).items() if name[0] != "_"
        )
        return f"{self._name}({given})"

    def set_score_request(self, *, sample_weight: bool | str | None) -> Self:
        """Say whether metadata routing shall pass sample_weight; see scikit-learn's user guide."""
        self._sample_weight = sample_weight
        return self

    def get_metadata_routing(self) -> Any:
        """Return what this scorer asks of metadata routing."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self._sample_weight)
        return request


class _IntervalScorer(_Scorer):
    _name = "interval_scorer"

    def __init__(self, coverage: float, kind: str | None) -> None:
        self.coverage = coverage
        self.kind = kind

    def _score(self, estimator: Any, X: Any, y: Array, sample_weight: ArrayLike | None) -> float:
        ends = _intervals(estimator, X, self.coverage, self.kind)
        return -float(interval_score(y, ends, self.coverage, sample_weight=sample_weight))


class _CoverageScorer(_Scorer):
    _name = "coverage_scorer"

    def __init__(self, coverage: float, kind: str | None) -> None:
        self.coverage = coverage
        self.kind = kind

    def _score(self, estimator: Any, X: Any, y: Array, sample_weight: ArrayLike | None) -> float:
        ends = _intervals(estimator, X, self.coverage, self.kind)
        realised = float(coverage_score(y, ends, sample_weight=sample_weight))
        return -abs(realised - self.coverage)


class _PinballScorer(_Scorer):
    _name = "pinball_scorer"

    def __init__(self, quantiles: float | tuple[float, ...]) -> None:
        self.quantiles = quantiles

    def _score(self, estimator: Any, X: Any, y: Array, sample_weight: ArrayLike | None) -> float:
        from sklearn.metrics import mean_pinball_loss

        from hdiforest._utils.meta_estimators import model_and_rows

        levels = np.atleast_1d(self.quantiles)
        model, rows = model_and_rows(estimator, X, "predict_quantiles")
        found = model.predict_quantiles(rows, levels.tolist(), output="numpy")
        losses = [
            mean_pinball_loss(y, quantile, sample_weight=sample_weight, alpha=level)
            for quantile, level in zip(np.reshape(found, (len(y), -1)).T, levels, strict=True)
        ]
        return -float(np.mean(losses))


class _CRPSScorer(_Scorer):
    _name = "crps_scorer"

    def _score(self, estimator: Any, X: Any, y: Array, sample_weight: ArrayLike | None) -> float:
        from hdiforest._utils.meta_estimators import model_and_rows

        model, rows = model_and_rows(estimator, X, "_query")
        scores = model._query(rows, _crps, per_row=y)
        return -float(weighted_mean(scores, sample_weight))


def interval_scorer(coverage: float = 0.9, kind: str | None = None) -> _Scorer:
    """Return a scorer of intervals: minus the mean interval score.

    Parameters
    ----------
    coverage : float, default=0.9
        Above 0 and below 1.
    kind : {"calibrated", "hdi", "equal_tailed", "smoothed_hdi"}, optional
        See `HDIForestRegressor.predict_interval`; by default "calibrated" if the model is, else
        "hdi".

    Returns
    -------
    callable
        ``scorer(estimator, X, y, sample_weight=None)`` returns a float, and greater is better: for
        `scoring` in ``cross_val_score``, ``GridSearchCV`` and the like. The estimator is an
        `HDIForestRegressor`, `LeafModel` or `ForestSearchOOB`, also as the last step of a Pipeline
        or the best of a search.

    Raises
    ------
    ValueError
        If an argument is out of range.

    See Also
    --------
    interval_score : The score itself.
    coverage_scorer : Coverage alone.

    Notes
    -----
    See `interval_score` for what it rewards: in the mean over rows, narrow intervals that targets
    seldom leave by far.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from sklearn.model_selection import GridSearchCV
    >>> from hdiforest import HDIForestRegressor
    >>> X, y = make_regression(n_samples=200, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(RandomForestRegressor(20, random_state=0))
    >>> sizes = {"estimator__min_samples_leaf": [1, 50]}
    >>> search = GridSearchCV(model, sizes, scoring=interval_scorer(0.8), cv=3).fit(X, y)
    >>> search.best_params_
    {'estimator__min_samples_leaf': 1}
    """
    return _IntervalScorer(one_share("coverage", coverage), _checked_kind(kind, _TWO_SIDED))


def coverage_scorer(coverage: float = 0.9, kind: str | None = None) -> _Scorer:
    """Return a scorer of coverage: minus the distance of the realised from the nominal one.

    Parameters
    ----------
    coverage : float, default=0.9
        Above 0 and below 1.
    kind : {"calibrated", "hdi", "equal_tailed", "lower", "upper", "smoothed_hdi"}, optional
        As in `interval_scorer`.

    Returns
    -------
    callable
        As of `interval_scorer`; from -1 to 0.

    Raises
    ------
    ValueError
        If an argument is out of range.

    See Also
    --------
    coverage_score : The share of targets that intervals cover.

    Notes
    -----
    The greatest coverage is that of infinite intervals, so the scorer is not greatest there but
    where the coverage is nominal: 0. It says nothing of width, and of few rows it mostly says what
    chance did: look at it beside `interval_scorer`, and choose by the latter.

    Examples
    --------
    >>> coverage_scorer(0.8, kind="hdi")
    coverage_scorer(coverage=0.8, kind='hdi')
    """
    return _CoverageScorer(one_share("coverage", coverage), _checked_kind(kind, _KINDS))


def crps_scorer() -> _Scorer:
    """Return a scorer of whole distributions: minus the mean CRPS.

    Returns
    -------
    callable
        As of `interval_scorer`. The estimator is, or ends in, an `HDIForestRegressor` or a
        `LeafModel`. The distributions are the leaves' own; a calibration does not change them.

    See Also
    --------
    crps_score : The score itself.

    Examples
    --------
    >>> crps_scorer()
    crps_scorer()
    """
    return _CRPSScorer()


def pinball_scorer(quantiles: float | ArrayLike = 0.5) -> _Scorer:
    """Return a scorer of quantiles: minus the mean pinball loss.

    Parameters
    ----------
    quantiles : float or list of floats, default=0.5
        Levels above 0 and below 1; of several the losses are averaged.

    Returns
    -------
    callable
        As of `interval_scorer`. The estimator has `predict_quantiles`.

    Raises
    ------
    ValueError
        If a level is out of range.

    See Also
    --------
    interval_scorer : Scores intervals.
    crps_scorer : Scores whole distributions.

    Examples
    --------
    >>> pinball_scorer([0.1, 0.9])
    pinball_scorer(quantiles=(0.1, 0.9))
    """
    levels = shares("quantiles", quantiles)
    if levels.ndim > 1 or levels.size == 0:
        raise ValueError(f"quantiles must be a number or a list of numbers, got {quantiles!r}")
    return _PinballScorer(float(levels) if levels.ndim == 0 else tuple(levels.tolist()))


def _intervals(estimator: Any, X: Any, coverage: float, kind: str | None) -> NDArray[np.float64]:
    from hdiforest._utils.meta_estimators import model_and_rows

    model, rows = model_and_rows(estimator, X, "predict_interval")
    ends: NDArray[np.float64] = model.predict_interval(rows, coverage, kind=kind, output="numpy")
    return ends


def _crps(
    source: Any, rows: Any, y: Array, *, n_threads: int, out: Array | None = None
) -> NDArray[np.float64]:
    """Return the CRPS of rows by a `Scorer`, or of leaves by a `LeafIndex`."""
    from scipy.sparse import csr_array

    values = getattr(source, "index", source).atoms()
    indptr, indices, data = source.weights(rows, n_threads=n_threads)
    scores = crps_of_rows(y, values, csr_array((data, indices, indptr), (len(y), len(values))))
    if out is not None:
        out[:] = scores
    return scores


def _checked_kind(kind: str | None, allowed: tuple[str, ...]) -> str | None:
    if kind is not None and kind not in allowed:
        words = alternatives([*(repr(word) for word in allowed), "None"])
        raise ValueError(f"kind must be {words}, got {kind!r}")
    return kind
