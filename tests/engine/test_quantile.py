"""Quantiles, distribution function, mean, draws and weights: as the reference and numpy say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdicore import LeafIndex

from .. import reference
from ..oracle import one_leaf_index

INTERPOLATIONS = (
    "inverted_cdf",
    "averaged_inverted_cdf",
    "linear",
    "lower",
    "higher",
    "midpoint",
    "nearest",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "median_unbiased",
    "normal_unbiased",
)
QUERY = [[0]]


def random_index(rng):
    n, n_trees = int(rng.integers(1, 30)), int(rng.integers(1, 6))
    leaves = rng.integers(0, 4, (n, n_trees))
    y = rng.choice([rng.normal(size=n), rng.integers(-4, 5, n) / 2])
    counts = rng.integers(0, 4, leaves.shape) if rng.random() < 0.5 else None
    index = LeafIndex(leaves, y, counts=counts, n_threads=1)
    query = leaves[rng.integers(n)]
    rows = {"leaves": leaves, "y": y, "query": query, "counts": counts}
    return index, query[None], reference.merge(**rows), reference.mean(**rows)


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**32 - 1), st.sampled_from(INTERPOLATIONS))
def test_quantiles_equal_the_reference(seed, interpolation):
    rng = np.random.default_rng(seed)
    index, query, atoms, _ = random_index(rng)
    if not len(atoms.values):
        return
    levels = [0.0, 1e-300, 0.25, 1 / 3, 0.5, 0.9, 1 - 2**-53, 1.0, *rng.random(5)]
    # The atoms' own levels, where rounding decides, and F's steps.
    upto = np.cumsum([float(m) for m in atoms.masses])
    levels += [*(upto / upto[-1]).clip(0, 1)]
    found = index.quantiles(query, levels, interpolation, n_threads=1)[0]
    expected = [reference.quantile(atoms, level, interpolation) for level in levels]
    between = interpolation in ("linear", *reference.PLOTTING)
    exact = {"rtol": 1e-9, "atol": 1e-12} if between else {"rtol": 0, "atol": 0}
    np.testing.assert_allclose(found, expected, **exact)
    # One level alone is the same.
    assert index.quantiles(query, levels[5], interpolation)[0] == found[5]


TIED = ([1, 1, 2, 2], [5, 5, 5, 7, 7, 7], [0, 0, 0, 1], [3, 3], [-1, 0, 0, 0, 0, 2, 2, 9])
DISTINCT = [np.random.default_rng(n).normal(size=n).round(6) for n in (1, 2, 3, 8, 37, 100)]


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("n_trees", [1, 3])
def test_equal_weights_give_the_quantiles_of_numpy(interpolation, n_trees):
    some = np.concatenate([[0.0, 1.0], np.random.default_rng(0).random(50)])
    for y in (*TIED, *DISTINCT):
        levels = np.arange(0, 41) / 40 if isinstance(y, list) else some
        expected = np.quantile(np.array(y, dtype=float), levels, method=interpolation)
        # Counted twice in one tree a row weighs the same, but stands for two observations.
        leaves = np.zeros((len(y), n_trees), dtype=int)
        query = [[0] * n_trees]
        for options in ({}, {"keep_row_weights": True}, {"sample_weight": np.full(len(y), 0.3)}):
            found = LeafIndex(leaves, y, **options).quantiles(query, levels, interpolation)[0]
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6, err_msg=f"{y}{options}")


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_levels_halfway_between_observations_are_decided_as_numpy_does(interpolation):
    levels = np.arange(1, 16) / 16
    for n in (*range(1, 60), 199, 1000, 4999):
        found = one_leaf_index(np.arange(float(n))).quantiles(QUERY, levels, interpolation)[0]
        expected = np.quantile(np.arange(float(n)), levels, method=interpolation)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4, err_msg=str(n))


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_pooled_leaves_give_the_quantiles_of_numpy_of_all_their_rows(interpolation):
    rng = np.random.default_rng(0)
    leaves = rng.integers(0, 3, (40, 5))
    y = rng.integers(0, 12, 40) / 2
    counts = rng.integers(0, 3, leaves.shape)
    index = LeafIndex(leaves, y, counts=counts, pooled=True)
    levels = np.concatenate([np.arange(0, 41) / 40, rng.random(40)])
    for query in leaves[:5]:
        behind = np.where(leaves == query, counts, 0).sum(axis=1)
        sample = np.repeat(y, behind)
        expected = np.quantile(sample, levels, method=interpolation)
        found = index.quantiles(query[None], levels, interpolation)[0]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
        assert index.n_samples(query[None])[0] == len(sample)


@pytest.mark.skipif(int(np.__version__[0]) < 2, reason="numpy 1 has no weighted quantiles")
def test_weighted_quantiles_are_those_of_numpy():
    rng = np.random.default_rng(0)
    for _ in range(50):
        y, weights = rng.normal(size=20), rng.random(20)
        levels = rng.random(20)
        found = one_leaf_index(y, sample_weight=weights).quantiles(QUERY, levels)[0]
        expected = np.quantile(y, levels, weights=weights, method="inverted_cdf")
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n", [2, 3, 5, 6, 7, 9, 11, 13])
def test_nearest_takes_the_even_one_of_two_equally_near(n):
    positions = np.arange(n - 1) + 0.5
    found = one_leaf_index(np.arange(float(n))).quantiles(QUERY, positions / (n - 1), "nearest")[0]
    np.testing.assert_array_equal(found, np.around(positions))


def test_values_near_the_largest_do_not_overflow():
    index = one_leaf_index([1.6e308, 1.7e308, -1.7e308])
    for interpolation in INTERPOLATIONS:
        found = index.quantiles(QUERY, np.linspace(0, 1, 11), interpolation)[0]
        assert np.all(np.isfinite(found))


@pytest.mark.parametrize("kind", ["equal_tailed", "lower", "upper"])
def test_quantile_intervals_hold_what_they_promise(kind):
    rng = np.random.default_rng(1)
    for n in (1, 10, 99):
        y = np.sort(rng.normal(size=n))
        levels = np.arange(1, 101) / 100
        lower, upper = one_leaf_index(y).intervals(QUERY, levels, kind)[0]
        inside = (y[:, None] >= lower) & (y[:, None] <= upper)
        needed = -(-n * np.arange(1, 101) // 100)
        if kind == "equal_tailed":
            assert np.all(inside.sum(axis=0) >= needed)
        else:  # one-sided: no atom more than needed
            np.testing.assert_array_equal(inside.sum(axis=0), needed)
            assert np.all(np.isinf(upper if kind == "lower" else lower))


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_cdf_mean_and_draws_equal_the_reference(seed):
    rng = np.random.default_rng(seed)
    index, query, atoms, mean = random_index(rng)
    if not len(atoms.values):
        return
    points = np.concatenate([atoms.values, atoms.values - 1e-9, [-np.inf, np.inf, 0.1]])
    expected = [reference.cdf(atoms, y) for y in points]
    np.testing.assert_array_equal(index.cdf(query, points[None])[0], expected)
    assert index.cdf(query, [points[0]])[0] == expected[0]
    assert index.mean(query)[0] == mean
    shares = np.array(atoms.masses) / atoms.total
    assert mean == pytest.approx(shares @ atoms.values, rel=1e-12, abs=1e-12)
    uniforms = np.concatenate([[0.0, 1 - 2**-53], rng.random(30), np.cumsum(atoms.masses)[:-1]])
    uniforms[32:] /= float(atoms.total)
    expected = [reference.draw(atoms, u) for u in uniforms]
    np.testing.assert_array_equal(index.draws(query, uniforms[None])[0], expected)


def test_uniforms_may_be_replaced_in_place_and_are_kept_otherwise():
    index = one_leaf_index([1.0, 2.0])
    uniforms = np.array([[0.1, 0.9]])
    assert index.draws(QUERY, uniforms).tolist() == [[1.0, 2.0]]
    assert uniforms.tolist() == [[0.1, 0.9]]
    assert index.draws(QUERY, uniforms, out=uniforms) is uniforms
    assert uniforms.tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("levels", [-0.1, 1.1, np.nan, [], None, "0.5", [[0.5]], [0.5, 2.0]])
def test_bad_levels_are_refused(levels):
    with pytest.raises(ValueError, match="quantiles must"):
        one_leaf_index([1.0]).quantiles(QUERY, levels)
    with pytest.raises(ValueError, match=r"from 0 to 1, got 5 \(did you mean 0.05\?\)$"):
        one_leaf_index([1.0]).quantiles(QUERY, 5)


def test_other_bad_arguments_are_refused():
    index = one_leaf_index([1.0])
    with pytest.raises(ValueError, match=r"interpolation must be 'inverted_cdf'.*got 'cubic'"):
        index.quantiles(QUERY, 0.5, "cubic")
    with pytest.raises(ValueError, match="y must not hold NaN"):
        index.cdf(QUERY, [np.nan])
    with pytest.raises(ValueError, match=r"y must have shape \(1,\), got \(2,\)"):
        index.cdf(QUERY, [1.0, 2.0])
    with pytest.raises(ValueError, match=r"y must have shape \(1, 3\), got \(2, 3\)"):
        index.cdf(QUERY, np.zeros((2, 3)))
    with pytest.raises(ValueError, match="y must have shape"):
        index.cdf(QUERY, 1.0)
    for bad in (1.0, -0.1, np.nan):
        with pytest.raises(ValueError, match=r"uniforms must lie in \[0, 1\)"):
            index.draws(QUERY, [bad])
