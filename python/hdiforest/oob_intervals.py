"""Base intervals of training rows, in none of which the row itself takes part."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from hdicore import LeafIndex
from hdiforest._utils.typing import Array, Kind
from hdiforest.calibration import Base
from hdiforest.centred import CentredForest
from hdiforest.fitted import IN_BAG, FittedForest, TrainingRows
from hdiforest.oob_centres import OutOfBagCentres
from hdiforest.stacked import Stacking

# A training row with fewer such trees has a distribution unlike that of a new row.
MIN_SHARE_OF_WEIGHT = 0.9  # that usable rows have, relative to their share of the rows


MIN_OOB_TREES = 20


class OutOfBagIntervals:
    """Base intervals of training rows, in none of which the row itself takes part."""

    def __init__(
        self,
        fitted: FittedForest,
        n_threads: int,
        mean: object = None,
        random_state: int | None = None,
    ) -> None:
        self._fitted = fitted
        self._n_threads = n_threads
        self._mean = mean
        self._random_state = random_state
        self.rows: TrainingRows = fitted.require_training_rows()

    @cached_property
    def leaves(self) -> NDArray[np.int32]:
        """Leaves of the training rows, (n, n_trees)."""
        return self._fitted.scorer.forest.leaves(self.rows.X, n_threads=self._n_threads)

    @cached_property
    def counts(self) -> NDArray[np.unsignedinteger] | None:
        """How often each tree drew each row, (n, n_trees); None: always once."""
        return None if self.rows.bags is None else self.rows.bags.matrix()

    @property
    def families(self) -> tuple[str, ...]:
        """What there is of `FAMILIES`: centres count all rows of a leaf, or those drawn."""
        if self._fitted.weights != "all":
            return ("raw",)
        return ("raw", "centred" if self._mean is None else "stacked")

    @cached_property
    def usable(self) -> NDArray[np.intp]:
        """Training rows that enough trees did not draw. May be empty."""
        if self.counts is None:
            return np.empty(0, dtype=np.intp)
        n_trees = (self.counts == 0).sum(axis=1)
        return np.flatnonzero((n_trees >= MIN_OOB_TREES) & self.rows.has_weight)

    @property
    def shortage(self) -> str | None:
        """Why the usable rows cannot stand for all; None if they can.

        Bootstraps that draw rows by their weights leave heavy rows out too seldom.
        """
        n, weight = int(self.rows.has_weight.sum()), self.rows.sample_weight
        if 2 * len(self.usable) < n:
            return (
                f"at least {MIN_OOB_TREES} trees that did not draw a row, and {len(self.usable)} "
                f"of {len(self.rows.y)} training rows have so many"
            )
        share = 1.0 if weight is None else weight[self.usable].sum() / weight.sum()
        if share < MIN_SHARE_OF_WEIGHT * len(self.usable) / n:
            return (
                f"rows of all weights that {MIN_OOB_TREES} trees did not draw, and those that so "
                f"many did not draw are {len(self.usable)} of {len(self.rows.y)} training rows, "
                f"but have {share:.0%} of their weight"
            )
        return None

    @property
    def targets(self) -> Array:
        """Targets of the rows that weigh anything."""
        return self.rows.y[self.rows.has_weight]

    @cached_property
    def centres(self) -> OutOfBagCentres:
        """Out-of-bag means of all training rows."""
        return OutOfBagCentres.of(self.rows, self.leaves, self.counts, self._fitted.scorer.forest)

    @cached_property
    def stacking(self) -> Stacking | None:
        """The other regressor's mean in the centres, if there is one."""
        if self._mean is None:
            return None
        from hdiforest.stacking import stacked  # fits with scikit-learn

        centres, has_centre = self.centres.centres, self.centres.n_trees > 0
        return stacked(self._mean, self.rows, centres, has_centre, self._random_state)

    def centred_forest(self) -> CentredForest:
        """Return what predicts centred or stacked intervals of other rows."""
        return self.centres.forest_of(self.stacking, self._n_threads)

    def intervals(
        self, chosen: NDArray[np.intp], kinds: Sequence[Kind], levels: Sequence[float]
    ) -> Array:
        """Return intervals of some training rows, (families, kinds, rows, 2, levels)."""
        by_family = [self._raw(chosen, kinds, levels)]
        if len(self.families) > 1:
            by_family.append(self._centred(chosen, kinds, levels))
        return np.stack(by_family)

    def by_base(self, chosen: NDArray[np.intp], bases: Sequence[Base]) -> Array:
        """Return intervals of some training rows by each of k bases, (rows, 2, k)."""
        ends = np.empty((len(chosen), 2, len(bases)))
        for family, name in dict.fromkeys((base.family, base.kind) for base in bases):
            at = [j for j, base in enumerate(bases) if (base.family, base.kind) == (family, name)]
            kinds, levels = (cast("Kind", name),), [bases[j].level for j in at]
            if family == "raw":
                ends[..., at] = self._raw(chosen, kinds, levels)[0]
            else:
                ends[..., at] = self._centred(chosen, kinds, levels)[0]
        return ends

    def _centred(
        self, chosen: NDArray[np.intp], kinds: Sequence[Kind], levels: Sequence[float]
    ) -> Array:
        return self.centres.intervals(chosen, levels, kinds, self.stacking, self._n_threads)

    def _raw(
        self, chosen: NDArray[np.intp], kinds: Sequence[Kind], levels: Sequence[float]
    ) -> Array:
        weights, scorer = self._fitted.weights, self._fitted.scorer
        own = weights not in IN_BAG  # whether a row lies in leaves that count it
        index: LeafIndex = scorer.index
        if own:
            index = self.rows.index(
                scorer.forest,
                self.leaves,
                weights,
                keep_row_weights=True,
                n_threads=self._n_threads,
            )
        leaves = self.leaves[chosen]
        counts = cast("NDArray[np.unsignedinteger]", self.counts)
        leaves[counts[chosen] > 0] = -1
        leave_out = chosen if own else None
        ends = index.intervals(
            leaves,
            [*levels] * len(kinds),
            [kind for kind in kinds for _ in levels],
            leave_out=leave_out,
            n_threads=self._n_threads,
        )
        return ends.reshape(len(chosen), 2, len(kinds), -1).transpose(2, 0, 1, 3)
