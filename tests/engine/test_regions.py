"""Regions of few pieces: the slow twin, all sets of pieces, numbers known exactly, bad input."""

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from hdicore import LeafIndex, Scorer

from .. import reference
from ..oracle import answers_by_instructions, as_forest, one_leaf_index

Z, W = [0, 1, 2, 10, 11, 12], [3, 4, 3, 2, 5, 3]


def pieces_of(found, at=0):
    """Pieces of one row of a result, as a list of pairs."""
    offsets, ends, _ = found
    return [tuple(piece) for piece in ends[offsets[at] : offsets[at + 1]].tolist()]


def cost_of(pieces, gap):
    return sum(upper - lower for lower, upper in pieces) + gap * (len(pieces) - 1)


@pytest.mark.parametrize(
    ("least", "max_pieces", "pieces", "bound"),
    [
        (16, 1, [(0, 11)], 11),
        (16, 2, [(0, 2), (11, 12)], 10 / 3),
        (16, 3, [(0, 2), (11, 12)], 10 / 3),
        (18, 2, [(0, 2), (11, 12)], 4),
        (19, 2, [(0, 2), (10, 12)], 9 / 2),
        (12, 2, [(1, 1), (11, 12)], 2),
    ],
)
def test_regions_that_are_known(least, max_pieces, pieces, bound):
    found = one_leaf_index(Z, sample_weight=W).regions([[0]], least / 20, max_pieces, 1.0)
    assert pieces_of(found) == pieces
    assert found[2][0] <= cost_of(pieces, 1)
    np.testing.assert_allclose(found[2], bound, rtol=1e-6)


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


def exact_by_mass(z, w, least, max_pieces, gap):
    """Least cost for every mass, O(atoms * pieces * mass)."""
    total = sum(w)
    open_, shut = np.full((2, max_pieces + 1, total + 1), np.inf)
    shut[0, 0] = 0
    for i in range(len(z)):
        step = z[i] - z[i - 1] if i else 0
        new = np.full_like(open_, np.inf)
        for p in range(1, max_pieces + 1):
            come = np.minimum(open_[p] + step, shut[p - 1] + (gap if p > 1 else 0))
            new[p, w[i] :] = come[: total + 1 - w[i]]
        open_, shut = new, np.minimum(shut, new)
    return float(shut[:, least:].min())


def test_the_recursion_finds_the_most_surplus_of_all_sets_of_pieces():
    rng = np.random.default_rng(0)
    for k in range(300):
        z, w, max_pieces, gap = random_case(rng)
        thickness, price = float(k % 2), float(rng.integers(1, 40)) / 8  # exact in doubles
        problem = reference.RegionProblem(z.tolist(), w, gap, thickness)
        found = problem.at_price(price, max_pieces)
        states = {}
        for pieces in all_sets(len(z), max_pieces):
            mass, cost = exact_mass_and_cost(z, w, pieces, gap, thickness)
            states[tuple(pieces)] = Fraction(price) * mass - cost, mass, -len(pieces)
        assert states[tuple(found)] == max(states.values())


def test_most_small_regions_cost_least_and_every_bound_holds():
    rng = np.random.default_rng(1)
    n_least = 0
    for _ in range(400):
        z, w, max_pieces, gap = random_case(rng)
        least = int(rng.integers(1, sum(w) + 1))
        costs = [exact_mass_and_cost(z, w, p, gap) for p in all_sets(len(z), max_pieces)]
        optimum = min(cost for mass, cost in costs if mass >= least)
        assert optimum == exact_by_mass(z, w, least, max_pieces, gap)
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
    assert n_least >= 390


@pytest.mark.parametrize("exponent", [30, 48, 50, 52, 53, 60, 900, -1000])
def test_bounds_hold_where_widths_tie_that_differ(exponent):
    """From 2^48 on widths of whole numbers tie that differ by 1 and more."""
    rng = np.random.default_rng(abs(exponent))
    n_lower = 0
    for k in range(150):
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


def test_two_normals():
    rng = np.random.default_rng(2)
    ratios = []
    for _ in range(30):
        first = rng.random(60) < 0.5
        z = np.sort(np.where(first, rng.normal(-3, 0.5, 60), rng.normal(3, 0.5, 60)))
        w = rng.multinomial(400, np.ones(60) / 60).clip(1).tolist()
        least = math.ceil(0.8 * sum(w))
        atoms = reference.Atoms(z, w, 0, 0, [1] * 60)
        pieces, bound = reference.region(atoms, least / sum(w), 2, 0.3)
        optimum = exact_by_mass(z.tolist(), w, least, 2, 0.3)
        assert len(pieces) == 2
        assert bound <= optimum + 1e-12
        ratios.append(cost_of(pieces, 0.3) / optimum)
        assert bound >= 0.9 * optimum
    assert np.mean(ratios) < 1.03
    assert max(ratios) <= 1.1


def cases(targets):
    """Training rows with such targets, and ways to build an index of them."""
    rng = np.random.default_rng(0)
    for n, m, weighted, pooled in product((1, 12, 30), (1, 3), (False, True), (False, True)):
        y = rng.normal(size=n)
        y = {
            "spread": y,
            "modes": np.where(rng.random(n) < 0.5, y / 4, 5 + y / 4),
            "integers": np.rint(2 * y),
            "decimals": rng.integers(0, 30, n) / 10,
            "huge": np.sign(y) * 10.0 ** rng.integers(300, 308, n),
            "tiny": y * 1e-310,
        }[targets]
        leaves = rng.integers(0, 2, (n, m))
        options = {"pooled": pooled}
        if weighted:
            weights = rng.integers(0, 3, n).astype(float)
            weights[0] = 1
            options["sample_weight"] = weights
        yield leaves, y, options


@pytest.mark.parametrize("targets", ["spread", "modes", "integers", "decimals", "huge", "tiny"])
def test_equal_to_the_twin(targets):
    rng = np.random.default_rng(1)
    for leaves, y, options in cases(targets):
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


@pytest.fixture(scope="module", params=[1, 6, 50, 500])
def scorer(request):
    """Trees with such leaves, and rows to score."""
    rng = np.random.default_rng(request.param)
    X = rng.random((2000, 3), dtype=np.float32)
    y = 10 * X[:, 0] + rng.gamma(1, 3, 2000) + np.where(rng.random(2000) < 0.4, 12, 0)
    y = np.round(y, 1 if request.param == 6 else 9)
    trees = ExtraTreesRegressor(5, min_samples_leaf=request.param, random_state=0).fit(X, y)
    forest = as_forest(trees)
    index = LeafIndex(forest.leaves(X), y, n_leaves=forest.n_leaves, keep_row_weights=True)
    return Scorer(forest, index), rng.random((700, 3), dtype=np.float32)


GRIDS = [None, (-5.0, 45.0, 100, 0.0), (-5.0, 45.0, 100, 0.7), (5.0, 10.0, 7, 9.0)]


def same_bits(a, b):
    return [x.tobytes() for x in a] == [x.tobytes() for x in b]


def test_one_piece_is_the_hdi(scorer):
    made, X = scorer
    for coverage in (0.2, 0.7, 0.9, 1.0):
        offsets, ends, bounds = made.regions(X, coverage, 1, 5.0)
        assert ends.tobytes() == made.intervals(X, coverage).tobytes()
        np.testing.assert_array_equal(offsets, np.arange(701))
        tied = ends[:, 1] - ends[:, 0] - bounds
        assert ((tied >= 0) & (tied <= 2.0**-47 * np.abs(made.index.atoms()).max())).all()


def test_rows_hold_the_coverage_at_no_more_than_the_cost_of_the_hdi(scorer):
    made, X = scorer
    leaves = made.forest.leaves(X)
    for coverage, gap in product((0.5, 0.9), (0.0, 0.5, 3.0)):
        offsets, ends, bounds = made.regions(X, coverage, 3, gap)
        hdi = made.intervals(X, coverage)
        rows = np.repeat(np.arange(700), np.diff(offsets))
        length = np.bincount(rows, ends[:, 1] - ends[:, 0])
        cost = length + gap * (np.diff(offsets) - 1)
        assert (cost <= hdi[:, 1] - hdi[:, 0] + 1e-12).all()
        assert (bounds <= cost + 1e-12).all()
        assert (ends[:, 0] <= ends[:, 1]).all()
        assert (ends[1:, 0] > ends[:-1, 1])[rows[1:] == rows[:-1]].all()
        held = made.index.cdf(leaves[rows], ends[:, 1])
        held -= made.index.cdf(leaves[rows], ends[:, 0], inclusive=False)
        assert (np.bincount(rows, held) >= coverage - 1e-8).all()


def test_rows_of_large_leaves_equal_the_twin(scorer):
    made, X = scorer
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


@pytest.mark.parametrize("grid", GRIDS)
def test_threads_blocks_and_the_order_of_trees_change_no_bit(scorer, set_block_rows, grid):
    made, X = scorer
    set_block_rows(0)
    expected = made.regions(X, 0.7, 3, 0.2, grid=grid, n_threads=1)
    leaves = made.forest.leaves(X)
    assert same_bits(made.index.regions(leaves, 0.7, 3, 0.2, grid=grid), expected)
    for n_threads, block_rows in product((1, 2), (1, 7, 10**18)):
        set_block_rows(block_rows)
        assert same_bits(made.regions(X, 0.7, 3, 0.2, grid=grid, n_threads=n_threads), expected)
    order = [3, 1, 4, 0, 2]
    y = np.random.default_rng(0).choice(made.index.atoms(), len(X))
    one, other = LeafIndex(leaves, y), LeafIndex(leaves[:, order], y)
    found = one.regions(leaves, 0.7, 3, 0.2, grid=grid)
    assert same_bits(found, other.regions(leaves[:, order], 0.7, 3, 0.2, grid=grid))


DIGEST = """
import hashlib
import numpy as np
from hdicore import LeafIndex

rng = np.random.default_rng(0)
for n_leaves in (500, 60, 4):
    leaves = rng.integers(0, n_leaves, (4000, 12))
    index = LeafIndex(leaves, rng.normal(size=4000))
    for k, grid in ((1, None), (2, None), (8, None), (2, (-3, 3, 100, 0.1)), (3, (-3, 3, 50, 0))):
        for a in index.regions(leaves[:100], 0.8, k, 0.01, grid=grid):
            print(hashlib.sha256(a.tobytes()).hexdigest())
"""


def test_instructions_change_no_bit():
    assert len(answers_by_instructions(DIGEST)) == 1


def test_a_row_left_out(scorer):
    made, X = scorer
    leaves = made.forest.leaves(X)
    y = np.random.default_rng(6).normal(size=len(X))
    index = LeafIndex(leaves, y, n_leaves=made.forest.n_leaves, keep_row_weights=True)
    made, rows = Scorer(made.forest, index), np.arange(0, 700, 29)
    found = made.index.regions(leaves[rows], 0.8, leave_out=rows)
    assert same_bits(found, made.regions(X[rows], 0.8, leave_out=rows))
    assert not same_bits(found, made.index.regions(leaves[rows], 0.8))


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


def test_a_grid_of_two_modes():
    rng = np.random.default_rng(4)
    y = np.where(rng.random(2000) < 0.5, rng.normal(-3, 0.5, 2000), rng.normal(3, 0.5, 2000))
    found = one_leaf_index(y).regions([[0]], 0.8, 3, 0.3, grid=(-6.0, 6.0, 120, 0.15))
    (a, b), (c, d) = pieces_of(found)
    assert -4.2 < a < -3.2 < -2.8 < b < -1.8
    assert 1.8 < c < 2.8 < 3.2 < d < 4.2
    assert found[2][0] <= (b - a) + (d - c) + 0.3
    np.testing.assert_allclose(np.array([a, b, c, d]) * 10, np.rint(np.array([a, b, c, d]) * 10))


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
        (("much",), "coverage must be a number"),
        ((0.5, 0), r"max_pieces must be a whole number in \[1, 8\], got 0"),
        ((0.5, 9), r"max_pieces must be a whole number in \[1, 8\], got 9"),
        ((0.5, 1.5), r"max_pieces must be a whole number in \[1, 8\], got 1.5"),
        ((0.5, 2, -1.0), "gap must be at least 0, got -1$"),
        ((0.5, 2, np.inf), "gap must be finite, got inf$"),
        ((0.5, 2, np.nan), "gap must be finite, got nan$"),
        ((0.5, 2, [1.0]), r"gap must be a number, got \[1.0\]"),
        ((0.5, 2, None), "gap must be a number, got None"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        one_leaf_index([1.0, 2.0]).regions([[0]], *arguments)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (5, r"grid must be \(low, high, n_bins, bandwidth\), got 5"),
        ("abcd", r"grid must be \(low, high, n_bins, bandwidth\), got 'abcd'"),
        ((0, 1, 5), r"grid must be \(low, high, n_bins, bandwidth\), got \(0, 1, 5\)"),
        ((1, 0, 5, 0), "grid must run from low to a higher, finite high, got 1 and 0"),
        ((-1e308, 1e308, 5, 0), "grid must run from low to a higher, finite high"),
        ((np.nan, 1, 5, 0), "low end of grid must be finite, got nan"),
        ((0, np.inf, 5, 0), "high end of grid must be finite, got inf"),
        ((0, 1, 0, 0), r"n_bins of grid must be a whole number in \[1, 4096\], got 0"),
        ((0, 1, 2.5, 0), r"n_bins of grid must be a whole number in \[1, 4096\], got 2.5"),
        ((0, 1, 5, -1), "bandwidth of grid must be at least 0 and finite, got -1"),
        ((0, 1, 5, np.nan), "bandwidth of grid must be finite, got nan"),
        ((0, 1, 5, "wide"), "bandwidth of grid must be a number, got 'wide'"),
        ((1, 1 + 2**-50, 4096, 0), "grid must have bins whose edges differ"),
    ],
)
def test_bad_grids_are_refused(grid, message):
    with pytest.raises(ValueError, match=message):
        one_leaf_index([1.0, 2.0]).regions([[0]], 0.5, grid=grid)
