"""Standard deviation over trees and mass of an interval: the kernel and its definition."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hdicore import LeafIndex

from .. import reference

RNG = np.random.default_rng(0)


def test_example_by_hand():
    """Three trees with leaves of means 13 / 4, 13 / 3 and 16 / 3."""
    y = [1.0, 2, 3, 7, 8, 20]
    leaves = [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1], [1, 0, 0], [1, 1, 0]]
    index = LeafIndex(leaves, y)
    spread, mass = index.spread_and_mass([[0, 0, 0]], [[1.0, 7.0]])
    assert spread[0] ** 2 == pytest.approx(97 / 24)
    assert mass[0] == pytest.approx(9 / 12)


@pytest.mark.parametrize("case", range(30))
def test_the_kernel_is_the_definition(case):
    n, n_trees = int(RNG.integers(1, 30)), int(RNG.integers(1, 6))
    leaves = RNG.integers(0, 3, (n, n_trees))
    y = RNG.integers(0, 6, n) if case % 2 else RNG.normal(size=n)
    options = {"pooled": case % 5 == 0}
    if case % 3 == 0:
        options["counts"] = RNG.integers(0, 3, (n, n_trees))
    if case % 4 == 0:
        options["sample_weight"] = RNG.integers(1, 4, n) / 2
    index = LeafIndex(leaves, y, n_leaves=[3] * n_trees, **options)
    query = RNG.integers(-1, 3, (9, n_trees))
    ends = np.sort(RNG.choice([*y, 2.5], (9, 2)), axis=1)
    spread, mass = index.spread_and_mass(query, ends, n_threads=2)
    for i, row in enumerate(query):
        atoms = reference.merge(leaves, y, row, **options)
        if atoms.n_trees == 0:
            assert np.isnan([spread[i], mass[i]]).all()
            continue
        assert mass[i] == pytest.approx(reference.mass_within(atoms, *ends[i]), abs=1e-12)
        expected = reference.tree_spread(leaves, y, row, **options)
        assert spread[i] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_outputs_threads_and_ends_that_are_missing():
    leaves, y = RNG.integers(0, 50, (3000, 7)), RNG.normal(size=(3000, 2))
    index, query = LeafIndex(leaves, y), RNG.integers(0, 50, (5000, 7))
    ends = np.sort(RNG.normal(size=(5000, 2, 2)), axis=-1)
    ends[3, 0, 1] = np.nan
    one, two = (index.spread_and_mass(query, ends, n_threads=k) for k in (1, 2))
    for a, b in zip(one, two, strict=True):
        assert a.shape == (5000, 2)
        assert_array_equal(a, b)
    assert np.argwhere(np.isnan(one[1])).tolist() == [[3, 0]]
    infinite = index.spread_and_mass(query[:1], [[[-np.inf, np.inf]] * 2])[1]
    assert_array_equal(infinite, [[1, 1]])


@pytest.mark.parametrize(
    ("query", "ends"), [([[0, 9]], [[0.0, 1.0]]), ([[0, 0]], [0.0, 1.0]), ([[0]], [[0.0, 1.0]])]
)
def test_what_is_refused(query, ends):
    with pytest.raises(ValueError, match=r"leaves|intervals|leaf"):
        LeafIndex([[0, 0], [0, 1]], [1.0, 2.0]).spread_and_mass(query, ends)
