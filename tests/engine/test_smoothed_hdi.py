"""Smoothed HDIs: degenerate and extreme targets, the order of trees, ties."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hdicore import LeafIndex, _reference

LEVELS = [1e-9, 0.05, 0.3, 0.5, 0.9, 1 - 1e-9, 1.0]
EXTREMES = {
    "one target": [2.5],
    "one distinct target": [2.5] * 9,
    "two targets": [1.0, 4.0],
    "equal gaps": np.arange(24.0),
    "ties": [0.0, 0.0, 0.0, 1.0, 5.0, 5.0, 5.0, 9.0],
    "ties but for rounding": [1.0, 1.0 + 2.0**-52, 2.0, 2.0 + 2.0**-51, 7.0],
    "denormal": np.array([0.0, 1.0, 3.0, 6.0, 10.0]) * 5e-324,
    "tiny": np.array([-2.0, 1.0, 3.0, 6.0, 10.0]) * 1e-300,
    "huge": np.array([-2.0, 1.0, 3.0, 6.0, 10.0]) * 1e260,
    "widths that overflow": [-1.7e308, -1.6e308, 0.0, 1.6e308, 1.7e308],
    "far from zero": 1e9 + np.random.default_rng(3).normal(size=40),
    "an outlier": [*np.random.default_rng(4).normal(size=40), 1e200],
}


@pytest.mark.parametrize("name", EXTREMES)
def test_extreme_targets(name):
    y = np.asarray(EXTREMES[name], dtype=np.float64)
    leaves = np.zeros((len(y), 1), dtype=np.int32)
    ends = LeafIndex(leaves, y).intervals([[0]], LEVELS, "smoothed_hdi")[0]
    assert np.isfinite(ends).all()
    assert (ends[0] <= ends[1]).all()
    atoms = _reference.merge(leaves, y, np.zeros(1))
    with np.errstate(over="ignore"):  # infinite widths
        expected = [_reference.interval(atoms, level, "smoothed_hdi") for level in LEVELS]
    largest = np.abs(y).max()
    assert_allclose(ends.T / largest, np.array(expected) / largest, rtol=0, atol=1e-14)
    assert_array_equal(ends[:, -1], [y.min(), y.max()])


def test_the_order_of_trees_and_the_threads_change_no_bit():
    rng = np.random.default_rng(0)
    leaves, query = rng.integers(0, 5, (900, 30)), rng.integers(-1, 5, (200, 30))
    y = rng.normal(size=900)
    trees = rng.permutation(30)
    expected = LeafIndex(leaves, y).intervals(query, LEVELS, "smoothed_hdi", n_threads=1)
    turned = LeafIndex(leaves[:, trees], y)
    found = turned.intervals(query[:, trees], LEVELS, "smoothed_hdi", n_threads=3)
    assert found.tobytes() == expected.tobytes()


def test_equally_short_intervals_count_alike():
    y = np.array([0.0, 1.0, 10.0, 11.0])
    index = LeafIndex(np.zeros((4, 1), dtype=np.int32), y)
    ends = index.intervals([[0]], 0.5, "smoothed_hdi")[0]
    # The third interval, [1, 10], weighs nothing.
    assert_allclose(ends, [5.0, 6.0], atol=1e-14)
