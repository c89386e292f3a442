"""Standard deviation over trees and mass of an interval: the kernel and its definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hdicore import LeafIndex

from .. import reference

pytestmark = pytest.mark.engine
RNG = np.random.default_rng(0)


def test_example_by_hand():
    """Three trees with leaves of means 13 / 4, 13 / 3 and 16 / 3."""
    y = [1.0, 2, 3, 7, 8, 20]
    leaves = [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1], [1, 0, 0], [1, 1, 0]]
    index = LeafIndex(leaves, y)
    spread, mass = index.spread_and_mass([[0, 0, 0]], [[1.0, 7.0]])
    assert spread[0] ** 2 == pytest.approx(97 / 24)
    assert mass[0] == pytest.approx(9 / 12)


@pytest.mark.parametrize("case", range(60))
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
    cdf = index.cdf(query, np.column_stack([np.nextafter(ends[:, 0], -np.inf), ends[:, 1]]))
    assert_allclose(mass, cdf[:, 1] - cdf[:, 0], rtol=0, atol=1e-12)
    means = [index.mean(np.where(own, query, -1)) for own in np.eye(n_trees, dtype=bool)]
    with np.errstate(invalid="ignore"):
        known = ~np.isnan(np.array(means))
        expected = [
            np.std(np.array(means)[k, i]) if k.any() else np.nan for i, k in enumerate(known.T)
        ]
    assert_allclose(spread, expected, rtol=1e-9, atol=1e-9)


def test_the_slow_definition_agrees():
    leaves, y = RNG.integers(0, 3, (20, 4)), RNG.integers(0, 9, 20).astype(float)
    query, ends = RNG.integers(0, 3, (5, 4)), np.array([[2.0, 5.0]] * 5)
    index = LeafIndex(leaves, y, n_leaves=[3] * 4)
    spread, mass = index.spread_and_mass(query, ends)
    for i, own in enumerate(query):
        assert spread[i] == pytest.approx(reference.tree_spread(leaves, y, own))
        atoms = reference.merge(leaves, y, own)
        assert mass[i] == pytest.approx(reference.mass_within(atoms, 2.0, 5.0))


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
