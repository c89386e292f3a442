"""TrainingRows: targets, weights and bags of the rows of a fit, and their weight in each leaf."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hdicore import Forest, LeafIndex
from hdicore.monotonic import Bounds, Counts, clipped_index
from hdiforest._utils import Array
from hdiforest._utils.hints import steps

# Returns the rows that each of the trees [first, last) drew.
Draws = Callable[[int, int], Iterator[NDArray[np.integer]]]
Weighting = Literal["all", "inbag", "oob", "monotonic"]

# What each mode of weighting counts in a leaf.
WEIGHTINGS: dict[Weighting, str] = {
    "all": "all training rows of a leaf",
    "inbag": "training rows as often as the tree drew them",
    "oob": "training rows that the tree did not see",
    "monotonic": "as inbag, targets moved within the bounds that monotonic constraints set a leaf",
}

IN_BAG: tuple[Weighting, ...] = ("inbag", "monotonic")  # by which leaves count only rows drawn

_BLOCK_BYTES = 1 << 24  # of the leaves in some trees that need not be cut further


class TreeBlock(NamedTuple):
    """What is known of the training rows in some trees."""

    first: int  # of the trees
    leaves: NDArray[np.int32]  # (n, k)
    counts: Counts | None  # None: each row once


class Bags(NamedTuple):
    """The rows that each tree drew."""

    n_trees: int
    of_trees: Callable[[int, int], Counts]  # of trees [first, last)

    @classmethod
    def redrawn(cls, n_rows: int, n_trees: int, draws: Draws) -> Self | None:
        """Return bags that are drawn again, tree by tree; None: each tree drew each row once."""

        def times_drawn(first: int, last: int) -> Iterator[NDArray[np.intp]]:
            return (np.bincount(rows, minlength=n_rows) for rows in draws(first, last))

        def of_trees(first: int, last: int) -> Counts:
            counts = np.zeros((last - first, n_rows), dtype=np.uint8)
            for k, times in enumerate(times_drawn(first, last)):
                needed = np.min_scalar_type(times.max())
                if needed.itemsize > counts.itemsize:
                    counts = counts.astype(needed)
                counts[k] = times
            return counts.T

        if all((times == 1).all() for times in times_drawn(0, n_trees)):
            return None
        return cls(n_trees, of_trees)

    def matrix(self) -> Counts:
        """Return the counts of all trees, (n, n_trees), in the smallest type that fits."""
        return self.of_trees(0, self.n_trees)


@dataclass(frozen=True)
class TrainingRows:
    """The rows a forest was fitted on, and how often each tree drew them."""

    X: NDArray[np.float32]  # (n, n_features)
    y: Array  # (n,) or (n, n_outputs)
    sample_weight: Array | None  # (n,)
    bags: Bags | None  # None: every tree used each row once
    # Whether sample_weight multiplies the counts inside the trees, or decided how often rows were
    # drawn (bootstrapped forests since scikit-learn 1.9).
    counts_are_weighted: bool
    # Whether the event came, (n,), of censored targets, which are times.
    event: NDArray[np.bool_] | None = field(default=None, kw_only=True)
    # Raises ValueError unless the arrays of a file, at their first use, hold what they may.
    check: Callable[[], None] = field(default=lambda: None, repr=False, compare=False, kw_only=True)

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, Any],
        counts_are_weighted: bool,
        check: Callable[[], None] = lambda: None,
    ) -> Self:
        """Return rows from the arrays X, y, sample_weight, counts and event; some may be None."""
        weight, counts = arrays.get("sample_weight"), arrays.get("counts")
        bags = None if counts is None else Bags(counts.shape[1], lambda i, j: counts[:, i:j])
        event = arrays.get("event")
        event = None if event is None else event != 0
        needed = arrays["X"], arrays["y"], weight, bags, counts_are_weighted
        return cls(*needed, event=event, check=check)

    def arrays(self) -> dict[str, NDArray[Any] | None]:
        """Return what `from_arrays` takes."""
        counts = None if self.bags is None else self.bags.matrix()
        event = None if self.event is None else self.event.astype(np.uint8)
        weight = self.sample_weight
        return {"X": self.X, "y": self.y, "sample_weight": weight, "counts": counts, "event": event}

    @property
    def draw_weight(self) -> Array | None:
        """What a row weighs each time that a tree drew it, (n,); None: all weigh alike."""
        return self.sample_weight if self.counts_are_weighted else None

    def weights_of(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Array | None:
        """Return the sample_weight of some rows; None if all weigh alike."""
        return None if self.sample_weight is None else self.sample_weight[rows]

    @property
    def feature_range(self) -> NDArray[np.float32]:
        """See `FittedForest`."""
        where: Any = True if self.sample_weight is None else self.has_weight[:, np.newaxis]
        ends = [f.reduce(self.X, axis=0, initial=np.nan, where=where) for f in (np.fmin, np.fmax)]
        return np.stack(ends)

    @property
    def has_weight(self) -> NDArray[np.bool_]:
        """Whether each row weighs anything, (n,): to the forest the others are not there."""
        return np.full(len(self.y), True) if self.sample_weight is None else self.sample_weight > 0

    @property
    def weighted_targets(self) -> Array:
        """Targets of the rows that weigh anything."""
        return self.y[self.has_weight]

    def drawn(self, block: TreeBlock) -> Counts:
        """How often some trees drew each row, (n, k), without rows that have no weight."""
        counts, has_weight = block.counts, self.has_weight
        if counts is None:
            counts = np.ones(block.leaves.shape, dtype=np.uint8)
        return counts if has_weight.all() else counts * has_weight[:, None]

    def blocks(
        self,
        forest: Forest,
        leaves: NDArray[np.int32] | None = None,
        n_threads: int = 0,
        *,
        counted: bool = True,
    ) -> Iterator[TreeBlock]:
        """Yield a few trees at a time, routing rows unless `leaves` are given; counts if wanted."""
        bags, n_trees = self.bags if counted else None, forest.n_trees
        few = min(max(n_threads, -(-n_trees // 25)), max(1, n_trees // 8))
        at_once = max(few, _BLOCK_BYTES // (4 * len(self.X)))
        order = None
        if leaves is None and n_trees > 1:
            # Rows that share a leaf of one tree share much of their way in the others.
            order = np.argsort(forest.leaves_of_trees(self.X, 0, 1, n_threads=n_threads)[:, 0])
        for first in steps("routing training rows", range(0, n_trees, at_once)):
            last = min(first + at_once, n_trees)
            if leaves is None:
                part = forest.leaves_of_trees(self.X, first, last, order=order, n_threads=n_threads)
            else:
                part = leaves[:, first:last]
            counts = None if bags is None else bags.of_trees(first, last)
            yield TreeBlock(first, part, counts)

    def sample_weight_in(self, weights: Weighting) -> Array | None:
        """Return what each row weighs in leaves beside the counts, (n,); None: all alike."""
        return self.draw_weight if weights in IN_BAG else self.sample_weight

    def counted_in(self, weights: Weighting) -> NDArray[Any] | None:
        """Return how often leaves count each row in each tree, (n, n_trees); None: once."""
        bags = None if weights == "all" else self.bags
        return None if bags is None else _counted(bags.matrix(), weights)

    def index(
        self,
        forest: Forest,
        leaves: NDArray[np.int32] | None,
        weights: Weighting,
        *,
        targets: Array | None = None,
        keep_row_weights: bool = False,
        bounds: Sequence[Bounds] | None = None,
        pooled: bool = False,
        check: Callable[[TreeBlock], None] | None = None,
        n_threads: int = 0,
    ) -> LeafIndex:
        """Index the rows by their leaves; `targets` may stand in for y.

        The rows are routed, unless their `leaves` (n, n_trees) are given. Each leaf moves y within
        its `bounds`, if there are some. `check` is called once with each block of trees.
        """
        checks = [] if check is None else [check]
        options: dict[str, Any] = {"pooled": pooled, "n_threads": n_threads}

        def blocks() -> Iterator[TreeBlock]:
            counted = bool(checks) or weights != "all"
            for block in self.blocks(forest, leaves, n_threads, counted=counted):
                for check in checks:
                    check(block)
                yield block
            checks.clear()

        if bounds is not None:
            drawn = ((block.leaves, self.drawn(block)) for block in blocks())
            weight = self.draw_weight
            return clipped_index(forest.n_leaves, self.y, drawn, bounds, weight, **options)
        return LeafIndex.from_blocks(
            lambda: ((block.leaves, _counted(block.counts, weights)) for block in blocks()),
            self.y if targets is None else targets,
            forest.n_leaves,
            event=self.event if targets is None else None,
            sample_weight=self.sample_weight_in(weights),
            keep_row_weights=keep_row_weights,
            **options,
        )


def _counted(counts: Counts | None, weights: Weighting) -> NDArray[Any] | None:
    """How often an index counts rows that were drawn so often; None: once."""
    if counts is None or weights == "all":
        return None
    return counts if weights in IN_BAG else counts == 0


def draw_rows(rows: NDArray[np.intp], most: int, seed: int | None) -> NDArray[np.intp]:
    """Return the rows, or so many of them drawn at random, in their order."""
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))
