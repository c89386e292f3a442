"""What all methods of HDIForestRegressor share: the fitted forest it holds, threads and pickles."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from hdicore import Scorer
from hdiforest._estimators.distributions import TablesOut
from hdiforest._model.fitted import FittedForest
from hdiforest._model.table_steps import TableSteps
from hdiforest._model.training_rows import Weighting
from hdiforest._utils.meta_estimators import forest_of
from hdiforest._utils.threads import thread_count
from hdiforest.serving._arrays import Parts, from_arrays, to_arrays


class BaseForestModel(TablesOut, BaseEstimator):
    """An estimator that holds a `FittedForest` once it is fitted or loaded.

    Pickles hold arrays in place of compiled objects; see `hdiforest.serving._arrays`.
    """

    n_jobs: int | None
    _fitted: FittedForest
    _training_table: Any = None  # of the fit, if there are steps; not in pickles

    @property
    def scorer_(self) -> Scorer:
        """The compiled model, which does not look whether its file has changed."""
        return self._fitted.scorer

    @property
    def weights_(self) -> Weighting:
        """The `weights` the model was made with."""
        return self._fitted.weights

    @property
    def n_outputs_(self) -> int:
        """Number of targets."""
        return self._fitted.n_outputs

    @property
    def n_training_rows_(self) -> int:
        """Number of rows the forest was fitted on."""
        return self._fitted.n_training_rows

    @property
    def predict_matches_forest_(self) -> bool:
        """Whether `predict` must give the forest's own predictions, up to rounding."""
        return self._fitted.matches_forest

    @property
    def _steps(self) -> TableSteps | None:
        """The steps before the forest."""
        coding = self._fitted.coding
        return coding if isinstance(coding, TableSteps) else None

    @property
    def preprocessing_(self) -> Pipeline:
        """The fitted steps before the forest; absent if there are none."""
        if self._steps is None:
            raise AttributeError("this model has no preprocessing_: its forest has no steps")
        return self._steps.pipeline

    def _require_fitted(self) -> FittedForest:
        """Return what the model holds, or raise NotFittedError, or OSError if its file changed.

        Whatever reads arrays, which may map a file, takes them from here, once a call.
        """
        try:
            fitted = self._fitted
        except AttributeError:
            check_is_fitted(self)
            raise
        if fitted.check_file is not None:
            fitted.check_file()
        return fitted

    def _n_threads(self, n_rows: int | None = None) -> int:
        # The engine starts no thread below this number of row-trees, and `thread_count` takes a
        # third of the time of scoring one row.
        if n_rows is not None and n_rows * self._fitted.scorer.forest.n_trees < 10_000:
            return 1
        n_jobs = self.n_jobs
        if n_jobs is None:
            fitted = getattr(self, "estimator_", None)
            n_jobs = None if fitted is None else getattr(forest_of(fitted), "n_jobs", None)
        return thread_count(n_jobs)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def __sklearn_clone__(self) -> Self:
        copied: Self = super().__sklearn_clone__()
        copied._output = self._output
        return copied

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_training_table", None)
        if "_fitted" in state:
            state["_fitted"] = to_arrays(self._require_fitted()).state()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "_fitted" in state:
            state["_fitted"] = from_arrays(Parts(**state["_fitted"]))
        super().__setstate__(state)
