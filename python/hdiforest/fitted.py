"""What a fitted model is: a compiled forest, the index of its training rows, and these rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from hdicore import Forest, LeafIndex, Scorer
from hdiforest._tables.encoder import TableCoding
from hdiforest._utils.checks import alternatives
from hdiforest.bags import Bags, KnownBags
from hdiforest.calibration import Calibration, CrossCalibration, Level
from hdiforest.centred import CentredForest
from hdiforest.jackknife import Jackknife

Weighting = Literal["all", "inbag", "oob", "monotonic"]
# What each mode of weighting counts in a leaf.
WEIGHTINGS: dict[Weighting, str] = {
    "all": "all training rows of a leaf",
    "inbag": "training rows as often as the tree drew them",
    "oob": "training rows that the tree did not see",
    "monotonic": "as inbag, targets moved within the bounds that monotonic constraints set a leaf",
}
ANY_WEIGHTING = alternatives(repr(mode) for mode in WEIGHTINGS)
# By these a leaf counts a row only if its tree drew the row.
IN_BAG: tuple[Weighting, ...] = ("inbag", "monotonic")


_BLOCK_BYTES = 1 << 24  # of the leaves in some trees that need not be cut further


class TreeBlock(NamedTuple):
    """What is known of the training rows in some trees."""

    first: int  # of the trees
    leaves: NDArray[np.int32]  # (n, k)
    counts: NDArray[np.unsignedinteger] | None  # (n, k) times drawn; None: once


@dataclass(frozen=True)
class TrainingRows:
    """The rows a forest was fitted on, and how often each tree drew them."""

    X: NDArray[np.float32]  # (n, n_features)
    y: NDArray[np.float64]  # (n,) or (n, n_outputs)
    sample_weight: NDArray[np.float64] | None  # (n,)
    bags: Bags | None  # None: every tree used each row once
    # Whether sample_weight multiplies the counts inside the trees, or decided how often rows were
    # drawn (bootstrapped forests since scikit-learn 1.9).
    counts_are_weighted: bool

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], counts_are_weighted: bool) -> Self:
        """Return rows from the arrays X, y, sample_weight and counts; the last two may be None."""
        counts = arrays.get("counts")
        bags = None if counts is None else KnownBags(counts)
        weight = arrays.get("sample_weight")
        return cls(arrays["X"], arrays["y"], weight, bags, counts_are_weighted)

    def arrays(self) -> dict[str, NDArray[Any] | None]:
        """Return what `from_arrays` takes."""
        counts = None if self.bags is None else self.bags.matrix()
        return {"X": self.X, "y": self.y, "sample_weight": self.sample_weight, "counts": counts}

    @property
    def feature_range(self) -> NDArray[np.float32]:
        """See `FittedForest`."""
        where: Any = True if self.sample_weight is None else self.has_weight[:, None]
        low, high = (
            end.reduce(self.X, axis=0, initial=np.nan, where=where) for end in (np.fmin, np.fmax)
        )
        return np.stack([low, high])

    @property
    def has_weight(self) -> NDArray[np.bool_]:
        """Whether each row weighs anything, (n,): to the forest the others are not there."""
        if self.sample_weight is None:
            return np.ones(len(self.y), dtype=bool)
        positive: NDArray[np.bool_] = self.sample_weight > 0
        return positive

    def in_bag_weights(self, drawn: NDArray[np.unsignedinteger] | None) -> NDArray[np.float64]:
        """Weight of each row inside a tree that drew it so often, (n,)."""
        weights = np.ones(len(self.y)) if drawn is None else drawn.astype(float)
        if self.sample_weight is None or not self.counts_are_weighted:
            return weights
        return weights * self.sample_weight

    def drawn(self, block: TreeBlock) -> NDArray[np.unsignedinteger]:
        """How often some trees drew each row, (n, k), without rows that have no weight."""
        counts = block.counts
        if counts is None:
            counts = np.ones(block.leaves.shape, dtype=np.uint8)
        has_weight = self.has_weight
        return counts if has_weight.all() else counts * has_weight[:, None]

    def blocks(
        self,
        forest: Forest,
        leaves: NDArray[np.int32] | None = None,
        n_threads: int = 0,
        *,
        counted: bool = True,
    ) -> Iterator[TreeBlock]:
        """Yield some trees at a time, which take little memory beside an index of all.

        The rows are routed, unless their `leaves` (n, n_trees) are given. Unless they are to be
        `counted`, counts are None.
        """
        bags = self.bags if counted else None
        n_trees = forest.n_trees
        few = min(max(n_threads, -(-n_trees // 25)), max(1, n_trees // 8))
        at_once = max(few, _BLOCK_BYTES // (4 * len(self.X)))
        order = None
        if leaves is None and n_trees > 1:
            # Rows that share a leaf of one tree share much of their way in the others.
            order = np.argsort(forest.leaves_of_trees(self.X, 0, 1, n_threads=n_threads)[:, 0])
        for first in range(0, n_trees, at_once):
            last = min(first + at_once, n_trees)
            if leaves is None:
                own = forest.leaves_of_trees(self.X, first, last, order=order, n_threads=n_threads)
            else:
                own = leaves[:, first:last]
            counts = None if bags is None else bags.of_trees(first, last)
            yield TreeBlock(first, own, counts)

    def index(
        self,
        forest: Forest,
        leaves: NDArray[np.int32] | None,
        weights: Weighting,
        *,
        targets: NDArray[np.float64] | None = None,
        keep_row_weights: bool = False,
        check: Callable[[TreeBlock], None] | None = None,
        n_threads: int = 0,
    ) -> LeafIndex:
        """Index the rows by their leaves; `targets` may stand in for y.

        The rows are routed, unless their `leaves` (n, n_trees) are given. `check` is called once
        with each block of trees.
        """
        sample_weight = self.sample_weight
        if weights in IN_BAG and not self.counts_are_weighted:
            sample_weight = None
        checks = [] if check is None else [check]

        def blocks() -> Iterator[tuple[NDArray[np.int32], NDArray[Any] | None]]:
            counted = bool(checks) or weights != "all"
            for block in self.blocks(forest, leaves, n_threads, counted=counted):
                for check in checks:
                    check(block)
                yield block.leaves, _counted(block.counts, weights)
            checks.clear()

        return LeafIndex.from_blocks(
            blocks,
            self.y if targets is None else targets,
            forest.n_leaves,
            sample_weight=sample_weight,
            keep_row_weights=keep_row_weights,
            n_threads=n_threads,
        )


def _counted(counts: NDArray[np.unsignedinteger] | None, weights: Weighting) -> NDArray[Any] | None:
    """How often an index counts rows that were drawn so often; None: once."""
    if counts is None or weights == "all":
        return None
    return counts if weights in IN_BAG else counts == 0


@dataclass(frozen=True, eq=False)
class FittedForest:
    """A forest that scores rows, and what is known of its fit."""

    scorer: Scorer
    weights: Weighting  # which training rows weigh in `scorer.index`
    n_training_rows: int
    allow_nan: bool  # whether rows may hold missing values
    feature_names: NDArray[np.object_] | None  # (n_features,); None: fitted without names
    training_rows: TrainingRows | None  # None: the model was saved without them
    calibration: Calibration | CrossCalibration | None = None
    centred: CentredForest | None = None  # for calibrated intervals that are not raw
    folds: tuple[FittedForest, ...] = ()  # of CV+: calibrated, without training rows
    jackknife: Jackknife | None = None  # of the jackknife+
    coding: TableCoding | None = None  # None: rows are the features themselves
    # Whether the means are the predictions of the scikit-learn forest; None: not known.
    matches_forest: bool | None = None
    # Least and greatest value of each feature in training rows that weigh anything,
    # (2, n_features); NaN: it has none. None: the model was stored without them.
    feature_range: NDArray[np.float32] | None = None
    training_digest: str | None = None  # of the features of the fit; see `training_hint`
    # Of a mapped file: raises OSError if it was written to since it was opened. Folds have none of
    # their own, because they are reached through the whole model.
    check_file: Callable[[], None] | None = field(default=None, repr=False)
    # Of a file: raises ValueError unless the training rows hold what they may.
    check_rows: Callable[[], None] | None = field(default=None, repr=False)
    # Filled by `HDIForestRegressor.predict_interval`: coverages beyond those of the calibration.
    further_levels: dict[float, Level] = field(default_factory=dict, init=False, repr=False)
    # Filled by `row_scorer`.
    _row_scorers: list[Scorer] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.calibration is not None and self.n_outputs > 1:
            raise ValueError("a model of several outputs must not have a calibration")
        bases = self.calibration.bases if isinstance(self.calibration, Calibration) else ()
        families = {base.family for base in bases} - {"raw"}
        if families != ({self.centred.family} if self.centred else set()):
            raise ValueError("the calibration does not fit the residuals of the model")
        self._check_folds()
        self._check_range()
        if self.coding is not None and self.coding.features != tuple(
            [] if self.feature_names is None else self.feature_names
        ):
            raise ValueError("the coding does not fit the features of the model")

    def uncalibrated(self, **parts: Any) -> FittedForest:
        """Return the forest without its calibration, but with the given parts of another."""
        none = {"calibration": None, "centred": None, "folds": (), "jackknife": None}
        return replace(self, **(none | parts))

    def with_first_coverages(self, k: int) -> FittedForest:
        """Return the forest with a calibration of its k lowest coverages."""
        calibration = cast("Calibration", self.calibration).first(k)
        needs_centred = any(base.family != "raw" for base in calibration.bases)
        return replace(
            self, calibration=calibration, centred=self.centred if needs_centred else None
        )

    def with_finite_coverages(self) -> FittedForest:
        """Return the forest without the coverages that its calibration had too few rows for."""
        calibration = cast("Calibration", self.calibration)
        n_finite = sum(np.isfinite(level.choice.pad) for level in calibration.levels)
        return self.with_first_coverages(n_finite) if n_finite else self.uncalibrated()

    def _check_folds(self) -> None:
        n = len(self.calibration.scores) if isinstance(self.calibration, CrossCalibration) else 0
        jackknifes = n > 0 and cast("CrossCalibration", self.calibration).method == "jackknife+"
        n_left_out = 0 if self.jackknife is None else len(self.jackknife.drawn)
        if (len(self.folds), n_left_out) != ((0, n) if jackknifes else (n, 0)):
            raise ValueError("the calibration does not fit the folds of the model")
        for fold in self.folds:
            own, whole = fold.calibration, cast("CrossCalibration", self.calibration)
            if fold.n_outputs != self.n_outputs or (
                own is not None and own.coverages != whole.coverages
            ):
                raise ValueError("the calibration does not fit the folds of the model")

    def _check_range(self) -> None:
        if self.feature_range is None:
            return
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

    @property
    def usual_kind(self) -> Literal["calibrated", "hdi"]:
        """The kind of intervals that is meant where none is named."""
        return "hdi" if self.calibration is None else "calibrated"

    @property
    def n_features(self) -> int:
        """Number of columns of a row."""
        return self.scorer.forest.n_features

    @property
    def n_outputs(self) -> int:
        """Number of targets of a row."""
        return self.scorer.index.n_outputs

    def require_training_rows(self) -> TrainingRows:
        """Return the training rows, or raise ValueError if there are none, or damaged ones."""
        if self.training_rows is None:
            raise ValueError(
                "this model was saved without its training rows; save it with training_rows=True"
            )
        if self.check_rows is not None:
            self.check_rows()
        return self.training_rows

    def row_scorer(self, n_threads: Callable[[], int]) -> Scorer:
        """Return a scorer whose atoms are the positions of the training rows.

        The first call makes it, and asks `n_threads` how many threads it may use.
        """
        if not self._row_scorers:
            rows, forest, n = self.require_training_rows(), self.scorer.forest, n_threads()
            positions = np.arange(len(rows.X), dtype=np.float64)
            index = rows.index(forest, None, self.weights, targets=positions, n_threads=n)
            self._row_scorers.append(Scorer(forest, index))
        return self._row_scorers[0]
