"""Base intervals: the candidates of a calibration, and their ends for its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._utils import Array
from hdiforest._utils.checks import (
    check_choice,
    check_names,
    check_targets,
    check_weights,
    check_whole_number,
    one_share,
)
from hdiforest.calibration._postprocess import PostProcess

FAMILIES = ("raw", "centred", "stacked")
BaseKind = Literal["hdi", "equal_tailed", "averaged"]
KINDS: tuple[BaseKind, ...] = get_args(BaseKind)

DEFAULT_COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)

# Compared by default.
DEFAULT_KINDS: tuple[BaseKind, ...] = ("hdi", "equal_tailed", "averaged")
_AVERAGED = ("hdi", "equal_tailed")
LEVELS = (0.30, 0.40, 0.50, 0.60, 0.70, 0.80, 0.86, 0.90, 0.94)


class Base(NamedTuple):
    """An interval before it is widened; each field is a coordinate of the candidates.

    Parameters
    ----------
    family : {"raw", "centred", "stacked"}
        Which atoms the distribution has: targets, or residuals around a mean.
    kind : {"hdi", "equal_tailed", "averaged"}
        Of the interval that is read from the distribution. The ends of an "averaged" one are
        midway between those of the HDI and of the equal-tailed interval.
    level : float
        The share of the distribution that the interval holds.
    min_samples_leaf : int, default=1
        That the trees are pruned to.
    """

    family: str
    kind: str
    level: float
    min_samples_leaf: int = 1

    def __str__(self) -> str:
        pruned = f" leaf {self.min_samples_leaf}" if self.min_samples_leaf > 1 else ""
        return f"{self.family} {self.kind} {self.level:g}{pruned}"

    @property
    def group(self) -> tuple[str, int]:
        """What one merge of a row's leaves serves: the family, of trees of one size."""
        return self.family, self.min_samples_leaf

    @property
    def parts(self) -> tuple[tuple[str, float], ...]:
        """Kind and level of the intervals whose ends are averaged."""
        kinds = _AVERAGED if self.kind == "averaged" else (self.kind,)
        return tuple((kind, self.level) for kind in kinds)

    @property
    def of_width(self) -> Base:
        """The base of the same group whose width adaptive quantiles depend on."""
        return Base(self.family, "equal_tailed", 0.8, self.min_samples_leaf)


# Widened where nothing is selected and there are no centres.
FIXED_RAW = Base("raw", "equal_tailed", 0.8)


# A further coordinate is a field of `Base`, checked here and listed in `candidate_bases`. The ends
# are read by it, in `base_intervals` and `OutOfBagIntervals`, or moved, by `PostProcess`.
def check_base(base: Base) -> None:
    """Raise ValueError unless each coordinate is one that a base may have."""
    check_choice("family", base.family, FAMILIES)
    check_choice("kind", base.kind, KINDS)
    one_share("level", base.level)
    check_whole_number("min_samples_leaf", base.min_samples_leaf, 1)


def candidate_bases(
    families: Sequence[str],
    kinds: Sequence[str] = DEFAULT_KINDS,
    levels: Sequence[float] = LEVELS,
    leaf_sizes: Sequence[int] = (1,),
) -> tuple[Base, ...]:
    """Return all bases with these coordinates, or raise ValueError if there are no such."""
    check_names("families", families, FAMILIES)
    check_names("kinds", kinds, KINDS)
    every = product(leaf_sizes, families, kinds, map(float, levels))
    return tuple(Base(family, kind, level, m) for m, family, kind, level in every)


def positions_by_group(bases: Iterable[Base]) -> dict[tuple[str, int], list[int]]:
    """Return where the bases of each group are."""
    positions: dict[tuple[str, int], list[int]] = {}
    for j, base in enumerate(bases):
        positions.setdefault(base.group, []).append(j)
    return positions


def read_bases(
    bases: Sequence[Base],
    n_rows: int,
    read: Callable[[str, list[Any], list[float]], Array],
) -> Array:
    """Return the ends of bases, (n_rows, 2, m).

    ``read(family, kinds, levels)`` returns the ends (n_rows, 2, p) of p intervals of a family; it
    is called once for each family. The bases must be of trees of one size.
    """
    ends = np.empty((n_rows, 2, len(bases)))
    for (family, _), at in positions_by_group(bases).items():
        parts = list(dict.fromkeys(part for j in at for part in bases[j].parts))
        of_parts = read(family, [kind for kind, _ in parts], [level for _, level in parts])
        for j in at:
            columns = [parts.index(part) for part in bases[j].parts]
            ends[..., j] = of_parts[..., columns].mean(axis=-1)
    return ends


@dataclass(frozen=True, eq=False)
class Candidates:
    """Base intervals of calibration rows, and the targets that these intervals should cover."""

    bases: tuple[Base, ...]  # m of them
    ends: Array  # (n, 2, m), in the unit of y; finite, lower <= upper
    y: Array  # (n,), finite
    postprocess: PostProcess  # of the intervals, once they are widened
    weights: Array | None = None  # (n,), positive; None: all rows weigh alike
    # (n,) that adaptive quantiles depend on; None: of several groups, or of none.
    widths: Array | None = None

    @classmethod
    def checked(
        cls,
        bases: Sequence[Base],
        ends: ArrayLike,
        y: ArrayLike,
        postprocess: PostProcess,
        weights: ArrayLike | None = None,
    ) -> Self:
        """Return the parts together, or raise ValueError if shapes differ or values are wrong."""
        for base in bases:
            check_base(base)
        targets = check_targets("y", y)
        ends = np.asarray(ends, dtype=np.float64)
        shape = (len(targets), 2, len(bases))
        if ends.shape != shape or not bases:
            raise ValueError(f"ends must have shape (n, 2, n_bases) = {shape}, got {ends.shape}")
        if not np.isfinite(ends).all() or (ends[:, 0] > ends[:, 1]).any():
            raise ValueError("ends must be finite with lower <= upper")
        if weights is not None:
            weights = check_weights("weights", weights, len(targets), positive=True)
        return cls(tuple(bases), ends, targets, postprocess, weights)

    def rows(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Candidates:
        """Return the candidates of some of the rows."""
        arrays = {n: getattr(self, n) for n in ("ends", "y", "weights", "widths")}
        some: Any = {n: None if of is None else of[rows] for n, of in arrays.items()}
        return replace(self, **some)

    def groups(self) -> list[Candidates]:
        """Return the candidates of each group."""
        return [
            replace(
                self,
                bases=tuple(self.bases[j] for j in at),
                ends=self.ends[..., at],
                widths=self.widths_of(self.bases[at[0]]),
            )
            for at in positions_by_group(self.bases).values()
        ]

    def only(self, base: Base) -> Candidates:
        """Return one of the candidates, with the widths of its group."""
        ends = self.ends_of(base)[..., np.newaxis]
        return replace(self, bases=(base,), ends=ends, widths=self.widths_of(base))

    @property
    def row_weights(self) -> Array:
        """Weights of the rows, (n,), 1 where all weigh alike."""
        return np.ones(len(self.y)) if self.weights is None else self.weights

    @cached_property
    def units(self) -> Array:
        """Mean half width of each base, (m,); 1 where all its intervals are points."""
        means = (self.ends[:, 1] - self.ends[:, 0]).mean(axis=0) / 2
        return np.where(means > 0, means, 1.0)

    @cached_property
    def scores(self) -> Array:
        """Conformity scores of the targets by each base, (n, m)."""
        return self.postprocess.scores(self.ends, self.y, self.units)

    def widths_of(self, base: Base) -> Array | None:
        """Return the widths (n,) that adaptive quantiles of a base's group depend on, if known."""
        if base.of_width not in self.bases:
            return None
        lower, upper = self.ends_of(base.of_width).T
        return np.asarray(upper - lower)

    def ends_of(self, base: Base) -> Array:
        """Return the ends of one base, (n, 2), or raise ValueError."""
        if base not in self.bases:
            raise ValueError(f"ends must hold the base {base}")
        return np.asarray(self.ends[:, :, self.bases.index(base)])
