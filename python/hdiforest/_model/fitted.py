"""FittedForest: a compiled forest, the index of its training rows, and what is kept with them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdicore import Scorer
from hdicore.explain import feature_importances
from hdiforest._model.bases import Base
from hdiforest._model.reference import Reference
from hdiforest._model.residuals import CentredForest
from hdiforest._model.table_steps import TableSteps
from hdiforest._model.training_rows import TrainingRows, Weighting
from hdiforest._tables.encoder import TableEncoder
from hdiforest._tables.row_counts import RowCounts
from hdiforest._utils import Array

Rows = NDArray[np.floating[Any]]  # (n, n_features)


class FitFacts(NamedTuple):
    """What is known of a fit beside its rows."""

    weights: Weighting  # which training rows weigh in the index
    n_training_rows: int
    allow_nan: bool  # whether rows may hold missing values
    matches_forest: bool  # whether the means are the predictions of the scikit-learn forest
    training_digest: str  # of the features of the fit; see `digest_of`
    # Least and greatest value of each feature in training rows that weigh anything,
    # (2, n_features); NaN: it has none.
    feature_range: NDArray[np.float32]
    feature_names: NDArray[np.object_] | None  # (n_features,); None: fitted without names
    target_names: Sequence[str] | None  # None: the targets of the fit had no names


@dataclass(frozen=True, eq=False)
class FittedForest:
    """A forest that scores rows, and what is known of its fit."""

    scorer: Scorer
    facts: FitFacts
    training_rows: TrainingRows | None = None  # None: the model was saved without them
    # How a table becomes rows, by data or by steps of scikit-learn; None: it is rows already.
    encoder: TableEncoder | TableSteps | None = None
    reference: Reference | None = None  # of a file without training rows that keeps one
    calibrated: Calibrated | None = None
    # Of a mapped file: raises OSError if it was written to since it was opened. Parts have none of
    # their own, because they are reached through the whole model.
    check_file: Callable[[], None] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _check_range(self.facts.feature_range, self.n_features)
        if self.reference is not None and self.reference.rows.shape[1] != self.n_features:
            raise ValueError(f"the rows of the reference must have {self.n_features} features")
        names = self.facts.feature_names
        columns = () if names is None else tuple(names)
        if isinstance(self.encoder, TableEncoder) and self.encoder.columns != columns:
            raise ValueError("the encoder does not fit the features of the model")

    def uncalibrated(self) -> FittedForest:
        """Return the forest without its calibration, with the trees as they grew."""
        if self.calibrated is None:
            return self
        grown = self.calibrated.grown or self
        return replace(self, scorer=grown.scorer, facts=grown.facts, calibrated=None)

    def with_calibration(self, calibrated: Calibrated) -> FittedForest:
        """Return the forest with a calibration, whose trees may be pruned."""
        trees = calibrated.forest
        return replace(self, scorer=trees.scorer, facts=trees.facts, calibrated=calibrated)

    def without_rows(self) -> FittedForest:
        """Return the forest alone, without training rows, tables and a calibration."""
        return FittedForest(self.scorer, self.facts)

    def of_output(self, output: int, n_threads: int) -> FittedForest:
        """Return a forest of one of several outputs, without a calibration."""
        rows = self.require_training_rows()
        rows = replace(rows, y=np.ascontiguousarray(rows.y[:, output]))
        index = rows.index(self.scorer.forest, None, self.facts.weights, n_threads=n_threads)
        facts = self.facts._replace(target_names=None)
        return FittedForest(Scorer(self.scorer.forest, index), facts, rows)

    def base_intervals(
        self,
        X: Rows,
        bases: Sequence[Base],
        n_threads: int,
        leaves: NDArray[np.int32] | None = None,
    ) -> Array:
        """Return the intervals of rows by each of k bases of one distribution, (n, 2, k).

        Rows are routed unless their `leaves` (n, n_trees) are given.
        """
        levels, kinds = [base.level for base in bases], [base.kind for base in bases]
        if bases[0].family != "raw":
            calibrated = cast("Calibrated", self.calibrated)  # which has checked it
            centred = cast("CentredForest", calibrated.centred)
            return centred.intervals(X, levels, kinds, n_threads, leaves)
        if leaves is not None:
            return self.scorer.index.intervals(leaves, levels, kinds, n_threads=n_threads)
        return self.scorer.intervals(X, levels, kinds, n_threads=n_threads)

    def fill_mean(self, X: Rows, mean: Array, n_threads: int) -> None:
        """Fill in what is predicted of rows (n,): the mean, or the median of censored targets."""
        if self.is_censored:
            mean[:] = self.scorer.quantiles(X, 0.5, n_threads=n_threads)
        else:
            self.scorer.mean(X, out=mean, n_threads=n_threads)

    @property
    def is_censored(self) -> bool:
        """Whether targets are times of an event that is censored in some rows."""
        return self.scorer.index.censored

    @cached_property
    def calibration(self) -> Any:
        """The coverages of the calibration, as `calibration_` shows them; None: there is none."""
        return None if self.calibrated is None else self.calibrated.result

    @property
    def id_columns(self) -> tuple[str, ...]:
        """Columns of a table that name its rows."""
        return self.encoder.ids if isinstance(self.encoder, TableEncoder) else ()

    @property
    def missing_words(self) -> list[str]:
        """Words of cells of a table that are missing."""
        return list(self.encoder.missing) if isinstance(self.encoder, TableEncoder) else []

    @property
    def n_features(self) -> int:
        """Number of columns of a row."""
        return self.scorer.forest.n_features

    @property
    def n_outputs(self) -> int:
        """Number of targets of a row."""
        return self.scorer.index.n_outputs

    @property
    def n_training_rows(self) -> int:
        """Number of rows of the fit."""
        return self.facts.n_training_rows

    @property
    def target_names(self) -> Sequence[str] | None:
        """Names of the targets; None: those of the fit had none."""
        return self.facts.target_names

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns that a table must have; None: fitted without names."""
        if self.encoder is not None:
            return self.encoder.columns
        names = self.facts.feature_names
        return None if names is None else tuple(map(str, names))

    def encoder_for(self, columns: Sequence[str]) -> TableEncoder | TableSteps:
        """Return how a table with these columns becomes features, or ValueError if not as many.

        Without an encoder these are plain numbers, by name; of a forest without names by order.
        """
        if self.encoder is not None:
            return self.encoder
        names = self.columns or tuple(columns)
        if len(names) != self.n_features:
            raise ValueError(
                f"the model was fitted without column names and takes {self.n_features} columns "
                f"in their order, got {len(names)}"
            )
        return TableEncoder.of_numbers(names)

    def encode(
        self, table: Any, encoder: TableEncoder | TableSteps, first_row: int = 0
    ) -> tuple[NDArray[np.float32], RowCounts]:
        """Return the features of the rows of a pyarrow Table, and their counts.

        `first_row` rows are before the table's, for messages. Raises EncodingError.
        """
        options: Any = {"first_row": first_row, "feature_range": self.facts.feature_range}
        X, counts = encoder.encode(table, **options)
        if not self.facts.allow_nan:
            encoder.require_present(X, first_row=first_row)
        groups = None if self.calibrated is None else self.calibrated.groups
        if groups is not None and groups.feature is not None:
            codes = groups.codes(X[:, groups.feature])
            counts.n_rows_of_new_groups = int(np.count_nonzero(codes < 0))
        return X, counts

    def require_training_rows(self) -> TrainingRows:
        """Return the training rows, or raise ValueError if there are none, or damaged ones."""
        if self.training_rows is None:
            needed = "save it with training_rows=True"
            raise ValueError(f"this model was saved without its training rows; {needed}")
        self.training_rows.check()
        return self.training_rows

    def require_reference(self) -> Reference:
        """Return a sample of training rows to measure distances to."""
        if self.reference is not None:
            return self.reference
        if self.training_rows is None:
            raise ValueError(
                "diagnose needs training rows, and this model was saved without any; save it with "
                "training_rows=True, or with diagnostics=True, which keeps at most 10,000"
            )
        return self._reference_of_rows

    @cached_property
    def _reference_of_rows(self) -> Reference:
        rows = self.require_training_rows()
        columns = self.encoder.entries if isinstance(self.encoder, TableEncoder) else ()
        codes = [j for j, column in enumerate(columns) if column.has_categories]
        X = rows.X if rows.has_weight.all() else rows.X[rows.has_weight]
        return Reference.of(X, feature_importances(self.scorer), codes)

    @property
    def has_reference(self) -> bool:
        """Whether there is something to measure distances to."""
        return self.reference is not None or self.training_rows is not None

    @property
    def names_of_features(self) -> list[str]:
        """Names of the features that the forest reads, x0, x1, ... if they have none."""
        if self.steps is not None:
            return [column.name for column in self.steps.ordered.values()]
        return list(self.columns or (f"x{j}" for j in range(self.n_features)))

    def why_not_out_of_bag(self) -> str | None:
        """Say why there are no calibrated intervals of training rows; None if there are."""
        return None if self.calibrated is None else self.calibrated.why_not_out_of_bag

    @property
    def steps(self) -> TableSteps | None:
        """The steps of scikit-learn before the forest."""
        return self.encoder if isinstance(self.encoder, TableSteps) else None

    @property
    def steps_of_folds(self) -> list[TableSteps]:
        """The steps before the forest of each fold, where folds have their own."""
        return [fold.steps for fold in self._folds if fold.steps is not None]

    @property
    def _folds(self) -> tuple[FittedForest, ...]:
        return () if self.calibrated is None else self.calibrated.folds

    def rows_of_folds(self, table: Any, first_row: int = 0) -> list[NDArray[np.float32]]:
        """Return the rows of a pyarrow Table for the forest of each fold, if it has own steps."""
        encoders = [fold.encoder for fold in self._folds if fold.encoder is not None]
        return [encoder.encode(table, first_row=first_row)[0] for encoder in encoders]

    def row_scorer(self, n_threads: Callable[[], int]) -> Scorer:
        """Return a scorer of positions of training rows; the first call makes it by `n_threads`."""
        if (scorer := _ROW_SCORERS.get(self)) is None:
            rows, forest = self.require_training_rows(), self.scorer.forest
            positions: Any = {"targets": np.arange(len(rows.X), dtype=np.float64)}
            positions["n_threads"] = n_threads()
            index = rows.index(forest, None, self.facts.weights, **positions)
            scorer = _ROW_SCORERS[self] = Scorer(forest, index)
        return scorer


_ROW_SCORERS: WeakKeyDictionary[FittedForest, Scorer] = WeakKeyDictionary()  # made once


def _check_range(feature_range: NDArray[Any], n_features: int) -> None:
    shape = (2, n_features)
    if feature_range.shape != shape or feature_range.dtype != np.float32:
        raise ValueError(f"feature_range must be float32 of shape {shape}")
    low, high = feature_range
    finite = np.isfinite(low) & np.isfinite(high) & (low <= high)
    if not (finite | (np.isnan(low) & np.isnan(high))).all():
        raise ValueError(
            "feature_range must hold finite numbers, the least not above the greatest, or NaN "
            "for both"
        )


class IntervalQuery(NamedTuple):
    """Rows whose calibrated intervals are asked for."""

    X: Rows
    positions: NDArray[np.intp]  # of the coverages, () or (k,)
    n_threads: int
    mean: Array | None = None  # (n,) that is filled with means
    of_folds: Sequence[Rows] = ()  # for the forest of each fold, if not X
    codes: NDArray[np.intp] | None = None  # (n,) by `Calibrated.group_codes`
    kind: str = "calibrated"  # or "lower" or "upper", of tails

    def fill_mean(self, forest: FittedForest) -> None:
        """Fill the means, if they are asked for."""
        if self.mean is not None:
            forest.fill_mean(self.X, self.mean, self.n_threads)


@dataclass(frozen=True, eq=False)
class Calibrated(ABC):
    """A forest that a method has calibrated: it answers intervals that cover what they say."""

    forest: FittedForest  # whose trees answer; without rows and calibration
    result: Any  # the coverages, as `calibration_` shows them

    @abstractmethod
    def intervals(self, query: IntervalQuery) -> Array:
        """Return intervals, (n, 2) for a position of one coverage, (n, 2, k) for k."""

    def bases(self, coverage: float) -> tuple[Base, ...]:  # noqa: ARG002
        """Return the bases up to that of a coverage; empty: intervals are no widened bases."""
        return ()

    def group_codes(
        self,
        X: Rows,  # noqa: ARG002
        labels: ArrayLike | None = None,
    ) -> NDArray[np.intp] | None:
        """Return the groups of rows X; None if there are none. ValueError unless `labels` fit."""
        if labels is not None:
            raise ValueError(
                "by must be None: the calibration was not made by groups; see calibrate(by=...)"
            )
        return None

    def codes_if_given(self, X: Rows, labels: NDArray[Any] | None) -> NDArray[np.intp] | None:
        """Return `group_codes`; None, for the quantile of all rows, if `labels` are missing."""
        return None if labels is None and self.needs_labels else self.group_codes(X, labels)

    @property
    def groups(self) -> Any:
        """The groups of rows that have quantiles of their own, if there are some."""
        return None

    @property
    def needs_labels(self) -> bool:
        """Whether the groups of new rows must be given, because these do not tell them."""
        return False

    @property
    def grown(self) -> FittedForest | None:
        """The forest before the calibration pruned its trees, if it did; not stored."""
        return None

    @property
    def centred(self) -> CentredForest | None:
        """The residuals that are widened, if these are not raw intervals."""
        return None

    @property
    def outputs(self) -> tuple[FittedForest, ...]:
        """Of several targets a forest of each, with its own calibration."""
        return ()

    @property
    def folds(self) -> tuple[FittedForest, ...]:
        """The forests of folds, whose rows may come from steps of their own."""
        return ()

    @property
    def censoring(self) -> tuple[FittedForest, ...]:
        """The forest of the time of censoring, if targets are censored."""
        return ()

    @property
    def why_not_out_of_bag(self) -> str | None:
        """Why the calibration has no intervals of training rows; None if it has."""
        return f"the model was calibrated by {self.result.method!r}"
