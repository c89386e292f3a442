"""The definition of every result: slow, obvious NumPy twins of the compiled kernels.

They follow Zhu, Lu, Chen, "HDI-Forest: Highest Density Interval Regression Forest" (IJCAI 2019),
with whole numbers in place of floating-point weights. Tests compare the kernels with them; nothing
else imports them. Masses are Python or NumPy integers; `shift` units are 2**shift to a tree.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

NARROW_SHIFT, WIDE_SHIFT = 31, 40

# First and last atom of each piece of a region.
Pieces = list[tuple[int, int]]

# Alpha and beta of Hyndman, Fan: Sample quantiles in statistical packages (1996); others have 1, 1.
PLOTTING = {
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (1 / 2, 1 / 2),
    "weibull": (0, 0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}


class Atoms(NamedTuple):
    """A discrete distribution: distinct values, ascending, each with a positive mass."""

    values: NDArray[np.float64]  # (n_atoms,)
    masses: list[int]  # (n_atoms,)
    n_trees: int  # trees that contribute
    shift: int
    observations: list[int]  # (n_atoms,) observations behind each atom

    @property
    def total(self) -> int:
        """Mass of all atoms: n_trees * 2**shift, or less if leaves were pooled."""
        return sum(self.masses)

    @property
    def observation(self) -> float:
        """Mass of one observation: the least that one behind an atom has."""
        return min(m / n for m, n in zip(self.masses, self.observations, strict=True))


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


class PrunedTree(NamedTuple):
    """A tree with larger leaves, its nodes numbered depth first."""

    children_left: list[int]  # (n_nodes,) -1 at leaves
    children_right: list[int]  # (n_nodes,)
    nodes: list[int]  # (n_nodes,) of the tree it was made of
    new_leaves: list[int]  # for each old leaf, from left to right, the new one it is part of


def leaves_below(children_left: ArrayLike, children_right: ArrayLike, node: int) -> list[int]:
    """Leaves of the subtree of a node, from left to right."""
    left, right = np.asarray(children_left), np.asarray(children_right)
    pending, found = [node], []
    while pending:
        node = pending.pop()
        if left[node] == -1:
            found.append(int(node))
        else:
            pending += [right[node], left[node]]
    return found


def prune_tree(
    children_left: ArrayLike,
    children_right: ArrayLike,
    leaf_sizes: ArrayLike,
    min_samples_leaf: int,
) -> PrunedTree:
    """Turn a node into a leaf if one of its children holds fewer than `min_samples_leaf` rows.

    `leaf_sizes` (n_leaves,) says how many rows the leaves hold, from left to right. A node holds
    those of all leaves below it.
    """
    left, right = np.asarray(children_left), np.asarray(children_right)
    leaves = leaves_below(left, right, 0)
    sizes = dict(zip(leaves, np.asarray(leaf_sizes).tolist(), strict=True))

    def size(node: int) -> int:
        return sum(sizes[leaf] for leaf in leaves_below(left, right, node))

    new_left: list[int] = []
    new_right: list[int] = []
    nodes: list[int] = []
    new_leaves: list[int] = []
    n_new_leaves = 0
    pending: list[tuple[int, int | None]] = [(0, None)]  # nodes, and for right ones their parents
    while pending:
        node, parent = pending.pop()
        if parent is not None:
            new_right[parent] = len(nodes)
        nodes.append(int(node))
        stays = left[node] != -1 and min(size(left[node]), size(right[node])) >= min_samples_leaf
        new_left.append(len(nodes) if stays else -1)
        new_right.append(-1)
        if stays:
            pending += [(right[node], len(nodes) - 1), (left[node], None)]
        else:
            new_leaves += [n_new_leaves] * len(leaves_below(left, right, node))
            n_new_leaves += 1
    return PrunedTree(new_left, new_right, nodes, new_leaves)


def split_gains(
    children_left: ArrayLike,
    children_right: ArrayLike,
    feature: ArrayLike,
    n_features: int,
    leaf_weights: ArrayLike,
    leaf_means: ArrayLike,
) -> NDArray[np.float64]:
    """Return by how much the splits of a tree on each feature reduce the squared error.

    Weights and means (n_leaves,) are of the leaves from left to right.
    """
    left, right = np.asarray(children_left), np.asarray(children_right)
    weights = np.asarray(leaf_weights, dtype=np.float64)
    means = np.asarray(leaf_means, dtype=np.float64)
    number = {leaf: k for k, leaf in enumerate(leaves_below(left, right, 0))}

    def error(node: int) -> float:
        below = [number[leaf] for leaf in leaves_below(left, right, node)]
        w, m = weights[below], means[below]
        return float(w @ (m - (w @ m) / w.sum()) ** 2) if w.sum() > 0 else 0.0

    gains = np.zeros(n_features)
    for node in np.flatnonzero(left >= 0).tolist():
        gains[np.asarray(feature)[node]] += (
            error(node) - error(int(left[node])) - error(int(right[node]))
        )
    return gains


def find_mismatch(
    tree: dict[str, Any],
    leaves: ArrayLike,
    counts: ArrayLike,
    weights: ArrayLike,
    targets: ArrayLike,
) -> str | None:
    """Say whether the leaves of a tree have other "weights" or "targets" than it recorded.

    `tree` has what `hdicore.find_mismatch` takes. Counts and weights, which include them,
    are (n,), and `targets` (n_outputs, n).
    """
    counts, weights = np.asarray(counts), np.asarray(weights)
    own, recorded = np.where(weights != 0, leaves, -1), np.asarray(tree["weight"])
    no_bounds = np.full((2, len(recorded)), np.inf)
    bounds = no_bounds if tree["bounds"] is None else np.asarray(tree["bounds"])
    leaf_weights = [weights[own == k].sum() for k in range(len(recorded))]

    def tolerance(k: int, size: float) -> float:
        """Bound the rounding of sums over a leaf in any order, of which `size` is the size."""
        units = 4 * (counts[own == k].sum() + 4)
        return float(units * (2.0**-53 * size + 2.0**-1022 * (1 + leaf_weights[k])))

    def sides(k: int, y: NDArray[np.float64], value: float) -> tuple[bool, bool]:
        """Whether the value of a leaf is too high, and too low."""
        w, y = weights[own == k], y[own == k]
        if tree["medians"]:
            half = (0.5 + 1e-9) * leaf_weights[k]
            return w[y < value].sum() > half, w[y > value].sum() > half
        excess, error = value * leaf_weights[k] - w @ y, tolerance(k, w @ abs(y))
        return excess > error, -excess > error

    with np.errstate(all="ignore"):
        for k, weight in enumerate(leaf_weights):
            if abs(recorded[k] - weight) > tolerance(k, weight):
                return "weights"
        for k, values in enumerate(tree["value"]):
            is_free = np.isinf(bounds[:, k])
            for y, value in zip(np.asarray(targets), values, strict=True):
                differs = np.logical_and(sides(k, y, value), is_free).any()
                if differs and math.isfinite(value):
                    return "targets"
    return None


def integer_weights(weights: ArrayLike, copies: int = 1) -> list[int]:
    """Scale weights by the power of two that brings their total to (2**50, 2**51], and round.

    A positive weight stays at least 1.
    """
    weights = np.asarray(weights, dtype=np.float64)
    exponent = math.frexp(weights.max())[1]
    total = sum(math.ldexp(w, -exponent) for w in np.sort(weights)) * copies
    scale = 51 - math.frexp(total)[1] - exponent
    return [max(int(w > 0), math.floor(math.ldexp(w, scale) + 0.5)) for w in weights]


def apportion(weights: list[int], shift: int, pool: int = 0) -> list[int]:
    """Units of neighbours in a leaf: differences of floor(2**shift * running sum / total).

    `pool` stands in for the total if it is not 0. Each has at least one unit.
    """
    n = len(weights)
    total = pool or sum(weights)
    whole = max(n, (sum(weights) << shift) // total)
    upto = [0]
    for k in range(n):
        exact = (sum(weights[: k + 1]) << shift) // total
        upto.append(min(max(exact, upto[-1] + 1), whole - (n - 1 - k)))
    return [b - a for a, b in pairwise(upto)]


def heaviest_leaf(leaves: NDArray[Any], weights: NDArray[Any]) -> int:
    """Largest total of `weights` (n, n_trees) in a leaf."""
    totals: dict[tuple[int, int], int] = {}
    for i, row in enumerate(leaves):
        for t, leaf in enumerate(row):
            totals[t, leaf] = totals.get((t, leaf), 0) + int(weights[i][t])
    return max(totals.values())


def choose_shift(leaves: ArrayLike, counts: ArrayLike, weights: list[int], pool: int) -> int:
    """31; 40 if a unit in each tree could amount to a row, or a row could have no unit."""
    leaves, counts = np.asarray(leaves), np.asarray(counts)
    rows = np.array(weights, dtype=object)[:, None]
    largest = heaviest_leaf(leaves, counts * (rows > 0))
    heaviest = max(heaviest_leaf(leaves, counts * rows), pool)
    lightest = min(w for w in weights if w > 0)
    wide = largest * leaves.shape[1] >= 2**26 or (lightest << NARROW_SHIFT) < heaviest
    return WIDE_SHIFT if wide else NARROW_SHIFT


def scatter(x: int) -> int:
    """SplitMix64's output function (Steele, Lea, Flood, 2014)."""
    mask = 2**64 - 1
    x = (x + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & mask
    return x ^ x >> 31


def thin_out(
    leaves: ArrayLike, counts: ArrayLike, weights: list[int], max_samples_leaf: int, seed: int
) -> NDArray[Any]:
    """Set the counts of all but the max_samples_leaf rows of lowest hash in each leaf to 0."""
    leaves, counts = np.asarray(leaves), np.array(counts)
    for t in range(leaves.shape[1]):
        of_tree = scatter(seed ^ scatter(t))
        for leaf in set(leaves[:, t]):
            rows = np.flatnonzero((leaves[:, t] == leaf) & (counts[:, t] > 0)).tolist()
            rows = [i for i in rows if weights[i] > 0]
            rows.sort(key=lambda i: scatter(of_tree ^ i))
            counts[rows[max_samples_leaf:], t] = 0
    return counts


class LeafMembers(NamedTuple):
    """What one leaf of a row holds: distinct targets, ascending, and their units."""

    targets: list[float]
    units: list[int]
    observations: list[int]  # behind each target


class RowLeaves(NamedTuple):
    """The leaves of one row that hold rows, one for each tree that contributes."""

    leaves: list[LeafMembers]
    shift: int


def leaves_of_row(
    leaves: ArrayLike,
    y: ArrayLike,
    query: ArrayLike,
    *,
    counts: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    leave_out: int | None = None,
    pooled: bool = False,
    max_samples_leaf: int | None = None,
    seed: int = 0,
) -> RowLeaves:
    """Targets in the leaves of one row, and the weights of eq. (7) as units; see `merge`."""
    leaves, y, query = np.asarray(leaves), np.asarray(y, dtype=np.float64), np.asarray(query)
    n, n_trees = leaves.shape
    counts = np.ones_like(leaves) if counts is None else np.asarray(counts)
    rows = [1] * n
    if sample_weight is not None:
        rows = integer_weights(sample_weight, max(1, int(counts.max())))
    if max_samples_leaf is not None:
        counts = thin_out(leaves, counts, rows, max_samples_leaf, seed)
    pool = 0
    if pooled:
        heaviest = heaviest_leaf(leaves, counts * np.array(rows, dtype=object)[:, None])
        pool = 1 << max(heaviest - 1, 0).bit_length()
    shift = choose_shift(leaves, counts, rows, pool)
    found = []
    for t in range(n_trees):
        members: dict[float, int] = {}
        copies: dict[float, int] = {}
        for i in range(n):
            weight = int(counts[i, t]) * rows[i]
            if leaves[i, t] == query[t] and i != leave_out and weight > 0:
                members[y[i] + 0.0] = members.get(y[i] + 0.0, 0) + weight
                copies[y[i] + 0.0] = copies.get(y[i] + 0.0, 0) + int(counts[i, t])
        if not members:
            continue
        targets = sorted(members)
        units = apportion([members[z] for z in targets], shift, pool)
        found.append(LeafMembers(targets, units, [copies[z] for z in targets]))
    return RowLeaves(found, shift)


def merge(leaves: ArrayLike, y: ArrayLike, query: ArrayLike, **options: Any) -> Atoms:
    """Conditional distribution of one row: eq. (7), (12) and the atoms' weights of eq. (17).

    `leaves` (n, n_trees) and `y` (n,) are of the training rows, `query` (n_trees,) of the row; -1
    is a tree that does not contribute. Options: `counts` (n, n_trees), `sample_weight` (n,),
    `max_samples_leaf` and `seed`; `leave_out` is a training row to be treated as absent;
    `pooled` leaves count by their size. Rows with one target are as many observations as lie in
    one leaf together, or in all if leaves are pooled.
    """
    row = leaves_of_row(leaves, y, query, **options)
    mass: dict[float, int] = {}
    observations: dict[float, int] = {}
    for leaf in row.leaves:
        for target, units, n_here in zip(*leaf, strict=True):
            mass[target] = mass.get(target, 0) + units
            before = observations.get(target, 0)
            pooled = options.get("pooled", False)
            observations[target] = before + n_here if pooled else max(before, n_here)
    values = sorted(mass)
    return Atoms(
        np.array(values),
        [mass[z] for z in values],
        len(row.leaves),
        row.shift,
        [observations[z] for z in values],
    )


def needed(atoms: Atoms, level: float) -> int:
    """Units that count as holding the share `level`."""
    if level >= 1:
        return atoms.total
    if atoms.total != atoms.n_trees << atoms.shift:
        return max(1, math.floor(level * atoms.total + 0.5) - 2 * atoms.n_trees)
    units = math.floor(math.ldexp(level, atoms.shift) + 0.5)
    return max(1, atoms.n_trees * (units - 2))


def windows(atoms: Atoms, coverage: float) -> list[tuple[int, int]]:
    """First and last atom of the shortest interval from each atom that holds the coverage."""
    enough = needed(atoms, coverage)
    found = []
    for i in range(len(atoms.values)):
        for j in range(i, len(atoms.values)):
            if sum(atoms.masses[i : j + 1]) >= enough:
                found.append((i, j))
                break
    return found


def hdi(atoms: Atoms, coverage: float) -> tuple[float, float]:
    """Solve eq. (16) and (18) by enumeration: the shortest interval that holds the coverage."""
    values, masses = atoms.values, atoms.masses
    candidates = windows(atoms, coverage)
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


def priced_interval(
    atoms: Atoms, price: float, min_coverage: float = 0.0
) -> tuple[float, float, int]:
    """Interval of most surplus, price * share - width, that holds `min_coverage`; and its mass.

    Surpluses tie if they are no further apart than the price of two units a tree and 2**-48 of the
    largest atom. Of tied intervals those with most mass, to within two units a tree, count, and of
    these the one that starts first, and then ends last.
    """
    exact = [Fraction(float(z)) for z in atoms.values]
    upto = [0, *accumulate(atoms.masses)]
    unit = Fraction(price) / atoms.total
    slack = 2 * atoms.n_trees
    enough = needed(atoms, min_coverage)
    surplus = {}
    mass = {}
    for i in range(len(exact)):
        for j in range(i, len(exact)):
            if upto[j + 1] - upto[i] >= enough:
                mass[i, j] = upto[j + 1] - upto[i]
                surplus[i, j] = unit * mass[i, j] - (exact[j] - exact[i])
    tolerance = unit * slack + max(abs(exact[0]), abs(exact[-1])) / 2**48
    tied = [pair for pair in surplus if surplus[pair] >= max(surplus.values()) - tolerance]
    heaviest = max(mass[pair] for pair in tied)
    heavy = [pair for pair in tied if mass[pair] >= heaviest - slack]
    i, j = min(heavy, key=lambda pair: (pair[0], -pair[1]))
    return float(atoms.values[i]), float(atoms.values[j]), mass[i, j]


# Coefficients log(2)**k / k! of the series of 2**r, from k = 11 down.
POWER_OF_TWO = [
    float.fromhex(digits)
    for digits in (
        "0x1.e8cac7351bb25p-32",
        "0x1.e4cf5158b8ecap-28",
        "0x1.b5253d395e7c4p-24",
        "0x1.62c0223a5c824p-20",
        "0x1.ffcbfc588b0c7p-17",
        "0x1.430912f86c787p-13",
        "0x1.5d87fe78a6731p-10",
        "0x1.3b2ab6fba4e77p-7",
        "0x1.c6b08d704a0c0p-5",
        "0x1.ebfbdff82c58fp-3",
        "0x1.62e42fefa39efp-1",
        "0x1p0",
    )
]


def exp_of_minus(t: float) -> float:
    """exp(-t) by basic operations, of which every processor makes the same bits."""
    x = -float.fromhex("0x1.71547652b82fep+0") * t
    whole = x + 1.5 * 2.0**52 - 1.5 * 2.0**52
    r = x - whole
    power = POWER_OF_TWO[0]
    for coefficient in POWER_OF_TWO[1:]:
        power = power * r + coefficient
    return math.ldexp(power, int(whole))


class Grid(NamedTuple):
    """Equal bins of [low, high], and the standard deviation of a Gaussian kernel."""

    low: float
    high: float
    n_bins: int
    bandwidth: float

    @property
    def width(self) -> float:
        """Width of a bin."""
        return (self.high - self.low) / self.n_bins

    def edges(self) -> list[float]:
        """Return low + i * width, and high itself."""
        return [self.low + i * self.width for i in range(self.n_bins)] + [self.high]

    def masses(self, atoms: Atoms) -> list[int]:
        """Masses of the bins, smoothed; running sums are rounded to whole units."""
        n, edges = self.n_bins, self.edges()
        bins = [0] * n
        for z, mass in zip(atoms.values, atoms.masses, strict=True):
            bins[sum(edge <= z for edge in edges[1:n])] += mass
        reach = int(min(4.0 * self.bandwidth / self.width, n - 1))
        if reach == 0:
            return bins
        distances = [d * (self.width / self.bandwidth) for d in range(reach + 1)]
        kernel = [exp_of_minus(d * d / 2) for d in distances]
        smoothed = [0.0] * n
        for b, mass in enumerate(bins):
            near = range(max(0, b - reach), min(n, b + reach + 1))
            of_kernel = sum_in_order([kernel[abs(t - b)] for t in near])
            for t in near:
                smoothed[t] += mass / of_kernel * kernel[abs(t - b)]
        upto = list(accumulate(smoothed))
        scale = atoms.total / upto[-1]
        units = [min(math.floor(x * scale + 0.5), atoms.total) for x in upto]
        units = [atoms.total if x == upto[-1] else u for x, u in zip(upto, units, strict=True)]
        return [b - a for a, b in pairwise([0, *units])]


def sum_in_order(numbers: list[float]) -> float:
    """Sum with one rounding for each number, which `sum` of Python 3.12 does not do."""
    total = 0.0
    for x in numbers:
        total += x
    return total


class RegionProblem(NamedTuple):
    """Atoms at z of masses w, in ascending order; a piece of atoms i to j is (i, j).

    A piece's length is z[j] - z[i] + thickness, the cost of pieces their length, and `gap` for each
    after the first.
    """

    z: list[float]
    w: list[int]
    gap: float
    thickness: float

    def length(self, i: int, j: int) -> float:
        """Length of a piece."""
        return self.z[j] - self.z[i] + self.thickness

    def mass(self, pieces: Pieces) -> int:
        """Mass of all pieces."""
        return sum(sum(self.w[i : j + 1]) for i, j in pieces)

    def cost(self, pieces: Pieces) -> float:
        """Cost of all pieces."""
        return (
            sum_in_order([self.length(*piece) for piece in pieces]) + (len(pieces) - 1) * self.gap
        )

    def at_price(self, price: float, max_pieces: int) -> Pieces:
        """Pieces of most price * mass - cost; ties: most mass, then fewest pieces.

        open_[p] is the value and mass of the best p pieces the last of which holds the current
        atom, shut[p] that of the best p up to it, both with the pieces themselves.
        """
        none: tuple[float, int, Pieces] = (-math.inf, 0, [])
        open_ = [none] * (max_pieces + 1)
        shut = [(0.0, 0, []), *[none] * max_pieces]
        for i, w in enumerate(self.w):
            step = self.z[i] - self.z[i - 1] if i else 0.0
            for p in range(max_pieces, 0, -1):
                value, mass, pieces = open_[p]
                best = value - step, mass, [*pieces[:-1], (pieces[-1][0], i)] if pieces else []
                value, mass, pieces = shut[p - 1]
                value = (value - self.gap if p > 1 else value) - self.thickness
                if (value, mass) > best[:2]:
                    best = value, mass, [*pieces, (i, i)]
                if best[0] > -math.inf:
                    open_[p] = best[0] + price * float(w), best[1] + w, best[2]
                    shut[p] = max(shut[p], open_[p], key=lambda state: state[:2])
        return max(shut[1:], key=lambda state: state[:2])[2]

    def of_all(self, max_pieces: int) -> Pieces:
        """All mass at the least cost: the longest steps that exceed a gap are left out."""
        steps = [b - a for a, b in pairwise(self.z)]
        dear = [i for i, step in enumerate(steps) if step - self.thickness > self.gap]
        cuts = sorted(sorted(dear, key=lambda i: -steps[i])[: max_pieces - 1])
        firsts, lasts = [0, *(i + 1 for i in cuts)], [*cuts, len(self.z) - 1]
        return list(zip(firsts, lasts, strict=True))

    def trimmed(self, pieces: Pieces, least: int) -> Pieces:
        """Drop end atoms, or whole pieces, while `least` is left.

        The largest saving first; ties: the least mass, then from the left.
        """
        while True:
            options = []
            for n, (i, j) in enumerate(pieces):
                parts = [[(i + 1, j)], [(i, j - 1)]] if i < j else []
                savings = [self.z[i + 1] - self.z[i], self.z[j] - self.z[j - 1]] if i < j else []
                if len(pieces) > 1:
                    parts.append([])
                    savings.append(self.length(i, j) + self.gap)
                for part, saving in zip(parts, savings, strict=True):
                    loss = self.mass([(i, j)]) - self.mass(part)
                    left = pieces[:n] + part + pieces[n + 1 :]
                    if saving > 0 and self.mass(left) >= least:
                        options.append((saving, -loss, left))
            if not options:
                return pieces
            pieces = max(options, key=lambda option: option[:2])[2]

    def polished(self, pieces: Pieces, least: int) -> Pieces:
        """Make each piece the shortest in its place that supplies what the others lack.

        While that helps, 16 times at most.
        """
        for _ in range(16):
            before = pieces
            for n, (i, j) in enumerate(pieces):
                missing = least - self.mass(pieces[:n] + pieces[n + 1 :])
                begin = pieces[n - 1][1] + 1 if n else 0
                end = pieces[n + 1][0] if n + 1 < len(pieces) else len(self.z)
                if missing > 0:
                    found = self.shortest(begin, end, missing)
                    if self.length(*found) < self.length(i, j):
                        pieces = [*pieces[:n], found, *pieces[n + 1 :]]
            if pieces == before:
                break
        return pieces

    def shortest(self, begin: int, end: int, least: int) -> tuple[int, int]:
        """Shortest piece of atoms [begin, end) that holds `least`; ties: most mass, leftmost."""
        windows = []
        for i in range(begin, end):
            enough = [j for j in range(i, end) if self.mass([(i, j)]) >= least]
            windows += [(i, enough[0])] if enough else []
        return min(windows, key=lambda piece: (self.length(*piece), -self.mass([piece])))

    def joined(self, pieces: Pieces) -> Pieces:
        """Join neighbours where what lies between costs no more than a gap."""
        found = pieces[:1]
        for i, j in pieces[1:]:
            last = found[-1]
            if self.z[i] - self.z[last[1]] - self.thickness <= self.gap:
                found[-1] = last[0], j
            else:
                found.append((i, j))
        return found

    def search(self, least: int, max_pieces: int) -> tuple[Pieces, float]:
        """Pieces that hold `least`, and a lower bound of the cost of any."""
        low, high = self.at_price(0.0, max_pieces), self.of_all(max_pieces)
        bound = self.cost(low)
        if self.mass(low) >= least:
            high = low
        widest = self.z[-1] - self.z[0] + self.thickness
        others = max_pieces * (self.gap + self.thickness)
        for _ in range(0 if high is low else 64):
            held = self.mass(low)
            price = (self.cost(high) - self.cost(low)) / float(self.mass(high) - held)
            found = self.at_price(price, max_pieces)
            mass, cost = self.mass(found), self.cost(found)
            rounding = (
                (len(self.z) + 8) * 2.0**-49 * (price * float(sum(self.w)) + (widest + others))
            )
            bound = max(bound, cost + price * float(least - mass) - rounding)
            if not held < mass < self.mass(high):
                break
            if price * float(mass - held) <= cost - self.cost(low):
                break
            low, high = (low, found) if mass >= least else (found, high)
        return self.joined(self.polished(self.trimmed(high, least), least)), bound


def region(
    atoms: Atoms, coverage: float, max_pieces: int = 2, gap: float = 0.0, grid: Grid | None = None
) -> tuple[list[tuple[float, float]], float]:
    """Find the ends of the pieces of a region, and a lower bound of the least cost of any.

    What `RegionProblem` finds for lengths scaled by a power of two, or for numbers of bins; the HDI
    if that is one piece or costs no less.
    """
    edges: list[float] = []
    if grid is None:
        largest = float(max(abs(atoms.values[0]), abs(atoms.values[-1])))
        unit = 1.0 / math.ldexp(1.0, min(1000, 100 - math.frexp(largest)[1]))
        z, w, thickness = [float(x) / unit for x in atoms.values], list(atoms.masses), 0.0
    else:
        unit, thickness, edges = grid.width, 1.0, grid.edges()
        bins = {b: mass for b, mass in enumerate(grid.masses(atoms)) if mass > 0}
        z, w = [float(b) for b in bins], list(bins.values())
        atoms = atoms._replace(values=np.array(z), masses=w, observations=[1] * len(z))
    gap = min(gap / unit, 2 * (z[-1] - z[0] + thickness))
    problem = RegionProblem(z, w, gap, thickness)
    lower, upper = hdi(atoms, coverage)
    found = [(lower, upper)]
    cost = bound = upper - lower + thickness
    if grid is None:
        cost = upper / unit - lower / unit
        # The HDI may be wider than the least width: widths tie, and a quarter is for rounding.
        bound = max(cost - 1.25 * 2.0**-48 * (largest / unit), 0.0)
    if max_pieces > 1:
        pieces, bound = problem.search(needed(atoms, coverage), max_pieces)
        if len(pieces) > 1 and problem.cost(pieces) < cost:
            cost = problem.cost(pieces)
            found = [(float(atoms.values[i]), float(atoms.values[j])) for i, j in pieces]
    if edges:
        found = [(edges[int(lower)], edges[int(upper) + 1]) for lower, upper in found]
    return found, min(bound, cost) * unit


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
    one = atoms.observation
    starts = [float(end - mass) for end, mass in zip(upto, masses, strict=True)]
    if interpolation == "closest_observation":
        n = round(float(total) / one)
        if abs(float(total) - n * one) <= n * tolerance:  # equal masses, rounded down
            one = float(total) / n
        at = level * float(total) / one - 1.5
        before = math.floor(at + tolerance / one)
        halfway = at - before <= tolerance / one
        position = max(0, before if halfway and before % 2 == 1 else before + 1)
        return float(
            values[max(k for k in range(len(values)) if starts[k] <= (position + 0.5) * one)]
        )
    alpha, beta = PLOTTING.get(interpolation, (1, 1))
    at = max(0.0, level * (float(total) + one * (1 - alpha - beta)) + one * (alpha - 1))
    below = max(k for k in range(len(values)) if starts[k] <= at)
    into_gap = at - (float(upto[below]) - one)
    if into_gap <= tolerance or below + 1 == len(values):
        return float(values[below])
    low, high = values[below], values[below + 1]
    if into_gap >= one - tolerance:
        return float(high)
    if interpolation in ("lower", "higher"):
        return float(low if interpolation == "lower" else high)
    if interpolation == "midpoint":
        return float(low / 2 + high / 2)
    if interpolation == "nearest":
        position = math.floor(float(upto[below]) / one + 0.5) - 1
        if abs(into_gap - one / 2) <= tolerance:
            return float(low if position % 2 == 0 else high)
        return float(low if into_gap < one / 2 else high)
    return float(low + into_gap / one * (high - low))


def interval(atoms: Atoms, coverage: float, kind: str = "hdi") -> tuple[float, float]:
    """Prediction interval of a kind."""
    if kind == "hdi":
        return hdi(atoms, coverage)
    if kind == "averaged":
        shortest, tailed = hdi(atoms, coverage), interval(atoms, coverage, "equal_tailed")
        return (shortest[0] + tailed[0]) / 2, (shortest[1] + tailed[1]) / 2
    if kind == "equal_tailed":
        return quantile(atoms, (1 - coverage) / 2), quantile(atoms, (1 + coverage) / 2)
    enough = needed(atoms, coverage)
    n = len(atoms.values)
    if kind == "lower":
        first = max(i for i in range(n) if sum(atoms.masses[i:]) >= enough)
        return float(atoms.values[first]), math.inf
    last = min(j for j in range(n) if sum(atoms.masses[: j + 1]) >= enough)
    return -math.inf, float(atoms.values[last])


def mean(leaves: ArrayLike, y: ArrayLike, query: ArrayLike, **options: Any) -> float:
    """Conditional mean, eq. (11), of whole numbers of steps; arguments as of `merge`.

    Leaves that hold one target alone have it as their mean. Of others steps are counted from the
    smallest target, and a power of two that lets the sums of all trees fit 62 bits. The mean of a
    leaf, weighed by its share of a tree, is cut to a whole number of them. Targets are scaled by a
    power of two to at most 1, so that no difference overflows.
    """
    y = np.asarray(y, dtype=np.float64) + 0.0
    others = np.arange(len(y)) != options.get("leave_out")
    row = leaves_of_row(leaves, y, query, **options)
    if not row.leaves:
        return math.nan
    held = {float(z) for leaf in row.leaves for z in leaf.targets}
    if len(held) == 1:
        return held.pop()
    low, high = float(y[others].min()), float(y[others].max())
    exponent = math.frexp(max(abs(low), abs(high)))[1]

    def scaled(z: float) -> float:
        return math.ldexp(z, -exponent)

    bits = 62 - (np.shape(leaves)[1] - 1).bit_length()
    step = math.frexp(scaled(high) - scaled(low))[1] - bits  # its exponent
    steps = units = 0
    for leaf in row.leaves:
        above = [int(math.ldexp(scaled(z) - scaled(low), -step)) for z in leaf.targets]
        steps += sum(u * k for u, k in zip(leaf.units, above, strict=True)) >> row.shift
        units += sum(leaf.units)
    share = float(steps) / math.ldexp(float(units), -row.shift)
    found = min(scaled(low) + math.ldexp(share, step), scaled(high))
    return min(max(math.ldexp(found, exponent), low), high)


def cdf(atoms: Atoms, y: float, inclusive: bool = True) -> float:
    """P(Y <= y), eq. (14), or P(Y < y)."""
    pairs = zip(atoms.values, atoms.masses, strict=True)
    return sum(m for z, m in pairs if (z <= y if inclusive else z < y)) / atoms.total


def mass_within(atoms: Atoms, lower: float, upper: float) -> float:
    """P(lower <= Y <= upper)."""
    pairs = zip(atoms.values, atoms.masses, strict=True)
    return sum(m for z, m in pairs if lower <= z <= upper) / atoms.total


def tree_spread(leaves: ArrayLike, y: ArrayLike, query: ArrayLike, **options: Any) -> float:
    """Return the standard deviation of the means of a row's leaves; arguments as of `merge`."""
    alone = [np.where(own, query, -1) for own in np.eye(len(np.asarray(query)), dtype=bool)]
    means = [mean(leaves, y, tree, **options) for tree in alone]
    return float(np.std([m for m in means if not math.isnan(m)]))


def draw(atoms: Atoms, u: float) -> float:
    """Smallest atom whose cumulative mass exceeds the share u in [0, 1)."""
    upto = np.cumsum(atoms.masses, dtype=object)
    units = min(int(u * float(atoms.total)), atoms.total - 1)
    return float(atoms.values[next(k for k in range(len(upto)) if upto[k] > units)])


def weighted_atoms(values: ArrayLike, weights: ArrayLike | None = None) -> Atoms:
    """Atoms of a weighted sample in any order."""
    values = np.asarray(values, dtype=np.float64)
    integers = [1] * len(values) if weights is None else integer_weights(weights)
    members: dict[float, int] = {}
    copies: dict[float, int] = {}
    for value, weight in zip(values, integers, strict=True):
        if weight > 0:
            members[value + 0.0] = members.get(value + 0.0, 0) + weight
            copies[value + 0.0] = copies.get(value + 0.0, 0) + 1
    targets = sorted(members)
    units = apportion([members[z] for z in targets], WIDE_SHIFT)
    return Atoms(np.array(targets), units, 1, WIDE_SHIFT, [copies[z] for z in targets])


def weighted_hdi(
    values: ArrayLike, weights: ArrayLike | None = None, coverage: float = 0.9
) -> tuple[float, float]:
    """Shortest interval that holds a share of a weighted sample."""
    return hdi(weighted_atoms(values, weights), coverage)


def moving_quantiles(
    start: ArrayLike,
    scores: ArrayLike,
    size: int,
    target: float,
    miss: float,
    rate: float,
) -> tuple[list[float], float]:
    """Return the conformal quantile before each score is taken in; see `hdicore._core`."""
    window: list[float] = np.asarray(start, dtype=np.float64).tolist()[-size:]
    quantiles: list[float] = []
    for score in np.asarray(scores, dtype=np.float64).tolist():
        m = len(window)
        k = max(1, math.ceil((m + 1) * (1 - miss) - 1e-9))
        quantiles.append(math.inf if k > m else sorted(window)[k - 1])
        miss += rate * (target - (score > quantiles[-1]))
        window = [*window, score][-size:]
    return quantiles, miss


def out_of_bag_means(
    leaves: ArrayLike,
    counts: ArrayLike,
    y: ArrayLike,
    n_leaves: ArrayLike,
    draw_weight: ArrayLike | None = None,
) -> tuple[list[float], list[int], list[float], list[float]]:
    """Average over the leaves of rows, and over the rows of leaves; see `hdicore._core`.

    Leaves and counts are (n_trees, n).
    """
    leaves, counts, y = np.asarray(leaves), np.asarray(counts), np.asarray(y, dtype=np.float64)
    draws = np.ones(len(y)) if draw_weight is None else np.asarray(draw_weight, dtype=np.float64)
    leaf_means, leaf_weight = [], []
    sums, n_oob = [0.0] * len(y), [0] * len(y)
    for own, times, n in zip(leaves, counts, np.asarray(n_leaves), strict=True):
        means = []
        for leaf in range(n):
            total = sum_y = 0.0
            for i in np.flatnonzero(own == leaf):
                weight = float(times[i]) * draws[i]
                total, sum_y = total + weight, sum_y + weight * y[i]
            means.append(sum_y / total if total > 0 else 0.0)
            leaf_weight.append(total)
        for i in np.flatnonzero(times == 0):
            sums[i] += means[own[i]]
            n_oob[i] += 1
        leaf_means += means
    centres = [total / max(n, 1) for total, n in zip(sums, n_oob, strict=True)]
    return centres, n_oob, leaf_means, leaf_weight


def centre(
    leaves: ArrayLike, counts: ArrayLike, row: int, draw_weight: ArrayLike
) -> dict[int, float]:
    """Weight of each training row's target in the out-of-bag mean of one of them.

    The mean, over the trees that did not draw the row, of the mean of the rows that a tree drew
    into its leaf. Empty if every tree drew it.
    """
    leaves, counts = np.asarray(leaves), np.asarray(counts)
    drawn = counts * np.asarray(draw_weight, dtype=np.float64)[:, None]
    trees = [t for t in range(leaves.shape[1]) if counts[row, t] == 0]
    weights: dict[int, float] = {}
    for t in trees:
        members = [j for j in range(len(leaves)) if leaves[j, t] == leaves[row, t]]
        total = sum(drawn[j, t] for j in members)
        for j in members:
            if counts[j, t] > 0:
                weights[j] = weights.get(j, 0.0) + float(drawn[j, t] / total) / len(trees)
    return weights


def centred_atoms(
    leaves: ArrayLike,
    counts: ArrayLike,
    y: ArrayLike,
    row: int,
    *,
    draw_weight: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    scale: float = 1.0,
    offsets: ArrayLike | None = None,
    order: ArrayLike | None = None,
) -> Atoms:
    """Atoms s_i + (y_j - s_j) of training row i, from the trees that did not draw it.

    s_j = scale c_j + offsets[j]. Row i is left out of its leaves, and its target out of each c_j.
    Leaves share their units out to rows in the given order, by default that of the rows.
    """
    leaves, counts, y = np.asarray(leaves), np.asarray(counts), np.asarray(y, dtype=np.float64)
    weight = np.ones(len(y)) if draw_weight is None else np.asarray(draw_weight, dtype=np.float64)
    rows = np.arange(len(y)) if order is None else np.asarray(order)
    others = merge(
        leaves,
        np.argsort(rows).astype(np.float64),
        np.where(counts[row] > 0, -1, leaves[row]),
        sample_weight=sample_weight,
        leave_out=row,
    )
    added = np.zeros(len(y)) if offsets is None else np.asarray(offsets, dtype=np.float64)
    own = sum(w * y[j] for j, w in centre(leaves, counts, row, weight).items())
    members: dict[float, int] = {}
    for value, mass in zip(others.values, others.masses, strict=True):
        j = int(rows[int(value)])
        weights = centre(leaves, counts, j, weight)
        v = weights.get(row, 0.0)
        mean = sum(w * y[k] for k, w in weights.items())
        others_mean = (mean - v * y[row]) / max(1 - v, 0.05)
        z = scale * own + added[row] + y[j] - (scale * others_mean + added[j])
        members[z] = members.get(z, 0) + mass
    values = sorted(members)
    masses = [members[z] for z in values]
    return Atoms(np.array(values), masses, others.n_trees, others.shift, [1] * len(values))
