"""Names of columns: those of results, and which of a table are missing or there twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hdiforest._utils import kinds
from hdiforest._utils.checks import check_choice

_MAX_SHOWN = 10


_FRONTS = {"calibrated": "", "hdi": "", **dict.fromkeys(kinds.ONE_SIDED, "one_sided_")}
# The columns of each kind of interval: name in front of the level, and which end it holds.
ENDS: Mapping[str, tuple[tuple[str, int], ...]] = {
    kind: tuple((_FRONTS.get(kind, f"{kind}_") + end, int(end == "upper")) for end in ends)
    for kind, ends in {"calibrated": ("lower", "upper"), **kinds.ENDS}.items()
}


# The columns of a diagnosis of rows; those between stand for each of several outputs.
DIAGNOSIS = (
    "dissimilarity", "out_of_range", "worst_feature",
    "tree_spread", "mass_outside", "interval_se",
    "n_missing", "flag",
)  # fmt: skip


def interval_names(kind: str, coverage: ArrayLike) -> list[str]:
    """Return names such as prediction, lower_0.9, upper_0.9."""
    check_choice("kind", kind, ENDS)
    ends = [f"{end}_{level:.15g}" for level in _flat(coverage) for end, _ in ENDS[kind]]
    return ["prediction", *ends]


def quantile_names(quantiles: ArrayLike) -> list[str]:
    """Return names such as quantile_0.5."""
    return [f"quantile_{level:.15g}" for level in _flat(quantiles)]


def numbered_names(name: str, count: int) -> list[str]:
    """Return the name alone for one column, and otherwise name_0, name_1, ..."""
    return [name] if count == 1 else [f"{name}_{i}" for i in range(count)]


def names_of_targets(names: Sequence[str] | None, n: int) -> tuple[str, ...]:
    """Return names of n targets, by default y0, y1, ..."""
    return tuple(names or (f"y{output}" for output in range(n)))


def require_distinct(names: Sequence[str]) -> None:
    """Raise ValueError if two columns would have one name."""
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ValueError(f"the output would have two columns '{name}'")


def column_faults(
    needed: Iterable[Any], names: Iterable[Any], who: str = "", *, there: Iterable[Any] = ()
) -> tuple[str, list[Any]]:
    """Say which columns a table lacks, or has more than once, and return the names of the latter.

    Those `needed` must be among its `names` once, others that must be `there` perhaps more often.
    The text is such as ``no columns 'a', 'b'; it has c, d``, with `who` before the semicolon, or
    ``2 columns 'c'``; empty without faults.
    """
    names, needed = list(names), list(dict.fromkeys(needed))
    counts = Counter(names)
    missing = [name for name in dict.fromkeys([*needed, *there]) if name not in counts]
    repeated = [name for name in needed if counts[name] > 1]
    faults = [f"{counts[name]} columns {name!r}" for name in repeated]
    if missing:
        faults.insert(0, f"no column{'s' * (len(missing) > 1)} {listed(map(repr, missing))}{who}")
    it_has = f"; it has {listed(map(_bare, names)) or 'none'}" if missing else ""
    return ", ".join(faults) + it_has, repeated


def _bare(name: Any) -> str:
    """Return a name as it is, or between quotes if it would not be seen whole."""
    text = str(name)
    return text if text.isprintable() and text.strip() == text != "" else repr(text)


def listed(items: Iterable[str]) -> str:
    """Return the first items, with commas between them, and the number of the others."""
    shown = list(items)
    n_more = len(shown) - _MAX_SHOWN
    return ", ".join(shown[:_MAX_SHOWN]) + (f" and {n_more:,} more" if n_more > 0 else "")


def _flat(levels: ArrayLike) -> list[float]:
    """Return levels as a list; empty if they are no numbers, which the query refuses itself."""
    with suppress(TypeError, ValueError):
        return np.asarray(levels, dtype=np.float64).ravel().tolist()
    return []


def with_note(name: str, *notes: str) -> str:
    """Return the name of a column with the notes that are not empty in brackets."""
    note = ", ".join(filter(None, notes))
    return f"{name or '(no name)'} ({note})" if note else name or "(no name)"
