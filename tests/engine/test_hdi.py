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


@settings(deadline=None, max_examples=1000)
@given(weighted_samples, levels)
def test_the_sweep_equals_enumeration(sample, level):
    values, weights = sample
    with np.errstate(over="ignore"):
        expected = reference.weighted_hdi(values, weights, level)
    assert tuple(weighted_hdi(values, weights, level)) == expected


@settings(deadline=None)
@given(weighted_samples)
def test_width_never_falls_with_the_level_and_ends_at_the_whole_support(sample):
    values, weights = sample
    intervals = weighted_hdi(values, weights, LEVELS)
    support = [z for k, z in enumerate(values) if weights is None or weights[k] > 0]
    widths = intervals[1] - intervals[0]
    tie = max(map(abs, support)) * 2.0**-48
    assert np.all(np.diff(widths) >= -tie)
    if weights is None or min(w for w in weights if w > 0) > 1e-9 * sum(weights):
        assert intervals[:, -1].tolist() == [min(support), max(support)]


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
@given(weighted_samples)
def test_a_tiny_level_needs_one_value(sample):
    lower, upper = weighted_hdi(*sample, 1e-300)
    assert lower == upper


@settings(deadline=None)
@given(weighted_samples)
def test_several_levels_equal_separate_calls(sample):
    together = weighted_hdi(*sample, LEVELS)
    assert together.shape == (2, len(LEVELS))
    for k, level in enumerate(LEVELS):
        np.testing.assert_array_equal(together[:, k], weighted_hdi(*sample, level))


@settings(deadline=None)
@given(weighted_samples, levels, st.randoms(use_true_random=False))
def test_the_order_of_the_sample_does_not_matter(sample, level, random):
    values, weights = sample
    order = list(range(len(values)))
    random.shuffle(order)
    shuffled = [values[k] for k in order], weights and [weights[k] for k in order]
    assert weighted_hdi(*shuffled, level).tobytes() == weighted_hdi(*sample, level).tobytes()


@settings(deadline=None)
@given(weighted_samples, levels, st.integers(0, 3))
def test_scaling_by_a_power_of_two_scales_the_interval(sample, level, exponent):
    values, weights = sample
    scaled = np.ldexp(values, exponent)
    if np.any((scaled != 0) & (np.abs(scaled) < 1e-290)):  # halves and tolerances would lose bits
        return
    expected = np.ldexp(weighted_hdi(values, weights, level), exponent)
    np.testing.assert_array_equal(weighted_hdi(scaled, weights, level), expected)


@settings(deadline=None)
@given(st.lists(lattice, min_size=1, max_size=25), levels, st.integers(-8, 8))
def test_shifting_by_a_whole_number_shifts_the_interval(values, level, by):
    expected = weighted_hdi(values, coverage=level) + by
    np.testing.assert_array_equal(weighted_hdi(np.add(values, by), coverage=level), expected)


@settings(deadline=None)
@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=25, unique=True), levels)
def test_reflection_reflects_the_interval_unless_all_but_leftmost_is_tied(values, level):
    lower, upper = weighted_hdi(values, coverage=level)
    mirrored = weighted_hdi(np.negative(values), coverage=level)
    assert mirrored[1] - mirrored[0] == upper - lower
    # Where one interval is shortest no tie rule is asked.
    ordered = sorted(values)
    held = sum(lower <= z <= upper for z in values)
    widths = [b - a for a, b in zip(ordered, ordered[held - 1 :], strict=False)]
    if widths.count(min(widths)) == 1:
        assert mirrored.tolist() == [-upper, -lower]


@settings(deadline=None)
@given(weighted_samples, levels, st.lists(anything, max_size=5))
def test_values_of_weight_zero_change_nothing(sample, level, extra):
    values, weights = sample
    weights = [1.0] * len(values) if weights is None else weights
    found = weighted_hdi([*extra, *values], [0.0] * len(extra) + weights, level)
    np.testing.assert_array_equal(found, weighted_hdi(values, weights, level))


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


def test_an_atom_that_holds_the_level_is_an_interval_of_width_zero():
    assert weighted_hdi([1.0, 2.0, 3.0], [1, 8, 1], 0.8).tolist() == [2.0, 2.0]
    assert weighted_hdi([1.0, 2.0, 3.0], [1, 8, 1], 0.81).tolist() != [2.0, 2.0]


def test_a_constant_sample_gives_the_constant():
    for level in LEVELS:
        assert weighted_hdi([7.5] * 9, coverage=level).tolist() == [7.5, 7.5]
    assert weighted_hdi([3.0]).tolist() == [3.0, 3.0]


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
    for factor in (1, 2, 3):  # the same leaf in several trees
        index = LeafIndex(np.zeros((n, factor), dtype=int), values)
        found = index.intervals(np.zeros((1, factor)), 2 / n)[0]
        assert found[0] in (middle - 1, middle)
    assert weighted_hdi(values, coverage=2 / n)[0] in (middle - 1, middle)


def test_widths_that_differ_only_by_rounding_are_tied():
    values = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]  # 0.3 - 0.2 < 0.1 < 0.4 - 0.3 in floating point
    assert weighted_hdi(values, coverage=2 / 7).tolist() in ([0.2, 0.3], [0.3, 0.4])


def paper_algorithm_1(y, w, threshold):
    """Algorithm 1 as printed, with its threshold read as the coverage and j kept in bounds."""
    best, ends = math.inf, None
    j, mass = -1, 0.0
    for i in range(len(y)):
        while mass < threshold and j + 1 < len(y):
            j += 1
            mass += w[j]
        if mass >= threshold and y[j] - y[i] < best:
            best, ends = y[j] - y[i], (y[i], y[j])
        mass -= w[i]
    return ends


@pytest.mark.parametrize("seed", range(100))
def test_the_algorithm_of_the_paper_agrees_where_nothing_is_tied_or_equal(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(40, 90))
    y, w = np.sort(rng.normal(size=n)), rng.dirichlet(np.full(n, 5.0))
    for level in rng.uniform(0.1, 0.95, 10):  # no single atom holds a tenth
        np.testing.assert_array_equal(weighted_hdi(y, w, level), paper_algorithm_1(y, w, level))


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


def test_thread_counts_change_no_bit():
    rng = np.random.default_rng(2)
    values, weights = rng.normal(size=(200, 50)).round(1), rng.random((200, 50))
    expected = weighted_hdi(values, weights, LEVELS, n_threads=1).tobytes()
    for n_threads in (2, 8, 0):
        found = weighted_hdi(values, weights, LEVELS, n_threads=n_threads)
        assert found.tobytes() == expected


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
        ({"values": [np.inf, 1.0]}, "values must be finite"),
        ({"values": 1.0}, "values must have 1 or 2 dimensions"),
        ({"values": np.zeros((1, 1, 1))}, "values must have 1 or 2 dimensions"),
        ({"values": ["a"]}, "values must be an array of numbers"),
        ({"weights": [1.0]}, r"weights must have shape \(2,\)"),
        ({"weights": [[1.0, 1.0]]}, r"weights must have shape \(2,\)"),
        ({"weights": 1.0}, "weights must have shape"),
        ({"weights": [1.0, -1.0]}, "weights must be finite and not negative, got -1"),
        ({"weights": [np.nan, 1.0]}, "weights must be finite"),
        ({"weights": [np.inf, 1.0]}, "weights must be finite"),
        ({"weights": [0.0, 0.0]}, "must not all be zero"),
        ({"n_threads": -1}, "n_threads"),
    ],
)
def test_bad_samples_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        weighted_hdi(**({"values": [1.0, 2.0]} | arguments))


def test_a_bad_row_of_a_batch_is_refused():
    values = np.zeros((100, 3))
    values[97, 2] = np.nan
    with pytest.raises(ValueError, match="values must be finite"):
        weighted_hdi(values)


GRID = (np.arange(100_000) + 0.5) / 100_000


@pytest.mark.parametrize(
    ("level", "lower", "upper"),
    [
        (0.5, 0.435552, 1.917951),
        (0.8, 0.167300, 3.080291),
        (0.9, 0.083815, 3.932146),
        (0.95, 0.042363, 4.765168),
    ],
)
def test_gamma_intervals_are_those_of_the_density(level, lower, upper):
    sample = stats.gamma.ppf(GRID, 2)
    found = weighted_hdi(sample, coverage=level)
    # The width is flat around its minimum: ends are known less well than the width.
    np.testing.assert_allclose(found, [lower, upper], atol=1e-2)
    assert found[1] - found[0] == pytest.approx(upper - lower, abs=1e-3)
    tailed = one_leaf_index(sample).intervals([[0]], level, "equal_tailed")[0]
    np.testing.assert_allclose(tailed, stats.gamma.interval(level, 2), atol=1e-3)


def test_a_weighted_grid_gives_the_interval_of_its_density():
    grid = np.linspace(0, 30, 300_001)
    found = weighted_hdi(grid, stats.gamma.pdf(grid, 2), 0.9)
    np.testing.assert_allclose(found, [0.083815, 3.932146], atol=1e-3)


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
