"""Names of the columns that results have in tables, in memory and in files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hdiforest._utils.checks import alternatives

# The columns of each kind of interval: name in front of the level, and which end it holds.
ENDS: Mapping[str, tuple[tuple[str, int], ...]] = MappingProxyType(
    {
        "calibrated": (("lower", 0), ("upper", 1)),
        "hdi": (("lower", 0), ("upper", 1)),
        "equal_tailed": (("equal_tailed_lower", 0), ("equal_tailed_upper", 1)),
        "lower": (("one_sided_lower", 0),),
        "upper": (("one_sided_upper", 1),),
        "smoothed_hdi": (("smoothed_hdi_lower", 0), ("smoothed_hdi_upper", 1)),
    }
)


def interval_names(kind: str, coverage: ArrayLike) -> list[str]:
    """Return names such as prediction, lower_0.9, upper_0.9."""
    if kind not in ENDS:
        raise ValueError(f"kind must be {alternatives(map(repr, ENDS))}, got {kind!r}")
    ends = [f"{end}_{_level(level)}" for level in _flat(coverage) for end, _ in ENDS[kind]]
    return ["prediction", *ends]


def quantile_names(quantiles: ArrayLike) -> list[str]:
    """Return names such as quantile_0.5."""
    return [f"quantile_{_level(level)}" for level in _flat(quantiles)]


def numbered_names(name: str, count: int) -> list[str]:
    """Return the name alone for one column, and otherwise name_0, name_1, ..."""
    return [name] if count == 1 else [f"{name}_{i}" for i in range(count)]


def require_distinct(names: Sequence[str]) -> None:
    """Raise ValueError if two columns would have one name."""
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ValueError(f"the output would have two columns '{name}'")


def require_columns(table: str, names: Sequence[Any], needed: Iterable[Any], who: str = "") -> None:
    """Raise ValueError if columns that are needed are not in a table, or twice.

    Parameters
    ----------
    table : str
        What the message calls it.
    names : sequence of str
        Of the columns that are there.
    needed : iterable of str
    who : str
        What the message says of the columns.
    """
    counts = Counter(names)
    needed = list(dict.fromkeys(needed))
    missing = [repr(name) for name in needed if name not in counts]
    if missing:
        raise ValueError(
            f"{table} has no column{'s' * (len(missing) > 1)} {', '.join(missing[:12])}{who}; "
            f"it has {', '.join(map(str, names[:12])) or 'none'}"
        )
    for name in needed:
        if counts[name] > 1:
            raise ValueError(f"{table} has {counts[name]} columns {name!r}")


def _flat(levels: ArrayLike) -> list[float]:
    """Return levels as a list; empty if they are no numbers, which the query refuses itself."""
    try:
        flat: list[float] = np.asarray(levels, dtype=np.float64).ravel().tolist()
    except (TypeError, ValueError):
        return []
    return flat


def _level(level: float) -> str:
    return f"{level:.15g}"
