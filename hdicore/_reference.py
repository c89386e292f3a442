"""The definition of every result: slow, obvious NumPy twins of the compiled kernels.

They follow Zhu, Lu, Chen, "HDI-Forest: Highest Density Interval Regression Forest" (IJCAI 2019),
with whole numbers in place of floating-point weights. Tests compare the kernels with them; nothing
else imports them. Masses are Python or NumPy integers; `shift` units are 2**shift to a tree.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

NARROW_SHIFT, WIDE_SHIFT = 31, 40


class Atoms(NamedTuple):
    """A discrete distribution: distinct values, ascending, each with a positive mass."""

    values: NDArray[np.float64]  # (n_atoms,)
    masses: list[int]  # (n_atoms,)
    n_trees: int  # trees that speak
    shift: int

    @property
    def total(self) -> int:
        """Mass of all atoms, n_trees * 2**shift."""
        return sum(self.masses)


def apply_tree(
    children_left: ArrayLike,
    children_right: ArrayLike,
    feature: ArrayLike,
    threshold: ArrayLike,
    missing_go_to_left: ArrayLike,
    X: ArrayLike,
) -> NDArray[np.int64]:
    """Node id of the leaf of each row of X in one tree."""
    left, right, features = map(np.asarray, (children_left, children_right, feature))
    thresholds = np.asarray(threshold, dtype=np.float64)
    missing_left = np.asarray(missing_go_to_left, dtype=bool)
    found = []
    for row in np.asarray(X, dtype=np.float32):
        node = 0
        while left[node] != -1:
            x = row[features[node]]
            goes_left = missing_left[node] if np.isnan(x) else float(x) <= thresholds[node]
            node = left[node] if goes_left else right[node]
        found.append(node)
    return np.array(found, dtype=np.int64)


def whole_weights(weights: ArrayLike, copies: int = 1) -> list[int]:
    """Scale weights by the power of two that brings their total to (2**50, 2**51], and round.

    What weighs anything keeps at least the weight 1.
    """
    weights = np.asarray(weights, dtype=np.float64)
    exponent = math.frexp(weights.max())[1]
    total = sum(math.ldexp(w, -exponent) for w in np.sort(weights)) * copies
    scale = 51 - math.frexp(total)[1] - exponent
    return [max(int(w > 0), math.floor(math.ldexp(w, scale) + 0.5)) for w in weights]


def share(weights: list[int], shift: int) -> list[int]:
    """Units of neighbours in a leaf: differences of floor(2**shift * running sum / total)."""
    total = sum(weights)
    upto = [(sum(weights[: k + 1]) << shift) // total for k in range(len(weights))]
    return [b - a for a, b in zip([0, *upto], upto, strict=False)]


def choose_shift(leaves: ArrayLike, counts: ArrayLike, weights: list[int]) -> int:
    """31, unless a unit in each tree could amount to a row in the largest leaf: then 40."""
    leaves = np.asarray(leaves)
    counts = np.asarray(counts) * (np.asarray(weights) > 0)[:, None]
    largest = max(
        np.bincount(leaves[:, t], weights=counts[:, t]).max() for t in range(leaves.shape[1])
    )
    return WIDE_SHIFT if largest * leaves.shape[1] >= 2**26 else NARROW_SHIFT


def gather(
    leaves: ArrayLike,
    y: ArrayLike,
    query: ArrayLike,
    *,
    counts: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    leave_out: int | None = None,
) -> Atoms:
    """Conditional distribution of one row: eq. (7), (12) and the atoms' weights of eq. (17).

    `leaves` (n, n_trees) and `y` (n,) are of the training rows, `query` (n_trees,) of the row; -1
    silences a tree. `leave_out` is a training row to be treated as absent.
    """
    leaves, y, query = np.asarray(leaves), np.asarray(y, dtype=np.float64), np.asarray(query)
    n, n_trees = leaves.shape
    counts = np.ones_like(leaves) if counts is None else np.asarray(counts)
    rows = [1] * n
    if sample_weight is not None:
        rows = whole_weights(sample_weight, max(1, int(counts.max())))
    shift = choose_shift(leaves, counts, rows)
    mass: dict[float, int] = {}
    n_speaking = 0
    for t in range(n_trees):
        members: dict[float, int] = {}
        for i in range(n):
            weight = int(counts[i, t]) * rows[i]
            if leaves[i, t] == query[t] and i != leave_out and weight > 0:
                members[y[i] + 0.0] = members.get(y[i] + 0.0, 0) + weight
        if not members:
            continue
        n_speaking += 1
        targets = sorted(members)
        for target, units in zip(targets, share([members[z] for z in targets], shift), strict=True):
            mass[target] = mass.get(target, 0) + units
    values = sorted(z for z in mass if mass[z] > 0)
    return Atoms(np.array(values), [mass[z] for z in values], n_speaking, shift)


def needed(atoms: Atoms, level: float) -> int:
    """Units that count as holding the share `level`."""
    if level >= 1:
        return atoms.total
    units = math.floor(math.ldexp(level, atoms.shift) + 0.5)
    return max(1, atoms.n_trees * (units - 2))


def hdi(atoms: Atoms, coverage: float) -> tuple[float, float]:
    """Solve eq. (16) and (18) by enumeration: the shortest interval that holds the coverage."""
    values, masses = atoms.values, atoms.masses
    enough = needed(atoms, coverage)
    candidates = []
    for i in range(len(values)):
        for j in range(i, len(values)):
            if sum(masses[i : j + 1]) >= enough:
                candidates.append((i, j))
                break
    shortest = min(values[j] - values[i] for i, j in candidates)
    tied = shortest + max(abs(values[0]), abs(values[-1])) * 2.0**-48
    shortest_ones = [(i, j) for i, j in candidates if values[j] - values[i] <= tied]
    heaviest = max(sum(masses[i : j + 1]) for i, j in shortest_ones)
    # Rounding leaves masses that are equal less than two units a tree apart.
    as_much = heaviest - 2 * atoms.n_trees
    median = quantile(atoms, 0.5)

    def preference(pair: tuple[int, int]) -> tuple[float, int]:
        i, j = pair
        return abs(values[i] / 2 + values[j] / 2 - median), i

    i, j = min(
        (c for c in shortest_ones if sum(masses[c[0] : c[1] + 1]) >= as_much), key=preference
    )
    return float(values[i]), float(values[j])


def quantile(atoms: Atoms, level: float, interpolation: str = "inverted_cdf") -> float:
    """Quantile of a discrete distribution; see `hdicore::Interpolation` for the names."""
    values, masses, total = atoms.values, atoms.masses, atoms.total
    tolerance = 2 * atoms.n_trees
    upto = np.cumsum(masses, dtype=object)
    if interpolation in ("inverted_cdf", "averaged_inverted_cdf"):
        enough = needed(atoms, level)
        k = next(k for k in range(len(values)) if upto[k] >= enough)
        hit = level > 0 and k + 1 < len(values) and upto[k] <= enough + 2 * tolerance
        if interpolation == "averaged_inverted_cdf" and hit:
            return float(values[k] / 2 + values[k + 1] / 2)
        return float(values[k])
    grain = min(masses)
    at = level * float(total - grain)
    below = max(k for k in range(len(values)) if float(upto[k] - masses[k]) <= at)
    into_gap = at - float(upto[below] - grain)
    if into_gap <= tolerance or below + 1 == len(values):
        return float(values[below])
    low, high = values[below], values[below + 1]
    if into_gap >= grain - tolerance:
        return float(high)
    return float(
        {
            "lower": low,
            "higher": high,
            "midpoint": low / 2 + high / 2,
            "nearest": low if into_gap <= grain / 2 + tolerance else high,
            "linear": low + into_gap / grain * (high - low),
        }[interpolation]
    )


def interval(atoms: Atoms, coverage: float, kind: str = "hdi") -> tuple[float, float]:
    """Prediction interval of one of the four kinds."""
    if kind == "hdi":
        return hdi(atoms, coverage)
    if kind == "equal_tailed":
        return quantile(atoms, (1 - coverage) / 2), quantile(atoms, (1 + coverage) / 2)
    enough = needed(atoms, coverage)
    n = len(atoms.values)
    if kind == "lower":
        first = max(i for i in range(n) if sum(atoms.masses[i:]) >= enough)
        return float(atoms.values[first]), math.inf
    last = min(j for j in range(n) if sum(atoms.masses[: j + 1]) >= enough)
    return -math.inf, float(atoms.values[last])


def mean(atoms: Atoms) -> float:
    """Conditional mean, eq. (11)."""
    return math.fsum(m / atoms.total * z for z, m in zip(atoms.values, atoms.masses, strict=True))


def cdf(atoms: Atoms, y: float) -> float:
    """P(Y <= y), eq. (14)."""
    return sum(m for z, m in zip(atoms.values, atoms.masses, strict=True) if z <= y) / atoms.total


def draw(atoms: Atoms, u: float) -> float:
    """Smallest atom whose cumulative mass exceeds the share u in [0, 1)."""
    upto = np.cumsum(atoms.masses, dtype=object)
    units = min(int(u * float(atoms.total)), atoms.total - 1)
    return float(atoms.values[next(k for k in range(len(upto)) if upto[k] > units)])


def weighted_atoms(values: ArrayLike, weights: ArrayLike | None = None) -> Atoms:
    """Atoms of a weighted sample in any order."""
    values = np.asarray(values, dtype=np.float64)
    whole = [1] * len(values) if weights is None else whole_weights(weights)
    members: dict[float, int] = {}
    for value, weight in zip(values, whole, strict=True):
        members[value + 0.0] = members.get(value + 0.0, 0) + weight
    targets = sorted(members)
    units = share([members[z] for z in targets], WIDE_SHIFT)
    kept = [(z, u) for z, u in zip(targets, units, strict=True) if u > 0]
    return Atoms(np.array([z for z, _ in kept]), [u for _, u in kept], 1, WIDE_SHIFT)


def weighted_hdi(
    values: ArrayLike, weights: ArrayLike | None = None, coverage: float = 0.9
) -> tuple[float, float]:
    """Shortest interval that holds a share of a weighted sample."""
    return hdi(weighted_atoms(values, weights), coverage)
