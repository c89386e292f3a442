"""Ours for MAPIE: both ends and the median of a model's intervals as three regressors."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hdiforest._estimators.hdi_forest import HDIForestRegressor
from hdiforest._estimators.leaf_model import LeafModel
from hdiforest._utils import Kind
from hdiforest._utils.checks import check_choice, one_share
from hdiforest._utils.kinds import TWO_SIDED


class _View(RegressorMixin, BaseEstimator):
    """A number that a fitted model gives for each row; `fit` and ``clone`` leave it as it is."""

    fitted_ = True  # by which MAPIE sees that it need not be fitted

    def __init__(self, model: Any, end: str, coverage: float, kind: str) -> None:
        self.model, self.end, self.coverage, self.kind = model, end, coverage, kind

    def fit(self, X: Any, y: Any) -> Self:  # noqa: ARG002
        """Do nothing, as ``sklearn.frozen.FrozenEstimator`` does."""
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the end or the median for each row, (n,)."""
        if self.end == "median":
            return np.asarray(self.model.predict_quantiles(X, 0.5, kind="raw", output="numpy"))
        ends = self.model.predict_interval(X, self.coverage, kind=self.kind, output="numpy")
        return np.asarray(ends[:, 0 if self.end == "lower" else 1])

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Self:
        return self


def quantile_views(
    model: HDIForestRegressor | LeafModel,
    coverage: float = 0.9,
    *,
    kind: Kind = "equal_tailed",
) -> list[Any]:
    """Return a fitted model as the three regressors that MAPIE conformalizes.

    They serve conformalized quantile regression (Romano, Patterson, Candes, NeurIPS 2019).

    Parameters
    ----------
    model : HDIForestRegressor or LeafModel
        A fitted model with one target. It is neither fitted again nor copied. Its calibration is
        not used.
    coverage : float, default=0.9
        The coverage of the intervals, above 0 and below 1. It must equal `confidence_level` of
        MAPIE's regressor, which does not check it.
    kind : str, default="equal_tailed"
        The kind of interval that gives the lower and the upper end, with two ends. "equal_tailed"
        runs between the two quantiles that MAPIE names. The median may lie outside of other kinds,
        such as "hdi".

    Returns
    -------
    list of 3 regressors
        Lower end, upper end and median, in MAPIE's order. Their `fit` does nothing.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor, quantile_views
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(calibration=False, random_state=0).fit(X, y)
    >>> lower, upper, median = quantile_views(model, coverage=0.8)
    >>> bool((lower.predict(X[:5]) <= upper.predict(X[:5])).all())
    True
    """
    if not isinstance(model, HDIForestRegressor | LeafModel):
        raise TypeError(
            "model must be an HDIForestRegressor or a LeafModel, such as "
            f"HDIForestRegressor.from_forest returns, got {type(model).__name__}"
        )
    check_is_fitted(model)
    if model.n_outputs_ > 1:
        raise ValueError(f"model must have one target, got one with {model.n_outputs_}")
    check_choice("kind", kind, sorted(TWO_SIDED))
    coverage = one_share("coverage", coverage)
    return [_View(model, end, coverage, kind) for end in ("lower", "upper", "median")]
