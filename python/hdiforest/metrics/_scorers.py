"""Scorers for scikit-learn's cross-validation and searches: greater is better."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from hdiforest._utils import Array, Weights
from hdiforest._utils.checks import check_choice, one_share, reals, shares
from hdiforest._utils.kinds import ENDS, TWO_SIDED
from hdiforest.metrics._crps import crps_of_rows
from hdiforest.metrics._intervals import coverage_score, interval_score, weighted_mean


class _Scorer:
    """A callable for `scoring`, named after the function that made it, of models with a method."""

    _sample_weight: bool | str | None = None  # what metadata routing shall pass

    # `score` is called with a model, rows as it takes them, targets, weights and the options.
    def __init__(self, name: str, method: str, score: Callable[..., float], **options: Any) -> None:
        self._name, self._method, self._score, self._options = name, method, score, options

    def __call__(
        self, estimator: Any, X: Any, y: ArrayLike, sample_weight: Weights = None
    ) -> float:
        """Score a fitted estimator on rows X with targets y."""
        from hdiforest._utils.meta_estimators import model_and_rows

        targets = reals("y", y)
        if targets.ndim != 1:
            got = f"y of shape (n,), got shape {targets.shape}"
            raise ValueError(f"{self._name} needs one target, {got}")
        model, rows = model_and_rows(estimator, X, self._method)
        return float(self._score(model, rows, targets, sample_weight, **self._options))

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self._options.items())
        return f"{self._name}({options})"

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


def make_interval_scorer(coverage: float = 0.9, kind: str | None = None) -> _Scorer:
    """Return a scorer of intervals: the negative mean interval score.

    Parameters
    ----------
    coverage : float, default=0.9
        The coverage of the intervals, above 0 and below 1. For the kind "calibrated" the models of
        a search must be calibrated for it, by ``HDIForestRegressor(calibration=[...])``.
    kind : str, optional
        The kind of interval, with two ends. The default is "calibrated" if the model is calibrated,
        and "hdi" otherwise. See `HDIForestRegressor.predict_interval`.

    Returns
    -------
    callable
        ``scorer(estimator, X, y, sample_weight=None)``, which returns a float. Greater is better.
        It is a `scoring` for ``cross_val_score``, ``GridSearchCV`` and the like. The estimators are
        the ones of `hdiforest.IntervalDisplay.from_estimator`.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from sklearn.model_selection import GridSearchCV
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.metrics import make_interval_scorer
    >>> X, y = make_regression(n_samples=200, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(RandomForestRegressor(20, random_state=0), calibration=False)
    >>> sizes = {"estimator__min_samples_leaf": [1, 50]}
    >>> search = GridSearchCV(model, sizes, scoring=make_interval_scorer(0.8), cv=3).fit(X, y)
    >>> search.best_params_
    {'estimator__min_samples_leaf': 1}
    """
    check_choice("kind", kind, (*TWO_SIDED, "calibrated", None))
    options = {"coverage": one_share("coverage", coverage), "kind": kind}
    return _Scorer("make_interval_scorer", "predict_interval", _interval, **options)


def make_coverage_scorer(coverage: float = 0.9, kind: str | None = None) -> _Scorer:
    """Return a scorer of coverage: the negative distance between realised and nominal coverage.

    Parameters
    ----------
    coverage : float, default=0.9
        The nominal coverage of the intervals, above 0 and below 1.
    kind : str, optional
        The kind of interval, with one end or two. See `make_interval_scorer`.

    Returns
    -------
    callable
        ``scorer(estimator, X, y, sample_weight=None)``, which returns a float from -1 to 0. Greater
        is better. See `make_interval_scorer`.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.metrics import make_coverage_scorer
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(random_state=0).fit(X[:200], y[:200])
    >>> make_coverage_scorer(0.8)(model, X[200:], y[200:]) > -0.2
    True
    """
    check_choice("kind", kind, (*ENDS, "calibrated", None))
    options = {"coverage": one_share("coverage", coverage), "kind": kind}
    return _Scorer("make_coverage_scorer", "predict_interval", _coverage, **options)


def make_crps_scorer(kind: str | None = None) -> _Scorer:
    """Return a scorer of whole distributions: the negative mean CRPS.

    Parameters
    ----------
    kind : {"calibrated", "raw"}, optional
        The distribution: the calibrated one, or the forest's own. See
        `HDIForestRegressor.predict_quantiles`.

    Returns
    -------
    callable
        ``scorer(estimator, X, y, sample_weight=None)``, which returns a float. Greater is better.
        The estimator is an `HDIForestRegressor` or a `LeafModel`. See `make_interval_scorer`.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.metrics import make_crps_scorer
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(random_state=0).fit(X[:200], y[:200])
    >>> make_crps_scorer()(model, X[200:], y[200:]) < 0
    True
    """
    check_choice("kind", kind, ("calibrated", "raw", None))
    return _Scorer("make_crps_scorer", "predict_cdf", _crps, kind=kind)


def make_pinball_scorer(quantiles: float | ArrayLike = 0.5) -> _Scorer:
    """Return a scorer of quantiles: the negative mean pinball loss.

    Parameters
    ----------
    quantiles : float or list of floats, default=0.5
        Levels, above 0 and below 1. The losses of several levels are averaged.

    Returns
    -------
    callable
        ``scorer(estimator, X, y, sample_weight=None)``, which returns a float. Greater is better.
        The estimator has a method `predict_quantiles`. See `make_interval_scorer`.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.metrics import make_pinball_scorer
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(random_state=0).fit(X[:200], y[:200])
    >>> make_pinball_scorer([0.1, 0.5, 0.9])(model, X[200:], y[200:]) < 0
    True
    """
    levels = shares("quantiles", quantiles)
    numbers = float(levels) if levels.ndim == 0 else tuple(levels.tolist())
    return _Scorer("make_pinball_scorer", "predict_quantiles", _pinball, quantiles=numbers)


def _interval(
    model: Any, rows: Any, y: Array, weights: Weights, coverage: float, kind: str | None
) -> float:
    ends = model.predict_interval(rows, coverage, kind=kind, output="numpy")
    return -float(interval_score(y, ends, coverage, sample_weight=weights))


def _coverage(
    model: Any, rows: Any, y: Array, weights: Weights, coverage: float, kind: str | None
) -> float:
    ends = model.predict_interval(rows, coverage, kind=kind, output="numpy")
    return -abs(float(coverage_score(y, ends, sample_weight=weights)) - coverage)


def _pinball(
    model: Any, rows: Any, y: Array, weights: Weights, quantiles: float | tuple[float, ...]
) -> float:
    from sklearn.metrics import mean_pinball_loss

    levels = np.atleast_1d(quantiles).tolist()
    answers = model.predict_quantiles(rows, levels, output="numpy")
    each = zip(np.reshape(answers, (len(y), -1)).T, levels, strict=True)
    losses = [mean_pinball_loss(y, q, sample_weight=weights, alpha=level) for q, level in each]
    return -float(np.mean(losses))


def _crps(model: Any, rows: Any, y: Array, weights: Weights, kind: str | None) -> float:
    distribution = getattr(getattr(model, "calibration_", None), "distribution", None)
    if kind == "calibrated" or (kind is None and distribution is not None):
        levels = 0.5 if distribution is None else distribution.levels  # 0.5: the model refuses
        atoms = model.predict_quantiles(rows, levels, kind="calibrated", output="numpy")
        scores = crps_of_rows(y, atoms, np.diff(levels, prepend=0))
        return -float(weighted_mean(scores, weights))
    return -float(weighted_mean(model._source(rows).query(_crps_by_leaf, y), weights))


def _crps_by_leaf(engine: Any, rows: Any, y: Array, *, n_threads: int) -> Array:
    """Return the CRPS of rows by a `Scorer`, or of leaves by a `LeafIndex`."""
    from scipy.sparse import csr_array

    values = getattr(engine, "index", engine).atoms()
    indptr, indices, data = engine.weights(rows, n_threads=n_threads)
    return crps_of_rows(y, values, csr_array((data, indices, indptr), (len(y), len(values))))
