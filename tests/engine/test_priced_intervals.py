"""Intervals at prices: the slow twin, numbers known exactly, one price for many rows, bad input."""

import numpy as np
import pytest

from hdicore import LeafIndex

from .. import reference
from ..oracle import one_leaf_index, training_cases


@pytest.mark.parametrize("targets", ["spread", "integers", "decimals", "huge"])
def test_equal_to_the_twin(targets):
    rng = np.random.default_rng(1)
    for leaves, y, options in training_cases(targets):
        index = LeafIndex(leaves, y, **options)
        query = leaves[rng.integers(0, len(y), 2)]
        query[0, 0] = -1
        step = max(np.ptp(y), 1e-3) if np.ptp(y) < 1e300 else 1e307
        prices = [step, *np.exp(rng.normal(size=2)) * step, 1.0, 2.0**-1074, 1e308]
        least = float(rng.choice([0, 0.3, 0.7, 1]))
        mass = np.empty((2, len(prices)))
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


def test_rows_of_large_leaves_equal_the_twin(scorer_of_sizes):
    made, X = scorer_of_sizes
    query = made.forest.leaves(X[:2])
    for least in (0.0, 0.4, 0.9):
        ends, units = made.priced_intervals(X[:2], [5.0, 20.0], least)
        for i, leaf in enumerate(query):
            _, at, weights = made.index.weights(leaf[None])
            if len(at) > 60:
                continue  # all pairs
            masses = [round(w * (5 << 31)) for w in weights]
            atoms = reference.Atoms(made.index.atoms()[at], masses, 5, 31, [1] * len(at))
            for k, price in enumerate((5.0, 20.0)):
                expected = reference.priced_interval(atoms, price, least)
                assert (*ends[i, :, k], units[i, k]) == expected


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
        (([np.nan],), "prices must be above 0 and finite, got nan$"),
        (([],), "prices must be a number or a list of numbers"),
        (([[1.0]],), "prices must be a number or a list of numbers"),
        (("dear",), "prices must be a number or a list of numbers, got 'dear'"),
        ((1.0, -0.1), r"min_coverage must be from 0 to 1, got -0.1"),
        ((1.0, 80), r"min_coverage must be from 0 to 1, got 80 \(did you mean 0.8\?\)"),
        ((1.0, [0.5, 0.6]), "min_coverage must be one number for all prices"),
        ((1.0, None), "min_coverage must be a number"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    index = one_leaf_index([1.0, 2.0])
    with pytest.raises(ValueError, match=message):
        index.priced_intervals([[0]], *arguments)
