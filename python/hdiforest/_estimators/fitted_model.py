"""FittedModel: what a fitted estimator holds, and how it is shown."""

from __future__ import annotations

from html import escape
from typing import Any, ClassVar, Generic, Self, TypeVar

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hdiforest._model.fitted import FittedForest
from hdiforest.exceptions import TrainingRowsWarning
from hdiforest.serving._parts import Parts
from hdiforest.serving._serialization import (
    IndexedLeaves,
    from_arrays,
    leaves_to_arrays,
    to_arrays,
)

# What a model holds: a forest, or training rows by leaf.
Fitted = TypeVar("Fitted", FittedForest, IndexedLeaves)


_OF_PROCESS = {"_training_table", "_row_labels", "_to_warn", "counts_"}  # which no pickle holds


class FittedModel(BaseEstimator, Generic[Fitted]):
    """An estimator that holds a forest, or training rows by leaf, once it is fitted."""

    _fitted: Fitted
    _to_warn: list[type[Warning]]  # of training rows among new ones, once a model
    _row_labels: Any = None  # index of pandas
    _read_parts: ClassVar[Any] = staticmethod(from_arrays)

    def _fitted_forest(self) -> Fitted:
        """Return what the model holds, which functions of this package take, once a call."""
        if not hasattr(self, "_fitted"):
            check_is_fitted(self)
        fitted = self._fitted
        if fitted.check_file is not None:
            fitted.check_file()
        return fitted

    def _keep(self, fitted: Fitted) -> None:
        """Take what a fit or a file made."""
        self._fitted, self._to_warn = fitted, [TrainingRowsWarning]

    @property
    def n_outputs_(self) -> int:
        """Number of targets."""
        return self._fitted.n_outputs

    @property
    def n_training_rows_(self) -> Any:
        """Number of rows of the fit or of the index. None if it is not known."""
        return self._fitted.n_training_rows

    @property
    def calibration_(self) -> Any:
        """The result of the calibration. A model without a calibration has none."""
        calibration = getattr(getattr(self, "_fitted", None), "calibration", None)
        if calibration is None:
            raise AttributeError("this model has no calibration_; call calibrate first")
        return calibration

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def __getstate__(self) -> dict[str, Any]:
        state = {n: v for n, v in super().__getstate__().items() if n not in _OF_PROCESS}
        if "_fitted" in state:
            held: Any = self._fitted_forest()
            parts = leaves_to_arrays(held) if isinstance(held, IndexedLeaves) else to_arrays(held)
            state["_fitted"] = parts.state()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        parts = state.get("_fitted")
        super().__setstate__({name: value for name, value in state.items() if name != "_fitted"})
        if parts is not None:
            self._keep(self._read_parts(Parts(**parts)))

    def _at_once(self) -> Self:
        """Return the model as it is now, which another calibration of it does not change."""
        now = object.__new__(type(self))
        now.__dict__ = self.__dict__.copy()
        return now

    def _summary(self) -> str:
        """Say in numbers what a fitted model holds; empty if it is not fitted."""
        fitted = getattr(self, "_fitted", None)
        if fitted is None:
            return ""
        index = fitted.index if isinstance(fitted, IndexedLeaves) else fitted.scorer.index
        counts = {"tree": index.n_trees, "training row": fitted.n_training_rows}
        counts["output"] = index.n_outputs
        parts = [f"{n:,} {noun}{'s' * (n != 1)}" for noun, n in counts.items() if n is not None]
        if (calibration := fitted.calibration) is not None:
            parts.append(f"calibrated at {', '.join(f'{c:g}' for c in calibration.coverages)}")
        return ", ".join(parts)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return ": ".join(filter(None, [super().__repr__(N_CHAR_MAX), self._summary()]))

    def _repr_html_inner(self) -> str:
        """Return the diagram of scikit-learn, and what the model holds, with its calibration."""
        calibration = getattr(self, "calibration_", None)
        table = "" if calibration is None else calibration._repr_html_()
        details = f"<details><summary>{escape(self._summary())}</summary>{table}</details>"
        return f"{super()._repr_html_inner()}{details if self._summary() else ''}"

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)
        return bundle | {"text/html": self._repr_html_inner()} if "text/html" in bundle else bundle
