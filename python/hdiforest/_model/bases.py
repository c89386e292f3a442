"""Base: an interval of a forest's distribution before a calibration widens it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hdiforest._utils import BaseKind
from hdiforest._utils.checks import check_choice, check_whole_number, one_share
from hdiforest._utils.kinds import BASE_KINDS

FAMILIES = ("raw", "centred", "stacked")

# Of the quantiles that stand for the distribution of a row. Steps of 0.01 were compared on the data
# sets that chose in bench/calibration: their CRPS is no smaller.
BASE_LEVELS = tuple((np.arange(1, 20) / 20).tolist())

Group = tuple[str, int]


class Base(NamedTuple):
    """An interval of a distribution, before a calibration widens it.

    Parameters
    ----------
    family : {"raw", "centred", "stacked"}
        The atoms of the distribution. "raw" are targets. "centred" and "stacked" are residuals
        around a mean.
    kind : str
        The kind of the interval, such as "averaged". The ends of "averaged" lie midway between the
        ends of the HDI and of the equal-tailed interval.
    level : float
        The share of the distribution that the interval holds, above 0 and below 1.
    min_samples_leaf : int, default=1
        The size of leaves to which the trees are pruned. 1 means no pruning.

    Examples
    --------
    >>> from hdiforest.calibration import Base
    >>> str(Base("raw", "equal_tailed", 0.8))
    'raw equal_tailed 0.8'
    """

    family: str
    kind: BaseKind
    level: float
    min_samples_leaf: int = 1

    def __str__(self) -> str:
        pruned = f" leaf {self.min_samples_leaf}" if self.min_samples_leaf > 1 else ""
        return f"{self.family} {self.kind} {self.level:g}{pruned}"

    @property
    def group(self) -> Group:
        """The distribution of the base: a family, and the leaf size of the trees."""
        return self.family, self.min_samples_leaf

    def quantiles(self, levels: Sequence[float] = BASE_LEVELS) -> list[Base]:
        """Return quantiles of the distribution, as upper ends of one-sided intervals.

        Parameters
        ----------
        levels : sequence of k floats
            Levels, above 0 and below 1. The default is 0.05, 0.10, ..., 0.95.

        Returns
        -------
        list of k Base
            Bases of the kind "upper", one for each level.
        """
        return [self._replace(kind="upper", level=level) for level in levels]


# Widened where nothing is selected and there are no centres.
FIXED_RAW = Base("raw", "equal_tailed", 0.8)


def check_base(base: Base) -> None:
    """Raise ValueError unless each coordinate is one that a base may have."""
    check_choice("family", base.family, FAMILIES)
    check_choice("kind", base.kind, BASE_KINDS)
    one_share("level", base.level)
    check_whole_number("min_samples_leaf", base.min_samples_leaf, 1)
