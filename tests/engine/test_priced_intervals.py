"""Intervals at prices: the slow twin, numbers known exactly, one price for many rows, bad input."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from hdicore import LeafIndex, Scorer

from .. import reference
from ..oracle import answers_by_instructions, as_forest, one_leaf_index

# Values and weights, 10 in all, of three rows.
ROWS = (([0, 1, 2, 3], [4, 3, 2, 1]), ([0, 5, 6, 10], [1, 5, 3, 1]), ([0, 2, 9, 30], [2, 5, 2, 1]))


@pytest.mark.parametrize(
    ("row", "at_prices"),
    [
        (ROWS[0], {2.5: (0, 0, 4), 10: (0, 3, 10), 40: (0, 3, 10)}),
        (ROWS[1], {2.5: (5, 5, 5), 10: (5, 6, 8), 40: (5, 10, 9)}),
        (ROWS[2], {2.5: (2, 2, 5), 10: (0, 2, 7), 40: (0, 9, 9)}),
    ],
)
def test_intervals_that_are_known(row, at_prices):
    mass = np.empty((1, 3))
    ends, units = one_leaf_index(row[0], sample_weight=row[1]).priced_intervals(
        [[0]], list(at_prices), mass=mass
    )
    expected = np.array(list(at_prices.values()))
    np.testing.assert_array_equal(ends[0], expected[:, :2].T)
    np.testing.assert_allclose(mass[0], expected[:, 2] / 10, atol=1e-9)
    np.testing.assert_array_equal(mass, units / 2**31)


@pytest.mark.parametrize(
    ("price", "least", "widths", "masses"),
    [
        (10, 0.0, (3, 1, 2), (10, 8, 7)),  # 24 of 30 need a width of 5: a segment of the hull less
        (5, 0.7, (2, 1, 2), (9, 8, 7)),
    ],
)
def test_one_price_for_three_rows(price, least, widths, masses):
    for (values, weights), width, held in zip(ROWS, widths, masses, strict=True):
        index = one_leaf_index(values, sample_weight=weights)
        (ends,), (units,) = index.priced_intervals([[0]], price, least)
        assert (ends[1] - ends[0], round(units / 2**31 * 10)) == (width, held)


def test_the_masses_are_those_of_the_lower_hull():
    hulls = [
        {4: 0, 7: 1, 9: 2, 10: 3},
        {5: 0, 8: 1, 9: 5, 10: 10},
        {5: 0, 7: 2, 9: 9, 10: 30},
    ]
    prices = np.geomspace(0.1, 1000, 200)
    for row, hull in zip(ROWS, hulls, strict=True):
        ends, units = one_leaf_index(row[0], sample_weight=row[1]).priced_intervals([[0]], prices)
        held = np.rint(units[0] / 2**31 * 10).astype(int)
        found = dict(zip(held.tolist(), (ends[0, 1] - ends[0, 0]).tolist(), strict=True))
        assert found == hull
        assert (np.diff(held) >= 0).all()


def cases(targets):
    """Training rows with such targets, and ways to build an index of them."""
    rng = np.random.default_rng(0)
    for n, m, weighted, pooled in product((1, 12, 30), (1, 3), (False, True), (False, True)):
        y = rng.normal(size=n)
        y = {
            "spread": y,
            "integers": np.rint(2 * y),
            "decimals": rng.integers(0, 30, n) / 10,
            "huge": np.sign(y) * 10.0 ** rng.integers(300, 308, n),
        }[targets]
        leaves = rng.integers(0, 2, (n, m))
        options = {"pooled": pooled}
        if weighted:
            weights = rng.integers(0, 3, n).astype(float)
            weights[0] = 1
            options["sample_weight"] = weights
        yield leaves, y, options


@pytest.mark.parametrize("targets", ["spread", "integers", "decimals", "huge"])
def test_equal_to_the_twin(targets):
    rng = np.random.default_rng(1)
    for leaves, y, options in cases(targets):
        index = LeafIndex(leaves, y, **options)
        query = leaves[rng.integers(0, len(y), 3)]
        query[0, 0] = -1
        step = max(np.ptp(y), 1e-3) if np.ptp(y) < 1e300 else 1e307
        prices = [step, *np.exp(rng.normal(size=3)) * step, 1.0, 2.0**-1074, 1e308]
        least = float(rng.choice([0, 0.3, 0.7, 1]))
        mass = np.empty((3, len(prices)))
        ends, units = index.priced_intervals(query, prices, least, mass=mass)
        for i, leaf in enumerate(query):
            atoms = reference.merge(leaves, y, leaf, **options)
            if atoms.n_trees == 0:
                assert np.isnan([*ends[i].ravel(), *mass[i]]).all()
                assert not units[i].any()
                continue
            for k, price in enumerate(prices):
                expected = reference.priced_interval(atoms, price, least)
                assert (*ends[i, :, k], units[i, k]) == expected, (atoms, price, least)
            np.testing.assert_array_equal(mass[i], units[i] / atoms.total)


def test_the_twin_finds_the_most_surplus_by_all_pairs():
    rng = np.random.default_rng(2)
    for _ in range(100):
        n = int(rng.integers(1, 9))
        z, w = np.sort(rng.choice(40, n, replace=False)).astype(float), rng.integers(1, 6, n)
        price = float(rng.integers(1, 60))
        atoms = reference.Atoms(z, w.tolist(), 0, 0, [1] * n)
        lower, upper, mass = reference.priced_interval(atoms, price)
        pairs = {}
        for i, j in product(range(n), repeat=2):
            if i <= j:
                m = int(w[i : j + 1].sum())
                pairs[i, j] = Fraction(price) * m / int(w.sum()) - Fraction(z[j] - z[i]), m, -i
        i, j = max(pairs, key=pairs.get)
        assert (lower, upper, mass) == (z[i], z[j], pairs[i, j][1])


@pytest.fixture(scope="module", params=[1, 6, 50, 500])
def scorer(request):
    """Trees with such leaves, and rows to score."""
    rng = np.random.default_rng(request.param)
    X = rng.random((2000, 3), dtype=np.float32)
    y = np.round(10 * X[:, 0] + rng.gamma(1, 3, 2000), 1 if request.param == 6 else 9)
    trees = ExtraTreesRegressor(5, min_samples_leaf=request.param, random_state=0).fit(X, y)
    forest = as_forest(trees)
    index = LeafIndex(forest.leaves(X), y, n_leaves=forest.n_leaves, keep_row_weights=True)
    return Scorer(forest, index), rng.random((700, 3), dtype=np.float32)


PRICES = [0.3, 2.0, 5.0, 9.0, 14.0, 20.0, 31.0, 50.0, 77.0, 150.0]


def test_rows_of_large_leaves_equal_the_twin(scorer):
    made, X = scorer
    query = made.forest.leaves(X[:2])
    for least in (0.0, 0.4, 0.9):
        ends, units = made.priced_intervals(X[:2], [5.0, 20.0], least)
        for i, leaf in enumerate(query):
            _, at, weights = made.index.weights(leaf[None])
            if len(at) > 100:
                continue  # all pairs
            masses = [round(w * (5 << 31)) for w in weights]
            atoms = reference.Atoms(made.index.atoms()[at], masses, 5, 31, [1] * len(at))
            for k, price in enumerate((5.0, 20.0)):
                expected = reference.priced_interval(atoms, price, least)
                assert (*ends[i, :, k], units[i, k]) == expected


def test_one_call_equals_many(scorer):
    made, X = scorer
    X = X[:200]
    for least in (0.0, 0.3, 0.8):
        ends, units = made.priced_intervals(X, PRICES, least)
        assert (ends.dtype, units.dtype) == (np.float64, np.int64)
        assert (ends.shape, units.shape) == ((200, 2, 10), (200, 10))
        for k, price in enumerate(PRICES):
            alone, mass = made.priced_intervals(X, price, least)
            assert alone.tobytes() == ends[..., k].tobytes()
            assert mass.tobytes() == units[:, k].tobytes()
        by_leaves = made.index.priced_intervals(made.forest.leaves(X), PRICES, least)
        assert by_leaves[0].tobytes() == ends.tobytes()
        assert by_leaves[1].tobytes() == units.tobytes()
        assert (units >= np.floor(least * (5 << 31)) - 10).all()


def test_threads_blocks_and_the_order_of_trees_change_no_bit(scorer, set_block_rows):
    made, X = scorer
    for least in (0.0, 0.8):
        set_block_rows(0)
        expected = [a.tobytes() for a in made.priced_intervals(X, PRICES, least, n_threads=1)]
        for n_threads, block_rows in product((1, 2), (1, 7, 10**18)):
            set_block_rows(block_rows)
            found = made.priced_intervals(X, PRICES, least, n_threads=n_threads)
            assert [a.tobytes() for a in found] == expected
    order = [3, 1, 4, 0, 2]
    leaves = made.forest.leaves(X)
    y = made.index.atoms()
    y = np.random.default_rng(0).choice(y, len(X))
    one, other = LeafIndex(leaves, y), LeafIndex(leaves[:, order], y)
    for least in (0.0, 0.8):
        found = one.priced_intervals(leaves, PRICES, least)
        turned = other.priced_intervals(leaves[:, order], PRICES, least)
        assert [a.tobytes() for a in found] == [a.tobytes() for a in turned]


DIGEST = """
import hashlib
import numpy as np
from hdicore import LeafIndex

rng = np.random.default_rng(0)
for n_leaves in (500, 60, 4):
    leaves = rng.integers(0, n_leaves, (4000, 12))
    index = LeafIndex(leaves, rng.normal(size=4000))
    for least in (0.0, 0.5, 0.9):
        for a in index.priced_intervals(leaves[:300], np.geomspace(0.1, 100, 13), least):
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
    leaves = leaves[rows]
    ends, units = made.index.priced_intervals(leaves, PRICES, 0.2, leave_out=rows)
    again, same = made.priced_intervals(X[rows], PRICES, 0.2, leave_out=rows)
    assert ends.tobytes() == again.tobytes()
    assert units.tobytes() == same.tobytes()
    full = made.index.priced_intervals(leaves, PRICES, 0.2)[0]
    assert ends.tobytes() != full.tobytes()


def test_a_batch_at_one_price_has_the_least_width_for_its_mass(scorer):
    """Against HDIs of one coverage, which give the batch the same mean mass or less."""
    made, X = scorer
    mass = np.empty(500)
    ends, _ = made.priced_intervals(X[:500], 20.0, mass=mass)
    hdis = made.intervals(X[:500], mass.mean())
    held = made.index.cdf(made.forest.leaves(X[:500]), hdis[:, 1])
    held -= made.index.cdf(made.forest.leaves(X[:500]), hdis[:, 0], inclusive=False)
    assert held.mean() >= mass.mean() - 1e-8
    # An interval of more mass may be wider, by no more than the price of it.
    widths = (ends[:, 1] - ends[:, 0]).mean(), (hdis[:, 1] - hdis[:, 0]).mean()
    assert widths[0] <= widths[1] - 20.0 * (held.mean() - mass.mean()) + 1e-9


def test_ties_on_a_lattice_take_all():
    """Each step costs what it is worth, in shares that are no binary fractions."""
    for n in (3, 7, 10, 30, 700):
        index = one_leaf_index(np.arange(n) / 10)
        (ends,), (units,) = index.priced_intervals([[0]], n / 10)
        assert (ends[0], ends[1], units) == (0, (n - 1) / 10, 2**31)
        (ends,), (units,) = index.priced_intervals([[0]], n / 10 * 0.99)
        assert ends[0] == ends[1] == 0  # the leftmost of single atoms, which weigh alike


def test_the_heaviest_atom_at_a_low_price_and_all_at_a_high_one():
    index = one_leaf_index([-3, 0.5, 2, 9], sample_weight=[1, 3, 3, 1])
    ends, units = index.priced_intervals([[0]], [1e-300, 1e300])
    np.testing.assert_array_equal(ends[0], [[0.5, -3], [0.5, 9]])
    assert units.tolist() == [[3 << 28, 2**31]]


def test_one_atom():
    for value in (0.0, 1e308, -5e-324):
        ends, units = one_leaf_index(np.full(4, value)).priced_intervals([[0]], [1.0, 1e308], 1.0)
        assert (ends == value).all()
        assert (units == 2**31).all()


def test_several_outputs_and_no_rows():
    rng = np.random.default_rng(4)
    leaves, y = rng.integers(0, 3, (40, 5)), rng.normal(size=(40, 2))
    index = LeafIndex(leaves, y)
    ends, units = index.priced_intervals(leaves, [1.0, 3.0, 6.0])
    assert (ends.shape, units.shape) == ((40, 2, 2, 3), (40, 2, 3))
    for o in range(2):
        of_one = LeafIndex(leaves, y[:, o]).priced_intervals(leaves, [1.0, 3.0, 6.0])
        np.testing.assert_array_equal(ends[:, o], of_one[0])
        np.testing.assert_array_equal(units[:, o], of_one[1])
    ends, units = index.priced_intervals(leaves[:0], 1.0)
    assert (ends.shape, units.shape) == ((0, 2, 2), (0, 2))


def test_out_and_mass_are_filled():
    rng = np.random.default_rng(5)
    leaves = rng.integers(0, 3, (40, 5))
    index = LeafIndex(leaves, rng.normal(size=40))
    out, mass = np.empty((40, 2, 2)), np.empty((40, 2))
    ends, units = index.priced_intervals(leaves, [1.0, 2.0], out=out, mass=mass)
    assert ends is out
    np.testing.assert_array_equal(mass, units / (5 << 31))
    with pytest.raises(ValueError, match="mass must not share memory with out"):
        index.priced_intervals(
            leaves, [1.0, 2.0], out=out, mass=out.reshape(-1)[:80].reshape(40, 2)
        )
    with pytest.raises(ValueError, match="mass must have shape"):
        index.priced_intervals(leaves, [1.0, 2.0], mass=np.empty(40))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0,), "prices must be above 0 and finite, got 0$"),
        (([1.0, -2.0],), "prices must be above 0 and finite, got -2$"),
        ((np.inf,), "prices must be above 0 and finite, got inf$"),
        (([np.nan],), "prices must be above 0 and finite, got nan$"),
        (([],), "prices must be a number or a list of numbers"),
        (([[1.0]],), "prices must be a number or a list of numbers"),
        (("dear",), "prices must be a number or a list of numbers, got 'dear'"),
        ((None,), "prices must be a number or a list of numbers, got None"),
        ((1.0, -0.1), r"min_coverage must be from 0 to 1, got -0.1"),
        ((1.0, 80), r"min_coverage must be from 0 to 1, got 80 \(did you mean 0.8\?\)"),
        ((1.0, np.nan), "min_coverage must be from 0 to 1, got nan"),
        ((1.0, [0.5, 0.6]), "min_coverage must be one number for all prices"),
        ((1.0, None), "min_coverage must be a number"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    index = one_leaf_index([1.0, 2.0])
    with pytest.raises(ValueError, match=message):
        index.priced_intervals([[0]], *arguments)
