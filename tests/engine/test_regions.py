"""Regions of few pieces: the slow twin, all sets of pieces, numbers known exactly, bad input."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from hdicore import LeafIndex

from .. import reference
from ..oracle import one_leaf_index, training_cases


def pieces_of(found, at=0):
    """Pieces of one row of a result, as a list of pairs."""
    offsets, ends, _ = found
    return [tuple(piece) for piece in ends[offsets[at] : offsets[at + 1]].tolist()]


def cost_of(pieces, gap):
    return sum(upper - lower for lower, upper in pieces) + gap * (len(pieces) - 1)


def random_case(rng, n_most=8):
    s = int(rng.integers(1, n_most + 1))
    z, w = np.cumsum(rng.integers(1, 12, s)).astype(float), rng.integers(1, 7, s).tolist()
    return z, w, int(rng.integers(1, 4)), float(rng.choice([0, 1, 3]))


def all_sets(n, max_pieces):
    """All sets of at most so many pieces of n atoms."""
    for p in range(1, max_pieces + 1):
        for cut in combinations(range(n + p), 2 * p):
            yield [(cut[2 * q] - q, cut[2 * q + 1] - 1 - q) for q in range(p)]


def exact_mass_and_cost(z, w, pieces, gap, thickness=0):
    mass = sum(sum(w[i : j + 1]) for i, j in pieces)
    length = sum(Fraction(z[j]) - Fraction(z[i]) + thickness for i, j in pieces)
    return mass, length + Fraction(gap) * (len(pieces) - 1)


def test_most_small_regions_cost_least_and_every_bound_holds():
    rng = np.random.default_rng(1)
    n_least = 0
    for _ in range(80):
        z, w, max_pieces, gap = random_case(rng)
        least = int(rng.integers(1, sum(w) + 1))
        costs = [exact_mass_and_cost(z, w, p, gap) for p in all_sets(len(z), max_pieces)]
        optimum = min(cost for mass, cost in costs if mass >= least)
        atoms = reference.Atoms(z, w, 0, 0, [1] * len(z))
        coverage = least / sum(w)
        assert reference.needed(atoms, coverage) == least
        pieces, bound = reference.region(atoms, coverage, max_pieces, gap)
        cost = cost_of(pieces, gap)
        held = sum(m for x, m in zip(z, w, strict=True) if any(a <= x <= b for a, b in pieces))
        assert held >= least
        assert Fraction(bound) <= optimum <= cost
        lower, upper = reference.hdi(atoms, coverage)
        assert cost <= upper - lower
        if max_pieces == 1:
            assert pieces == [(lower, upper)]
        n_least += cost == optimum
        # By the engine, whose masses are floored shares of a leaf.
        found = one_leaf_index(z, sample_weight=w).regions([[0]], coverage, max_pieces, gap)
        assert found[2][0] <= cost_of(pieces_of(found), gap) <= upper - lower
    assert n_least >= 78


@pytest.mark.parametrize("exponent", [30, 48, 50, 52, 53, 60, 900, -1000])
def test_bounds_hold_where_widths_tie_that_differ(exponent):
    """From 2^48 on widths of whole numbers tie that differ by 1 and more."""
    rng = np.random.default_rng(abs(exponent))
    n_lower = 0
    for k in range(25):
        z, w, max_pieces, _ = random_case(rng, 7)
        unit = 2.0 ** max(0, exponent - 52)
        if exponent < 0:
            z = np.array(z) * 2.0**exponent
        else:
            z = np.unique((2.0**exponent - np.array(z) * unit) * (-1) ** k)
        w, unit = w[: len(z)], 2.0**exponent if exponent < 0 else unit
        gap = float(rng.choice([0, 1, 3])) * unit
        least = int(rng.integers(1, sum(w) + 1))
        costs = [exact_mass_and_cost(z.tolist(), w, p, gap) for p in all_sets(len(z), max_pieces)]
        optimum = min(cost for mass, cost in costs if mass >= least)
        for pieces_at_most in {1, max_pieces}:
            found = one_leaf_index(z, sample_weight=w).regions(
                [[0]], least / sum(w), pieces_at_most, gap
            )
            cost = sum(Fraction(b) - Fraction(a) for a, b in pieces_of(found))
            cost += Fraction(gap) * (len(pieces_of(found)) - 1)
            if pieces_at_most == max_pieces:
                assert 0 <= Fraction(found[2][0]) <= optimum
            assert 0 <= found[2][0] <= cost
            n_lower += pieces_at_most == 1 and found[2][0] < cost
            tolerance = Fraction(1.5 * 2.0**-48) * Fraction(float(np.abs(z).max()))
            assert pieces_at_most > 1 or cost - Fraction(found[2][0]) <= tolerance
    assert n_lower > 0


@pytest.mark.parametrize("targets", ["spread", "modes", "integers", "decimals", "huge", "tiny"])
def test_equal_to_the_twin(targets):
    rng = np.random.default_rng(1)
    for leaves, y, options in training_cases(targets):
        index = LeafIndex(leaves, y, **options)
        query = leaves[rng.integers(0, len(y), 3)]
        query[0] = -1
        scale = (np.ptp(y) or 1e-2) if targets != "huge" else 1e307
        low = float(np.clip(y.min() - 0.1 * scale, -8e307, 8e307))
        grids = [None, None, (low, float(min(low + 1.1 * scale, 8e307)), 23, 0.0)]
        bandwidth = min(float(rng.choice([0.01, 0.08, 0.5, 100])) * float(scale), 1e308)
        grids.append((*grids[2][:3], bandwidth))
        for grid in grids:
            coverage = float(rng.choice([0.05, 0.3, 0.7, 0.9, 1]))
            max_pieces = int(rng.choice([1, 2, 3, 8]))
            gap = float(rng.choice([0, 0.02, 0.2, 1e300])) * min(float(scale), 1.0)
            offsets, ends, bounds = index.regions(query, coverage, max_pieces, gap, grid=grid)
            assert (offsets.dtype, offsets[0], offsets[-1]) == (np.int64, 0, len(ends))
            for i, leaf in enumerate(query):
                atoms = reference.merge(leaves, y, leaf, **options)
                if atoms.n_trees == 0:
                    assert offsets[i] == offsets[i + 1]
                    assert np.isnan(bounds[i])
                    continue
                bins = None if grid is None else reference.Grid(*grid)
                pieces, bound = reference.region(atoms, coverage, max_pieces, gap, bins)
                assert pieces_of((offsets, ends, bounds), i) == pieces, (atoms, coverage, grid)
                assert bounds[i] == bound
                if targets not in ("huge", "tiny"):  # whose sums overflow, or are rounded to 0
                    assert bound <= cost_of(pieces, gap) * (1 + 1e-12)


GRIDS = [None, (-5.0, 45.0, 100, 0.0), (-5.0, 45.0, 100, 0.7), (5.0, 10.0, 7, 9.0)]


def test_one_piece_is_the_hdi(scorer_of_sizes):
    made, X = scorer_of_sizes
    for coverage in (0.2, 0.7, 0.9, 1.0):
        offsets, ends, bounds = made.regions(X, coverage, 1, 5.0)
        assert ends.tobytes() == made.intervals(X, coverage).tobytes()
        np.testing.assert_array_equal(offsets, np.arange(501))
        tied = ends[:, 1] - ends[:, 0] - bounds
        assert ((tied >= 0) & (tied <= 2.0**-47 * np.abs(made.index.atoms()).max())).all()


def test_rows_of_large_leaves_equal_the_twin(scorer_of_sizes):
    made, X = scorer_of_sizes
    query = made.forest.leaves(X[:2])
    for (max_pieces, coverage), grid in product(((2, 0.6), (4, 0.9)), GRIDS):
        found = made.regions(X[:2], coverage, max_pieces, 0.4, grid=grid)
        for i, leaf in enumerate(query):
            _, at, weights = made.index.weights(leaf[None])
            if len(at) > 100:
                continue  # slow
            masses = [round(w * (5 << 31)) for w in weights]
            atoms = reference.Atoms(made.index.atoms()[at], masses, 5, 31, [1] * len(at))
            bins = None if grid is None else reference.Grid(*grid)
            pieces, bound = reference.region(atoms, coverage, max_pieces, 0.4, bins)
            assert pieces_of(found, i) == pieces
            assert found[2][i] == bound


def test_bins_keep_all_mass_and_smoothing_is_gaussian():
    rng = np.random.default_rng(3)
    atoms = reference.Atoms(
        np.sort(rng.normal(size=40)), rng.integers(1, 2**30, 40).tolist(), 1, 31, [1] * 40
    )
    for bandwidth in (0.0, 0.05, 0.3, 100.0):
        grid = reference.Grid(-2.0, 2.0, 40, bandwidth)
        masses = grid.masses(atoms)
        assert sum(masses) == atoms.total
        assert min(masses) >= 0
        plain, _ = np.histogram(
            atoms.values.clip(-2, 1.999), np.array(grid.edges()), weights=atoms.masses
        )
        if bandwidth == 0:
            np.testing.assert_array_equal(masses, plain)
            continue
        d = np.arange(40) * 0.1 / bandwidth
        kernel = np.exp(-(d**2) / 2) * (np.arange(40) <= 4 * bandwidth / 0.1)
        matrix = kernel[abs(np.subtract.outer(np.arange(40), np.arange(40)))]
        expected = (matrix / matrix.sum(0)) @ plain
        np.testing.assert_allclose(masses, expected, atol=1.01)


def test_atoms_outside_the_grid_count_in_its_end_bins():
    found = one_leaf_index([-9.0, 20.0, 20.0, 20.0]).regions([[0]], 0.7, grid=(0, 1, 4, 0.0))
    assert pieces_of(found) == [(0.75, 1.0)]
    found = one_leaf_index([-9.0, 20.0]).regions([[0]], 1.0, grid=(0, 1, 4, 0.0))
    assert pieces_of(found) == [(0.0, 0.25), (0.75, 1.0)]


def test_bins_that_touch_are_one_piece():
    found = one_leaf_index([0.0, 1.0, 2.0, 3.0]).regions([[0]], 1.0, 4, grid=(0, 4, 4, 0.0))
    assert pieces_of(found) == [(0.0, 4.0)]
    found = one_leaf_index([0.0, 1.0, 2.0, 3.0]).regions([[0]], 1.0, 4)
    assert pieces_of(found) == [(float(k), float(k)) for k in range(4)]


def test_one_atom():
    for value in (0.0, 1e308, -5e-324):
        for max_pieces, gap in product((1, 2, 8), (0.0, 1e308)):
            found = one_leaf_index(np.full(4, value)).regions([[0]], 1.0, max_pieces, gap)
            assert pieces_of(found) == [(value, value)]
            assert found[2][0] == 0


def test_several_outputs_and_no_rows():
    rng = np.random.default_rng(5)
    leaves, y = rng.integers(0, 3, (40, 5)), rng.normal(size=(40, 2))
    index = LeafIndex(leaves, y)
    found = index.regions(leaves, 0.6)
    assert (found[0].shape, found[2].shape) == ((81,), (40, 2))
    for o in range(2):
        of_one = LeafIndex(leaves, y[:, o]).regions(leaves, 0.6)
        np.testing.assert_array_equal(found[2][:, o], of_one[2])
        for i in range(40):
            assert pieces_of(found, 2 * i + o) == pieces_of(of_one, i)
    offsets, ends, bounds = index.regions(leaves[:0], 0.6)
    assert (offsets.tolist(), ends.shape, bounds.shape) == ([0], (0, 2), (0, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0,), "coverage must be above 0 and at most 1, got 0$"),
        ((80,), r"coverage must be above 0 and at most 1, got 80 \(did you mean 0.8\?\)"),
        ((np.nan,), "coverage must be above 0 and at most 1, got nan"),
        (([0.5, 0.9],), "coverage must be one number"),
        ((0.5, 9), r"max_pieces must be a whole number in \[1, 8\], got 9"),
        ((0.5, 1.5), r"max_pieces must be a whole number in \[1, 8\], got 1.5"),
        ((0.5, 2, -1.0), "gap must be at least 0, got -1$"),
        ((0.5, 2, np.nan), "gap must be finite, got nan$"),
        ((0.5, 2, [1.0]), r"gap must be a number, got \[1.0\]"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        one_leaf_index([1.0, 2.0]).regions([[0]], *arguments)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (5, r"grid must be \(low, high, n_bins, bandwidth\), got 5"),
        ((0, 1, 5), r"grid must be \(low, high, n_bins, bandwidth\), got \(0, 1, 5\)"),
        ((1, 0, 5, 0), "grid must run from low to a higher, finite high, got 1 and 0"),
        ((-1e308, 1e308, 5, 0), "grid must run from low to a higher, finite high"),
        ((np.nan, 1, 5, 0), "low end of grid must be finite, got nan"),
        ((0, 1, 0, 0), r"n_bins of grid must be a whole number in \[1, 4096\], got 0"),
        ((0, 1, 5, -1), "bandwidth of grid must be at least 0 and finite, got -1"),
        ((0, 1, 5, np.nan), "bandwidth of grid must be finite, got nan"),
        ((0, 1, 5, "wide"), "bandwidth of grid must be a number, got 'wide'"),
        ((1, 1 + 2**-50, 4096, 0), "grid must have bins whose edges differ"),
    ],
)
def test_bad_grids_are_refused(grid, message):
    with pytest.raises(ValueError, match=message):
        one_leaf_index([1.0, 2.0]).regions([[0]], 0.5, grid=grid)
