"""Ours for skpro and sktime: a probabilistic regressor for their pipelines and metrics."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags

from hdiforest._estimators.hdi_forest import CalibrationOfFit, HDIForestRegressor
from hdiforest._utils.optional import need
from hdiforest.metrics._crps import padded_rows

_WHO = "hdiforest.adapters.skpro", "skpro"
_empirical = need("skpro.distributions.empirical", *_WHO)
_tables = need("skpro.utils.sklearn", *_WHO)
_pandas = need("pandas", *_WHO)
_BaseProbaRegressor: Any = need("skpro.regression.base", *_WHO).BaseProbaRegressor

__all__ = ["HDIForestProba"]


class HDIForestProba(_BaseProbaRegressor):
    """Forest with intervals and distributions for skpro and sktime.

    `predict_interval` gives the shortest intervals (HDI), or the calibrated ones. Quantiles are
    calibrated if the model is. `predict_var` and `predict_proba` describe the forest's own
    distribution, the targets weighted by `HDIForestRegressor.predict_weights`.

    Parameters
    ----------
    estimator : estimator, default=None
        An `HDIForestRegressor`, or a forest for one. It is cloned, so that `fit` fits it again. A
        ``FrozenEstimator`` or a model of `HDIForestRegressor.from_forest` is not fitted again, and
        `fit` must get the rows of its own fit. None means ``HDIForestRegressor()``.
    calibration : "auto", bool, float or sequence of floats, default=None
        Coverages to calibrate. See `HDIForestRegressor`. `predict_interval` then takes only the
        calibrated coverages. None means the `calibration` of an `HDIForestRegressor` as
        `estimator`, unless it is "auto". Otherwise None means False, because skpro may ask for any
        coverage.

    Attributes
    ----------
    model_ : HDIForestRegressor
        The fitted model.
    feature_names_in_ : ndarray of str
        Names of the columns of X in the fit.
    n_features_in_ : int
        Number of columns of X in the fit.

    Examples
    --------
    >>> from hdiforest.adapters.skpro import HDIForestProba
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(min_samples_leaf=5, random_state=0)
    >>> model = HDIForestProba(forest).fit(X, y.to_frame())
    >>> model.predict_interval(X.head(2), coverage=[0.8, 0.9]).shape
    (2, 4)
    """

    _tags = {  # noqa: RUF012, as in skpro's own classes
        "authors": "hdicore developers",
        "maintainers": "hdicore developers",
        "capability:multioutput": True,
        "capability:missing": True,
        "X_inner_mtype": "pd_DataFrame_Table",
        "y_inner_mtype": "pd_DataFrame_Table",
    }

    def __init__(self, estimator: Any = None, calibration: CalibrationOfFit | None = None) -> None:
        self.estimator = estimator
        self.calibration = calibration
        super().__init__()
        if estimator is None or hasattr(estimator, "__sklearn_tags__"):
            allows_nan = get_tags(self._unfitted()).input_tags.allow_nan
            self.set_tags(**{"capability:missing": allows_nan})

    def _unfitted(self) -> HDIForestRegressor:
        """Return the model to fit."""
        is_ours = isinstance(self.estimator, HDIForestRegressor)
        model = clone(self.estimator) if is_ours else HDIForestRegressor(self.estimator)
        if self.calibration is not None:
            model.set_params(calibration=self.calibration)
        elif isinstance(model.calibration, str):
            model.set_params(calibration=False)
        return model

    def _rows(self, X: Any) -> Any:
        """Return rows as the forest takes them: one that was fitted on arrays takes no names."""
        given = self.model_.estimator
        if isinstance(given, FrozenEstimator) and not hasattr(given, "feature_names_in_"):
            return X.to_numpy()
        return _tables.prep_skl_df(X)

    def _fit(self, X: Any, y: Any) -> Self:
        targets = y.to_numpy(dtype=np.float64)
        self.model_, self._targets = self._unfitted(), targets
        self.model_.fit(self._rows(X), targets[:, 0] if targets.shape[1] == 1 else targets)
        return self

    def _predict(self, X: Any) -> Any:
        return self._table(X, self.model_.predict(self._rows(X)), self._get_columns())

    def _predict_interval(self, X: Any, coverage: list[float]) -> Any:
        ends = self.model_.predict_interval(self._rows(X), coverage)
        columns = self._get_columns(method="predict_interval", coverage=coverage)
        return self._table(X, np.moveaxis(ends, -2, -1), columns)

    def _predict_quantiles(self, X: Any, alpha: list[float]) -> Any:
        quantiles = self.model_.predict_quantiles(self._rows(X), alpha)
        return self._table(X, quantiles, self._get_columns(method="predict_quantiles", alpha=alpha))

    def _predict_var(self, X: Any) -> Any:
        weights = self.model_.predict_weights(self._rows(X))
        centred = self._targets - self._targets.mean(axis=0)
        variances = np.maximum(weights @ centred**2 - (weights @ centred) ** 2, 0)
        variances[np.diff(weights.indptr) == 0] = np.nan  # no training row in any leaf
        return self._table(X, variances, self._get_columns(method="predict_var"))

    def _predict_proba(self, X: Any) -> Any:
        if not X.index.is_unique:
            raise ValueError(
                "the index of X must name each row once, because skpro's Empirical finds rows by "
                "it; pass X.reset_index(drop=True)"
            )
        positions, weights = padded_rows(self.model_.predict_weights(self._rows(X)))
        n, k = positions.shape
        atoms = self._targets[positions.T.ravel()]
        empty = weights.sum(axis=1) == 0  # no training row in any leaf
        atoms[np.tile(empty, k)] = np.nan
        weights[empty] = 1
        rows = X.index.take(np.tile(np.arange(n), k))
        index = _pandas.MultiIndex.from_arrays(
            [np.repeat(np.arange(k), n), *(rows.get_level_values(i) for i in range(rows.nlevels))],
            names=["sample", *rows.names],
        )
        columns = _pandas.Index(self._get_columns())
        spl = _pandas.DataFrame(atoms, index=index, columns=columns)
        arguments = {"weights": _pandas.Series(weights.T.ravel(), index=index), "index": X.index}
        return _empirical.Empirical(spl=spl, skip_init_sorted=True, columns=columns, **arguments)

    def _table(self, X: Any, values: NDArray[np.float64], columns: Any) -> Any:
        """Return values, the row first, as a table with the index of X."""
        return _pandas.DataFrame(values.reshape(len(X), -1), index=X.index, columns=columns)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:  # noqa: ARG003
        """Return arguments with which skpro's own checks test the class.

        Parameters
        ----------
        parameter_set : str, default="default"
            Name of a list of arguments. It is ignored, because there is one list.

        Returns
        -------
        list of dict
            Arguments of the class.
        """
        small = RandomForestRegressor(10, min_samples_leaf=3, random_state=0)
        return [{"estimator": small}, {"estimator": HDIForestRegressor(small, weights="inbag")}]
