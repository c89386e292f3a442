"""Shortest intervals: enumeration, promises, known and extreme samples."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hdicore import LeafIndex, weighted_hdi

from .. import reference
from ..oracle import one_leaf_index

LEVELS = [0.01, 0.1, 0.25, 0.5, 0.75, 0.8, 0.9, 0.95, 0.99, 1.0]

lattice = st.integers(-6, 6).map(lambda k: k / 2)
decimal_grid = st.integers(-20, 20).map(lambda k: k / 10)
anything = st.floats(-1e300, 1e300)
samples = st.one_of(
    st.lists(lattice, min_size=1, max_size=25),
    st.lists(decimal_grid, min_size=1, max_size=25),
    st.lists(anything, min_size=1, max_size=25),
    st.lists(st.sampled_from([0.0, -0.0, 1.0]), min_size=1, max_size=25),
)
levels = st.one_of(
    st.integers(1, 100).map(lambda k: k / 100),
    st.floats(0, 1, exclude_min=True),
    st.sampled_from([1e-300, 1 - 2**-53, 0.5, 1.0]),
)


def weights_for(values):
    n = len(values)
    whole = st.integers(0, 4).map(float)
    real = st.floats(0, 1e6)
    return st.one_of(
        st.none(),
        st.lists(whole, min_size=n, max_size=n).filter(any),
        st.lists(real, min_size=n, max_size=n).filter(any),
    )


weighted_samples = samples.flatmap(lambda z: st.tuples(st.just(z), weights_for(z)))


@settings(deadline=None, max_examples=150)
@given(weighted_samples, levels)
def test_the_sweep_equals_enumeration(sample, level):
    values, weights = sample
    with np.errstate(over="ignore"):
        expected = reference.weighted_hdi(values, weights, level)
    assert tuple(weighted_hdi(values, weights, level)) == expected


@settings(deadline=None)
@given(weighted_samples, levels)
def test_ends_are_values_of_the_sample_that_hold_the_level(sample, level):
    values, weights = sample
    lower, upper = weighted_hdi(values, weights, level)
    assert lower in values
    assert upper in values
    weights = np.ones(len(values)) if weights is None else np.array(weights)
    inside = (np.array(values) >= lower) & (np.array(values) <= upper)
    assert weights[inside].sum() / weights.sum() > level - 1e-11


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["lattice", "real"]))
def test_never_wider_than_the_equal_tailed_interval(seed, grid):
    rng = np.random.default_rng(seed)
    n, n_trees = int(rng.integers(1, 60)), int(rng.integers(1, 8))
    y = rng.integers(-5, 6, n) / 2 if grid == "lattice" else rng.gamma(2, size=n)
    leaves = rng.integers(0, 3, (n, n_trees))
    index = LeafIndex(leaves, y, n_threads=1)
    coverages = [*LEVELS, *rng.random(5).clip(1e-9), 1e-12, 1 - 1e-12]
    hdi, tailed = (
        np.diff(index.intervals(leaves, coverages, kind, n_threads=1), axis=1)
        for kind in ("hdi", "equal_tailed")
    )
    assert np.all(hdi <= tailed)


def atoms_inside(index, levels):
    intervals = index.intervals(np.arange(index.n_trees)[None] * 0, levels)[0]
    atoms = index.atoms()[:, None]
    return np.sum((atoms >= intervals[0]) & (atoms <= intervals[1]), axis=0)


@pytest.mark.parametrize("n", [1, 3, 7, 10, 100, 1000])
def test_a_mass_equal_to_the_level_is_recognised(n):
    y = np.random.default_rng(n).gamma(2, size=n)
    by_percent = np.arange(1, 101)
    expected = -(-n * by_percent // 100)
    # Decimals as people write them, and as arithmetic leaves them.
    for levels in ([float(f"{k / 100:.2f}") for k in by_percent], by_percent * 0.01):
        levels = np.minimum(levels, 1.0)
        found = weighted_hdi(y, coverage=levels)
        inside = (y[:, None] >= found[0]) & (y[:, None] <= found[1])
        np.testing.assert_array_equal(inside.sum(axis=0), expected)
        np.testing.assert_array_equal(atoms_inside(one_leaf_index(y), levels), expected)
        # A row to each tree: the share of an atom is a sum over trees.
        many = LeafIndex(np.where(np.eye(n), 0, 1), y, n_threads=1)
        np.testing.assert_array_equal(atoms_inside(many, levels), expected)


def test_ties_go_to_mass_then_to_the_median_then_to_the_left():
    # All intervals below have width 1.
    assert weighted_hdi([0, 1, 10, 11, 20, 21], [3, 2, 2, 2, 3, 3], 0.25).tolist() == [20.0, 21.0]
    assert weighted_hdi([0, 1, 5, 6, 20, 21], coverage=1 / 3).tolist() == [5.0, 6.0]
    assert weighted_hdi([0, 1, 2, 3], coverage=0.5).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("n", [3, 5, 6, 7, 11, 49, 99])
def test_equal_masses_are_tied_however_their_shares_are_rounded(n):
    # Every pair of neighbours has the same width and, exactly, the same mass.
    middle = (n - 1) // 2
    values = np.arange(float(n))
    index = LeafIndex(np.zeros((n, 3), dtype=int), values)  # the same leaf in several trees
    assert index.intervals(np.zeros((1, 3)), 2 / n)[0][0] in (middle - 1, middle)
    assert weighted_hdi(values, coverage=2 / n)[0] in (middle - 1, middle)


def test_widths_that_differ_only_by_rounding_are_tied():
    values = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]  # 0.3 - 0.2 < 0.1 < 0.4 - 0.3 in floating point
    assert weighted_hdi(values, coverage=2 / 7).tolist() in ([0.2, 0.3], [0.3, 0.4])


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_batches_and_broadcast_weights_equal_separate_calls(seed):
    rng = np.random.default_rng(seed)
    n, size = int(rng.integers(0, 6)), int(rng.integers(1, 30))
    values = rng.integers(-9, 9, (n, size)) / 4
    for weights in (None, rng.random(size), rng.random((n, size))):
        both = weighted_hdi(values, weights, [0.5, 0.9])
        one = weighted_hdi(values, weights, 0.9)
        assert both.shape == (n, 2, 2)
        assert one.shape == (n, 2)
        np.testing.assert_array_equal(both[:, :, 1], one)
        for k in range(n):
            own = weights[k] if weights is not None and weights.ndim == 2 else weights
            np.testing.assert_array_equal(one[k], weighted_hdi(values[k], own, 0.9))


def test_any_layout_and_type_of_sample_is_accepted():
    values = np.random.default_rng(0).integers(0, 50, (5, 40))
    weights = np.random.default_rng(1).integers(0, 5, (5, 40))
    expected = weighted_hdi(values.astype(float), weights.astype(float))
    np.testing.assert_array_equal(weighted_hdi(values, weights), expected)
    np.testing.assert_array_equal(weighted_hdi(np.asfortranarray(values), weights), expected)
    np.testing.assert_array_equal(weighted_hdi(values.tolist(), weights.astype(np.uint8)), expected)


def test_weights_may_have_any_finite_size():
    for scale in (5e-324, 1e-310, 1e-200, 1.0, 1e200, 4e307):
        assert weighted_hdi([1, 2, 3], [scale, 2 * scale, scale], 0.5).tolist() == [2.0, 2.0]


def test_widths_may_overflow():
    assert weighted_hdi([-1.7e308, 0.0, 1.7e308], coverage=1).tolist() == [-1.7e308, 1.7e308]
    assert weighted_hdi([-1.7e308, -1.6e308, 1.7e308], coverage=0.6).tolist() == [
        -1.7e308,
        -1.6e308,
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": []}, "at least one value"),
        ({"values": [1.0, np.nan]}, "values must be finite, got nan at position 1"),
        ({"values": np.zeros((1, 1, 1))}, "values must have 1 or 2 dimensions"),
        ({"values": [[1.0, 2.0], [3.0, np.nan]]}, "values must be finite"),
        ({"values": ["a"]}, "values must be an array of numbers"),
        ({"weights": [1.0]}, r"weights must have shape \(2,\)"),
        ({"weights": [1.0, -1.0]}, "weights must be finite and not negative, got -1"),
        ({"weights": [np.nan, 1.0]}, "weights must be finite"),
        ({"weights": [0.0, 0.0]}, "must not all be zero"),
        ({"n_threads": -1}, "n_threads"),
    ],
)
def test_bad_samples_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        weighted_hdi(**({"values": [1.0, 2.0]} | arguments))


GRID = (np.arange(100_000) + 0.5) / 100_000


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95])
def test_normal_exponential_and_uniform_intervals_are_those_of_the_density(level):
    half = stats.norm.ppf((1 + level) / 2)
    normal = weighted_hdi(stats.norm.ppf(GRID), coverage=level)
    assert normal[1] - normal[0] == pytest.approx(2 * half, abs=1e-3)
    np.testing.assert_allclose(normal, [-half, half], atol=2e-2)

    exponential = weighted_hdi(stats.expon.ppf(GRID), coverage=level)
    np.testing.assert_allclose(exponential, [0, -math.log(1 - level)], atol=1e-3)

    uniform = weighted_hdi(GRID, coverage=level)
    assert uniform[1] - uniform[0] == pytest.approx(level, abs=1e-3)
