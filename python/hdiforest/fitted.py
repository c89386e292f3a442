"""What a fitted model is: a compiled forest, the index of its training rows, and these rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from hdicore import Forest, LeafIndex, Scorer
from hdiforest.calibration import Calibration, CrossCalibration, Level
from hdiforest.centred import CentredForest
from hdiforest.coding import TableCoding
from hdiforest.jackknife import Jackknife
from hdiforest.text import alternatives

Weighting = Literal["all", "inbag", "oob"]
# What each mode of weighting counts in a leaf.
WEIGHTINGS: dict[Weighting, str] = {
    "all": "all training rows of a leaf",
    "inbag": "training rows as often as the tree drew them",
    "oob": "training rows that the tree did not see",
}
ANY_WEIGHTING = alternatives(repr(mode) for mode in WEIGHTINGS)


@dataclass(frozen=True)
class TrainingRows:
    """The rows a forest was fitted on, and how often each tree drew them."""

    X: NDArray[np.float32]  # (n, n_features)
    y: NDArray[np.float64]  # (n,) or (n, n_outputs)
    sample_weight: NDArray[np.float64] | None  # (n,)
    counts: NDArray[np.unsignedinteger] | None  # (n, n_trees); None: every tree used each row once
    # Whether sample_weight multiplies the counts inside the trees, or decided how often rows were
    # drawn (bootstrapped forests since scikit-learn 1.9).
    counts_are_weighted: bool

    @property
    def has_weight(self) -> NDArray[np.bool_]:
        """Whether each row weighs anything, (n,): to the forest the others are not there."""
        if self.sample_weight is None:
            return np.ones(len(self.y), dtype=bool)
        positive: NDArray[np.bool_] = self.sample_weight > 0
        return positive

    def in_bag_weights(self, tree: int) -> NDArray[np.float64]:
        """Weight of each row inside a tree, (n,)."""
        drawn = np.ones(len(self.y)) if self.counts is None else self.counts[:, tree].astype(float)
        if self.sample_weight is None or not self.counts_are_weighted:
            return drawn
        return drawn * self.sample_weight

    def index(
        self,
        forest: Forest,
        leaves: NDArray[np.int32],
        weights: Weighting,
        *,
        targets: NDArray[np.float64] | None = None,
        keep_row_weights: bool = False,
        n_threads: int = 0,
    ) -> LeafIndex:
        """Index the rows by their leaves (n, n_trees); `targets` may stand in for y."""
        counts: NDArray[Any] | None = None
        sample_weight = self.sample_weight
        if weights == "inbag":
            counts = self.counts
            sample_weight = sample_weight if self.counts_are_weighted else None
        elif weights == "oob" and self.counts is not None:
            counts = self.counts == 0
        return LeafIndex(
            leaves,
            self.y if targets is None else targets,
            counts=counts,
            sample_weight=sample_weight,
            n_leaves=forest.n_leaves,
            keep_row_weights=keep_row_weights,
            n_threads=n_threads,
        )


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

    @property
    def n_features(self) -> int:
        """Number of columns of a row."""
        return self.scorer.forest.n_features

    @property
    def n_outputs(self) -> int:
        """Number of targets of a row."""
        return self.scorer.index.n_outputs

    def require_training_rows(self) -> TrainingRows:
        """Return the training rows, or raise ValueError."""
        if self.training_rows is None:
            raise ValueError(
                "this model was saved without its training rows; save it with training_rows=True"
            )
        return self.training_rows

    def row_scorer(self, n_threads: Callable[[], int]) -> Scorer:
        """Return a scorer whose atoms are the positions of the training rows.

        The first call makes it, and asks `n_threads` how many threads it may use.
        """
        if not self._row_scorers:
            rows, forest, n = self.require_training_rows(), self.scorer.forest, n_threads()
            leaves = forest.leaves(rows.X, n_threads=n)
            positions = np.arange(len(leaves), dtype=np.float64)
            index = rows.index(forest, leaves, self.weights, targets=positions, n_threads=n)
            self._row_scorers.append(Scorer(forest, index))
        return self._row_scorers[0]
