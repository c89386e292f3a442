"""FittedForest: a compiled forest, the index of its training rows, and what is kept with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdicore import CalibratedScorer, Forest, LeafIndex, Scorer
from hdicore.explain import feature_importances
from hdiforest._model.reference import Reference
from hdiforest._model.residuals import CentredForest
from hdiforest._model.table_steps import TableSteps
from hdiforest._model.training_rows import TrainingRows, Weighting
from hdiforest._tables.encoder import TableEncoder
from hdiforest._tables.row_counts import RowCounts
from hdiforest._utils import Array
from hdiforest.calibration._bases import FIXED_RAW, Base
from hdiforest.calibration._groups import Groups
from hdiforest.calibration._result import Calibration, CrossCalibration, JointCalibration
from hdiforest.exceptions import TrainingRowsWarning

AnyCalibration = Calibration | CrossCalibration | JointCalibration

_MERGES_AT_ONCE = 1 << 16  # bounds the leaf ids


@dataclass(frozen=True, eq=False)
class Jackknife:
    """For each of m training rows the forest of the trees that did not draw it."""

    index: LeafIndex  # of the rows as the trees drew them
    drawn: NDArray[np.bool_]  # (m, n_trees) whether a tree drew the row

    @classmethod
    def checked(cls, forest: Forest, index: LeafIndex, drawn: NDArray[np.bool_]) -> Jackknife:
        """Return the parts together, or raise ValueError if they are not of one forest."""
        if index.n_outputs != 1 or list(index.n_leaves) != list(forest.n_leaves):
            raise ValueError("the index of the jackknife must be of the forest and one target")
        if drawn.dtype != np.bool_ or drawn.ndim != 2 or drawn.shape[1] != forest.n_trees:
            raise ValueError(f"drawn must be bool of shape (m, {forest.n_trees})")
        return cls(index, drawn)

    def intervals(self, leaves: NDArray[np.int32], n_threads: int) -> NDArray[np.float64]:
        """Return the base intervals of rows in given leaves (n, n_trees), (m, n, 2, 1)."""
        ends = np.empty((len(self.drawn), len(leaves), 2, 1))
        step = max(1, _MERGES_AT_ONCE // len(self.drawn))
        for begin in range(0, len(leaves), step):
            part = slice(begin, begin + step)
            masked = np.where(self.drawn[:, np.newaxis], np.int32(-1), leaves[part])
            part_ends = self.read(masked.reshape(-1, masked.shape[2]), n_threads)
            ends[:, part] = part_ends.reshape(len(self.drawn), -1, 2, 1)
        return ends

    def read(self, leaves: NDArray[np.int32], n_threads: int) -> NDArray[np.float64]:
        """Return the base intervals of rows in given leaves, -1 in trees left out, (n, 2)."""
        return self.index.intervals(leaves, FIXED_RAW.level, FIXED_RAW.kind, n_threads=n_threads)


@dataclass(frozen=True, eq=False)
class GroupSource:
    """Where the groups of rows come from: one of the three."""

    feature: int | None = None
    function: Callable[[NDArray[Any]], ArrayLike] | None = None  # of rows (n, n_features)
    array: NDArray[Any] | None = None  # (n,), of the calibration rows, or of all training rows

    def labels(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the labels (n,) of rows X, or raise ValueError if there are not as many."""
        if self.feature is not None:
            return X[:, self.feature]
        labels = self.array if self.function is None else np.asarray(self.function(X))
        shape = None if labels is None else labels.shape
        if labels is None or shape != (len(X),):
            raise ValueError(f"by must give one group for each of {len(X)} rows, got shape {shape}")
        return labels


@dataclass(frozen=True, eq=False)
class FittedForest:
    """A forest that scores rows, and what is known of its fit."""

    scorer: Scorer
    weights: Weighting  # which training rows weigh in `scorer.index`
    n_training_rows: int
    allow_nan: bool  # whether rows may hold missing values
    feature_names: NDArray[np.object_] | None  # (n_features,); None: fitted without names
    training_rows: TrainingRows | None  # None: the model was saved without them
    # Least and greatest value of each feature in training rows that weigh anything,
    # (2, n_features); NaN: it has none.
    feature_range: NDArray[np.float32]
    training_digest: str  # of the features of the fit; see `digest_of`
    matches_forest: bool  # whether the means are the predictions of the scikit-learn forest
    calibration: AnyCalibration | None = None
    centred: CentredForest | None = None  # for calibrated intervals that are not raw
    folds: tuple[FittedForest, ...] = ()  # of CV+: calibrated, without training rows
    # Of several targets, if they are calibrated: a forest of each, with its own calibration.
    outputs: tuple[FittedForest, ...] = ()
    jackknife: Jackknife | None = None  # of the jackknife+
    # How a table becomes rows, by data or by steps of scikit-learn; None: it is rows already.
    encoder: TableEncoder | TableSteps | None = None
    target_names: Sequence[str] | None = None  # None: the targets of the fit had no names
    reference: Reference | None = None  # of a file without training rows that keeps one
    # Of a mapped file: raises OSError if it was written to since it was opened. Folds have none of
    # their own, because they are reached through the whole model.
    check_file: Callable[[], None] | None = field(default=None, repr=False)
    # Of a file: raises ValueError unless the training rows hold what they may.
    check_rows: Callable[[], None] | None = field(default=None, repr=False)
    # Before its trees were pruned by a calibration, which another one starts from; not stored.
    grown: FittedForest | None = field(default=None, repr=False)
    # Of the groups of a calibration; a file keeps none but a feature.
    by: GroupSource | None = field(default=None, repr=False)
    # The warnings that are given once, until they are; a file has none. Copies share the list.
    to_warn: list[type[Warning]] = field(default_factory=lambda: [TrainingRowsWarning], repr=False)
    # Filled by `row_scorer` and `require_reference`.
    _row_scorers: list[Scorer] = field(default_factory=list, init=False, repr=False)
    _references: list[Reference] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        self._check_outputs()
        bases = self.calibration.bases if isinstance(self.calibration, Calibration) else ()
        families = {base.family for base in bases} - {"raw"}
        if families != ({self.centred.family} if self.centred else set()):
            raise ValueError("the calibration does not fit the residuals of the model")
        if self.groups is not None and (self.groups.feature or 0) >= self.n_features:
            raise ValueError("the groups of the calibration must be those of a feature")
        self._check_folds()
        self._check_range()
        if self.reference is not None and self.reference.rows.shape[1] != self.n_features:
            raise ValueError(f"the rows of the reference must have {self.n_features} features")
        names = () if self.feature_names is None else tuple(self.feature_names)
        if isinstance(self.encoder, TableEncoder) and self.encoder.columns != names:
            raise ValueError("the encoder does not fit the features of the model")

    def before_calibration(self) -> FittedForest:
        """Return the forest that a calibration starts from: with the trees as they grew."""
        return self if self.grown is None else replace(self.grown, encoder=self.encoder)

    def uncalibrated(self, **parts: Any) -> FittedForest:
        """Return the forest without its calibration, but with the given parts of another."""
        none: Any = dict.fromkeys(("calibration", "centred", "jackknife", "grown", "by"))
        return replace(self, **(none | {"folds": (), "outputs": ()} | parts))

    def with_finite_coverages(self) -> FittedForest:
        """Return the forest without the coverages that its calibration had too few rows for."""
        calibration = cast("Calibration", self.calibration)
        n_finite = sum(np.isfinite(level.q_hat) for level in calibration.levels)
        if n_finite == 0:
            return self.uncalibrated()
        calibration = calibration.first(n_finite)
        is_raw = all(base.family == "raw" for base in calibration.bases)
        return replace(self, calibration=calibration, centred=None if is_raw else self.centred)

    def of_output(self, output: int, n_threads: int) -> FittedForest:
        """Return a forest of one of several outputs, without a calibration."""
        rows = self.require_training_rows()
        rows = replace(rows, y=np.ascontiguousarray(rows.y[:, output]))
        index = rows.index(self.scorer.forest, None, self.weights, n_threads=n_threads)
        own: dict[str, Any] = {"scorer": Scorer(self.scorer.forest, index), "training_rows": rows}
        return self.uncalibrated(**own, encoder=None, target_names=None, check_file=None)

    @cached_property
    def calibrated(self) -> CalibratedScorer:
        """What answers calibrated intervals of one output, but for folds."""
        levels, centred = cast("Calibration", self.calibration).levels, self.centred
        return CalibratedScorer(
            self.scorer if centred is None else centred.scorer,
            [level.base.kind for level in levels],
            [level.base.level for level in levels],
            [level.q_hat for level in levels],
            cast("Calibration", self.calibration).postprocess.engine,
            centres=None if centred is None else centred.centres,
        )

    @cached_property
    def boxes(self) -> tuple[FittedForest, ...]:
        """The forests of outputs, with calibrations whose intervals are the sides of boxes."""
        pairs = zip(self.outputs, cast("JointCalibration", self.calibration).boxes, strict=True)
        return tuple(replace(part, calibration=own) for part, own in pairs)

    def _check_outputs(self) -> None:
        joint = self.calibration if isinstance(self.calibration, JointCalibration) else None
        n = 0 if self.calibration is None or self.n_outputs == 1 else self.n_outputs
        sizes = [(part.n_outputs, part.n_features) for part in self.outputs]
        own = () if joint is None else joint.outputs
        calibrations = tuple(part.calibration for part in self.outputs)
        if sizes != [(1, self.n_features)] * n or calibrations != own:
            raise ValueError("the calibration does not fit the outputs of the model")

    def _check_folds(self) -> None:
        cross = self.calibration if isinstance(self.calibration, CrossCalibration) else None
        n = 0 if cross is None else len(cross.scores)
        is_jackknife = cross is not None and cross.method == "jackknife+"
        n_left_out = 0 if self.jackknife is None else len(self.jackknife.drawn)
        coverages = {each.calibration.coverages for each in self.folds if each.calibration}
        if (
            (len(self.folds), n_left_out) != ((0, n) if is_jackknife else (n, 0))
            or any(fold.n_outputs != self.n_outputs for fold in self.folds)
            or (cross is not None and not coverages <= {cross.coverages})
        ):
            raise ValueError("the calibration does not fit the folds of the model")

    def _check_range(self) -> None:
        shape = (2, self.n_features)
        if self.feature_range.shape != shape or self.feature_range.dtype != np.float32:
            raise ValueError(f"feature_range must be float32 of shape {shape}")
        low, high = self.feature_range
        finite = np.isfinite(low) & np.isfinite(high) & (low <= high)
        if not (finite | (np.isnan(low) & np.isnan(high))).all():
            raise ValueError(
                "feature_range must hold finite numbers, the least not above the greatest, or NaN "
                "for both"
            )

    def group_codes(
        self, X: NDArray[Any], labels: ArrayLike | None = None
    ) -> NDArray[np.intp] | None:
        """Return the groups of rows X; None if there are none. ValueError unless `labels` fit."""
        if self.outputs:  # whose groups are the same
            return self.outputs[0].group_codes(X, labels)
        groups = self.groups
        if groups is None:
            if labels is not None:
                raise ValueError(
                    "by must be None: the calibration was not made by groups; see calibrate(by=...)"
                )
            return None
        source = self.by or GroupSource(groups.feature)
        if labels is not None:
            source = GroupSource(array=np.asarray(labels))
        elif self.needs_labels:
            raise ValueError(
                "by must be the groups of the rows, which the calibration was made by, and which "
                "are no column of X"
            )
        return groups.codes(source.labels(X))

    def codes_if_told(
        self, X: NDArray[Any], labels: NDArray[Any] | None
    ) -> NDArray[np.intp] | None:
        """Return `group_codes`; None, for the quantile of all rows, if `labels` are missing."""
        return None if labels is None and self.needs_labels else self.group_codes(X, labels)

    @property
    def needs_labels(self) -> bool:
        """Whether the groups of new rows must be given, because these do not tell them."""
        if self.outputs:
            return self.outputs[0].needs_labels
        is_told = self.by is not None and self.by.function is not None
        return self.groups is not None and self.groups.feature is None and not is_told

    @property
    def groups(self) -> Groups | None:
        """The groups that the calibration has quantiles for."""
        return self.calibration.groups if isinstance(self.calibration, Calibration) else None

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
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns that a table must have; None: fitted without names."""
        if self.encoder is not None:
            return self.encoder.columns
        return None if self.feature_names is None else tuple(map(str, self.feature_names))

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
        X, counts = encoder.encode(table, first_row=first_row, feature_range=self.feature_range)
        if not self.allow_nan:
            encoder.require_present(X, first_row=first_row)
        if self.groups is not None and self.groups.feature is not None:
            codes = self.groups.codes(X[:, self.groups.feature])
            counts.n_rows_of_new_groups = int(np.count_nonzero(codes < 0))
        return X, counts

    def require_training_rows(self) -> TrainingRows:
        """Return the training rows, or raise ValueError if there are none, or damaged ones."""
        if self.training_rows is None:
            needed = "save it with training_rows=True"
            raise ValueError(f"this model was saved without its training rows; {needed}")
        if self.check_rows is not None:
            self.check_rows()
        return self.training_rows

    def require_reference(self) -> Reference:
        """Return a sample of training rows to measure distances to; the first call makes it."""
        if self.reference is not None:
            return self.reference
        if self.training_rows is None:
            raise ValueError(
                "diagnose needs training rows, and this model was saved without any; save it with "
                "training_rows=True, or with diagnostics=True, which keeps at most 10,000"
            )
        if not self._references:
            rows = self.require_training_rows()
            columns = self.encoder.entries if isinstance(self.encoder, TableEncoder) else ()
            codes = [j for j, column in enumerate(columns) if column.has_categories]
            X = rows.X if rows.has_weight.all() else rows.X[rows.has_weight]
            self._references.append(Reference.of(X, feature_importances(self.scorer), codes))
        return self._references[0]

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

    @property
    def out_of_bag_call(self) -> str:
        """What gives intervals of training rows out of bag, for a message; empty: nothing does."""
        if self.training_rows is None or self.training_rows.bags is None:
            return ""
        kind = "" if self.why_not_out_of_bag() is None else "(kind='hdi')"
        return f"oob_.interval{kind}, which asks for each row the trees that did not draw it, or "

    def why_not_out_of_bag(self) -> str | None:
        """Say why the calibration has no intervals of training rows; None if it has."""
        if isinstance(self.calibration, CrossCalibration):
            return f"the model was calibrated by {self.calibration.method!r}"
        if self.outputs:
            return next(filter(None, (part.why_not_out_of_bag() for part in self.outputs)), None)
        if self.centred is not None and self.centred.mean is not None:
            return "what the other mean predicts out of fold is not kept"
        return None

    @property
    def steps(self) -> TableSteps | None:
        """The steps of scikit-learn before the forest."""
        return self.encoder if isinstance(self.encoder, TableSteps) else None

    @property
    def steps_of_folds(self) -> list[TableSteps]:
        """The steps before the forest of each fold, where folds have their own."""
        return [fold.steps for fold in self.folds if fold.steps is not None]

    def rows_of_folds(self, table: Any, first_row: int = 0) -> list[NDArray[np.float32]]:
        """Return the rows of a pyarrow Table for the forest of each fold, if it has own steps."""
        encoders = [fold.encoder for fold in self.folds if fold.encoder is not None]
        return [encoder.encode(table, first_row=first_row)[0] for encoder in encoders]

    def row_scorer(self, n_threads: Callable[[], int]) -> Scorer:
        """Return a scorer of positions of training rows; the first call makes it by `n_threads`."""
        if not self._row_scorers:
            rows, forest, n = self.require_training_rows(), self.scorer.forest, n_threads()
            positions = np.arange(len(rows.X), dtype=np.float64)
            index = rows.index(forest, None, self.weights, targets=positions, n_threads=n)
            self._row_scorers.append(Scorer(forest, index))
        return self._row_scorers[0]


def base_intervals(
    fitted: FittedForest,
    X: NDArray[np.float32] | NDArray[np.float64],
    bases: Sequence[Base],
    n_threads: int,
    mean: Array | None = None,
    leaves: NDArray[np.int32] | None = None,
) -> Array:
    """Return the intervals of rows by each of k bases of one distribution, (n, 2, k).

    All but raw ones need `fitted.centred`. `mean` (n,) is filled with the means of the rows, which
    are routed unless their `leaves` are given.
    """
    levels, kinds = [base.level for base in bases], [base.kind for base in bases]
    if bases[0].family != "raw":
        if mean is not None:
            fitted.scorer.mean(X, out=mean, n_threads=n_threads)
        return cast("CentredForest", fitted.centred).intervals(X, levels, kinds, n_threads, leaves)
    if leaves is not None:
        return fitted.scorer.index.intervals(leaves, levels, kinds, n_threads=n_threads)
    return fitted.scorer.intervals(X, levels, kinds, mean=mean, n_threads=n_threads)
