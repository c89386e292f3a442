"""The metrics against hand-computed examples and their slow definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from hdiforest import metrics

from ..oracle import blocks_of


def test_coverage_counts_the_ends_as_inside():
    y = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    interval = np.array([[1, 2], [1, 2], [2, 4], [5, 6], [1, 4]])
    assert metrics.coverage_score(y, interval) == 3 / 5
    strict = np.mean((interval[:, 0] < y) & (y < interval[:, 1]))
    assert strict == 1 / 5


def test_coverage_of_a_point_interval_and_of_one_sided_ones():
    assert metrics.coverage_score([3.0], [[3.0, 3.0]]) == 1
    one_sided = [[2, np.inf], [4, np.inf], [-np.inf, 3], [-np.inf, 2.5]]
    assert metrics.coverage_score([3, 3, 3, 3], one_sided) == 0.5
    assert metrics.mean_width_score(one_sided) == np.inf


def test_interval_score_by_hand():
    # a = 0.2: inside 3; 1 below [2, 4]: 2 + 10 * 1; 2 above [0, 1]: 1 + 10 * 2.
    interval = [[0, 3], [2, 4], [0, 1]]
    found = metrics.interval_score([1, 1, 3], interval, coverage=0.8)
    assert found == pytest.approx((3 + 12 + 21) / 3, rel=1e-14)


def test_interval_score_of_one_sided_intervals_is_infinite_not_nan():
    assert metrics.interval_score([1], [[-np.inf, 3]], coverage=0.8) == np.inf


def test_levels_stand_last_and_equal_separate_calls():
    rng = np.random.default_rng(0)
    y = rng.normal(size=50)
    interval = np.sort(rng.normal(size=(50, 2, 3)), axis=1)
    shares = [0.5, 0.8, 0.9]
    pairs = [
        (metrics.coverage_score(y, interval), lambda i: metrics.coverage_score(y, i)),
        (metrics.mean_width_score(interval), metrics.mean_width_score),
    ]
    for together, alone in pairs:
        assert together.shape == (3,)
        each = [alone(interval[..., j]) for j in range(3)]
        np.testing.assert_allclose(together, each, rtol=1e-14)
    np.testing.assert_allclose(
        metrics.interval_score(y, interval, shares),
        [metrics.interval_score(y, interval[..., j], shares[j]) for j in range(3)],
        rtol=1e-14,
    )
    strata = metrics.coverage_by_width(y, interval)
    assert strata.counts.shape == (4, 3)
    for j in range(3):
        for field, alone in zip(
            strata, metrics.coverage_by_width(y, interval[..., j]), strict=True
        ):
            np.testing.assert_array_equal(field[:, j], alone)


def double_sum(y, z, w):
    w = w / w.sum()
    spread = np.abs(z[:, None] - z[None, :])
    return w @ np.abs(z - y) - 0.5 * w @ spread @ w


def test_whole_weights_are_repetitions_of_rows():
    rng = np.random.default_rng(1)
    y = rng.normal(size=60)
    interval = np.sort(rng.normal(size=(60, 2, 2)), axis=1)
    interval[3] = interval[3, :1]  # of width zero
    repeats = rng.integers(0, 4, 60)
    again, again_y = np.repeat(interval, repeats, axis=0), np.repeat(y, repeats)
    pairs = [
        (
            metrics.coverage_score(y, interval, sample_weight=repeats),
            metrics.coverage_score(again_y, again),
        ),
        (
            metrics.mean_width_score(interval, sample_weight=repeats),
            metrics.mean_width_score(again),
        ),
        (
            metrics.interval_score(y, interval, [0.5, 0.9], sample_weight=repeats),
            metrics.interval_score(again_y, again, [0.5, 0.9]),
        ),
    ]
    for weighted, repeated in pairs:
        np.testing.assert_allclose(weighted, repeated, rtol=1e-13)


def test_no_rounding_of_weights_makes_more_than_all_rows_covered():
    interval = np.repeat([[[0.0] * 5, [1.0] * 5]], 250, axis=0)
    for seed in range(20):
        weights = np.random.default_rng(seed).uniform(0.5, 2, 250)
        found = metrics.coverage_score(np.zeros(250), interval, sample_weight=weights)
        assert (found <= 1).all()
        np.testing.assert_allclose(found, 1, rtol=1e-12)


def test_weights_of_strata_count_within_groups_of_rows():
    y = np.array([0.0, 5.0, 0.0, 9.0])
    interval = np.array([[0, 1], [0, 1], [0, 4], [0, 4]])
    strata = metrics.coverage_by_width(y, interval, 2, sample_weight=[3, 1, 0, 2])
    np.testing.assert_array_equal(strata.counts, [0, 2, 2])
    np.testing.assert_array_equal(strata.coverage, [np.nan, 0.75, 0])
    np.testing.assert_array_equal(strata.mean_width, [np.nan, 1, 4])


@pytest.mark.parametrize("weights", [[1, 1], [-1, 2, 1], [np.nan, 1, 1], [0, 0, 0], ["a", 1, 1]])
def test_weights_out_of_range_are_refused(weights):
    interval = [[0, 1]] * 3
    for call in (
        lambda: metrics.mean_width_score(interval, sample_weight=weights),
        lambda: metrics.coverage_by_width([1, 1, 1], interval, sample_weight=weights),
    ):
        with pytest.raises(ValueError, match="sample_weight must"):
            call()


def test_crps_by_hand():
    assert metrics.crps_score([3.0], [[1.0]]) == 2
    assert metrics.crps_score([1.0], [[0.0, 2.0]]) == 0.5
    # y inside a gap: 1 * 0.25^2 + 3 * 0.75^2
    found = metrics.crps_score([1.0], [[0.0, 4.0]], [1.0, 3.0])
    assert found == pytest.approx(0.0625 + 3 * 0.5625, rel=1e-15)


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 4)), min_size=1, max_size=12).filter(
        lambda pairs: any(w for _, w in pairs)
    ),
    st.integers(-14, 14),
)
def test_crps_equals_the_double_sum(pairs, twice_y):
    z, w = np.array(pairs, dtype=float).T
    y = twice_y / 2
    assert metrics.crps_score([y], z[None], w) == pytest.approx(double_sum(y, z, w), abs=1e-12)


def test_crps_with_weights_of_every_form():
    rng = np.random.default_rng(1)
    y = rng.normal(size=30)
    z = rng.normal(size=40)
    w = rng.random((30, 40)) * (rng.random((30, 40)) < 0.3)
    w[:, 7] += 0.1
    expected = np.mean([double_sum(a, z, b) for a, b in zip(y, w, strict=True)])
    each = np.broadcast_to(z, (30, 40))
    assert metrics.crps_score(y, each, w) == pytest.approx(expected, rel=1e-12)
    assert metrics.crps_score(y, z, sparse.csr_array(w)) == pytest.approx(expected, rel=1e-12)
    assert metrics.crps_score(y, z, sparse.coo_matrix(w)) == pytest.approx(expected, rel=1e-12)
    shared = metrics.crps_score(y, each, w[0])
    assert shared == pytest.approx(np.mean([double_sum(a, z, w[0]) for a in y]), rel=1e-12)
    with blocks_of(50):
        assert metrics.crps_score(y, each, w) == pytest.approx(expected, rel=1e-12)
        assert metrics.crps_score(y, z, sparse.csr_array(w)) == pytest.approx(expected, rel=1e-12)


def test_crps_of_rows_with_few_and_many_atoms():
    rng = np.random.default_rng(4)
    y, z = rng.normal(size=25) + 1e6, rng.normal(size=60) + 1e6
    w = rng.integers(1, 5, (25, 60)) * (rng.random((25, 60)) < rng.random((25, 1)) ** 4)
    w[np.arange(25), rng.integers(0, 60, 25)] += 1
    assert np.ptp(np.count_nonzero(w, axis=1)) > 30
    expected = np.mean([double_sum(a, z, b) for a, b in zip(y, w, strict=True)])
    with blocks_of(7):
        found = metrics.crps_score(y, z, sparse.csr_array(w))
    assert found == pytest.approx(expected, rel=1e-9)
    w[3] = 0
    with pytest.raises(ValueError, match="positive sum in every row, got 1 of"):
        metrics.crps_score(y, z, sparse.csr_array(w))


def test_strata_by_hand():
    y = np.array([0, 0, 0.5, 5, 1, 9, 3, 3])
    interval = np.array([[0, 0], [1, 1], [0, 1], [0, 1], [0, 2], [0, 2], [0, 4], [0, 6]])
    strata = metrics.coverage_by_width(y, interval)
    np.testing.assert_array_equal(strata.counts, [2, 2, 2, 2])
    np.testing.assert_array_equal(strata.coverage, [0.5, 0.5, 0.5, 1])
    np.testing.assert_array_equal(strata.mean_width, [0, 1, 2, 5])


def test_strata_do_not_part_ties_nor_see_the_order_of_rows():
    y, interval = np.zeros(9), np.tile([0.0, 1.0], (9, 1))
    strata = metrics.coverage_by_width(y, interval)
    np.testing.assert_array_equal(strata.counts, [0, 9, 0, 0])
    assert np.isnan(strata.coverage[[0, 2, 3]]).all()
    rng = np.random.default_rng(3)
    y, interval = rng.normal(size=60), np.sort(rng.integers(-3, 4, size=(60, 2)), axis=1)
    order = rng.permutation(60)
    straight = metrics.coverage_by_width(y, interval, 5)
    for a, b in zip(straight, metrics.coverage_by_width(y[order], interval[order], 5), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_groups_by_hand():
    y = [0, 5, 2, 9, 4]
    interval = [[0, 1], [1, 4], [0, 8], [8, 9], [3, 3]]
    found = metrics.coverage_by_group(y, interval, ["b", "a", "b", "c", "b"], 0.8)
    assert found.groups.tolist() == ["a", "b", "c"]
    assert found.counts.tolist() == [1, 3, 1]
    np.testing.assert_allclose(found.coverage, [0, 2 / 3, 1])
    np.testing.assert_allclose(found.mean_width, [3, 3, 1])
    np.testing.assert_allclose(found.chance, np.transpose([[0, 1], [1 / 3, 1], [0, 1]]))


def test_groups_of_several_levels_are_those_of_each():
    rng = np.random.default_rng(0)
    y, groups = rng.normal(size=200), rng.integers(-3, 3, 200)
    interval = np.sort(rng.normal(size=(200, 2, 2)), axis=1)
    together = metrics.coverage_by_group(y, interval, groups, [0.6, 0.95])
    for j, level in enumerate([0.6, 0.95]):
        alone = metrics.coverage_by_group(y, interval[..., j], groups, level)
        for name in ("coverage", "mean_width", "chance"):
            np.testing.assert_allclose(getattr(together, name)[..., j], getattr(alone, name))
        for group, count, share in zip(*alone[:3], strict=True):
            assert count == (groups == group).sum()
            own = metrics.coverage_score(y[groups == group], interval[groups == group][..., j])
            assert share == pytest.approx(own)


TABLES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}


@pytest.mark.parametrize("library", TABLES)
@pytest.mark.parametrize("names", ["{}_{}", "equal_tailed_{}_{}", "{}"])
@pytest.mark.parametrize("levels", [["0.75"], ["0.5", "0.975", "1e-05"]])
def test_tables_of_intervals_are_read_by_name(library, names, levels):
    rng = np.random.default_rng(0)
    levels = levels[:1] if names == "{}" else levels
    y, ends = rng.normal(size=30), np.sort(rng.normal(size=(30, 2, len(levels))), axis=1)
    columns = {"id": list("ab" * 15), "prediction": y}
    # Upper ends first: columns are not read by position.
    for end, name in ((1, "upper"), (0, "lower")):
        columns |= {names.format(name, level): ends[:, end, j] for j, level in enumerate(levels)}
    module = pytest.importorskip(library)
    table = getattr(module, TABLES[library])(columns)
    interval = ends[..., 0] if len(levels) == 1 else ends
    shares = 0.5 if len(levels) == 1 else [0.5] * len(levels)
    for ask in (
        lambda found: metrics.coverage_score(y, found),
        lambda found: metrics.mean_width_score(found),
        lambda found: metrics.interval_score(y, found, shares),
        lambda found: metrics.coverage_by_width(y, found).coverage,
        lambda found: metrics.coverage_by_group(y, found, y > 0, shares).mean_width,
    ):
        np.testing.assert_allclose(ask(table), ask(interval), rtol=1e-12)


@pytest.mark.parametrize("library", TABLES)
def test_tables_of_one_column_and_of_bounds(library):
    new = getattr(pytest.importorskip(library), TABLES[library])
    y = [1.0, 2.0, 3.0]
    assert metrics.coverage_score(new({"y": y}), new({"one_sided_upper_0.9": [2.0, 1.0, 3.0]})) == (
        2 / 3
    )
    bound = new({"prediction": y, "one_sided_lower_0.9": [0.0, 2.5, 3.0]})
    assert metrics.coverage_score(y, bound) == 2 / 3
    assert metrics.mean_width_score(bound) == np.inf
    np.testing.assert_array_equal(
        metrics.pit_values(new({"cdf": [0.1, 0.2, 0.5]})), [0.1, 0.2, 0.5]
    )
    samples = {f"sample_{j}": np.arange(3.0) + j for j in range(2)}
    expected = metrics.crps_score(y, np.transpose(list(samples.values())))
    assert metrics.crps_score(y, new(samples)) == expected
    both = new({"a_lower_0.9": y, "a_upper_0.9": y, "b_lower_0.9": y, "b_upper_0.9": y})
    with pytest.raises(
        ValueError, match=r"of one target and kind, got a table of a_lower_0\.9, b_"
    ):
        metrics.coverage_score(y, both)


ONE = [[0.0, 1.0]]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: metrics.coverage_score([], []), r"y_true must have shape \(n,\) with n > 0"),
        (lambda: metrics.coverage_score([[1]], ONE), r"y_true must have shape .* got \(1, 1\)"),
        (lambda: metrics.coverage_score(["a"], ONE), "y_true must hold numbers"),
        (lambda: metrics.coverage_score([np.nan], ONE), "y_true must be finite, got 1 of 1 rows"),
        (lambda: metrics.coverage_score([1, 2], ONE), "as many rows as y_true, 2, got 1"),
        (lambda: metrics.coverage_score([1], [0, 1]), r"interval must have shape .* got \(2,\)"),
        (lambda: metrics.mean_width_score([[0, np.nan]]), "not hold NaN, got 1 of 1 rows"),
        (lambda: metrics.mean_width_score([[2, 1]]), "lower <= upper, got 1 of 1 rows"),
        (lambda: metrics.interval_score([1], ONE, 90), r"got 90 \(did you mean 0.9\?\)"),
        (lambda: metrics.interval_score([1], ONE, [0.9]), "coverage must be one number"),
        (
            lambda: metrics.interval_score([1], [[[0, 1], [2, 3]]], 0.9),
            "coverage must be 2 values, one per level",
        ),
        (lambda: metrics.crps_score([1], [1]), r"values must have shape \(1, s\)"),
        (lambda: metrics.crps_score([1], [[np.inf]]), "values must be finite"),
        (lambda: metrics.crps_score([1], [[1, 2]], [1]), r"weights must have shape \(2,\)"),
        (lambda: metrics.crps_score([1], [[1, 2]], [1, -1]), "not negative"),
        (lambda: metrics.crps_score([1], [[1, 2]], [0, 0]), "positive sum in every row"),
        (
            lambda: metrics.crps_score([1], [1, 2], sparse.csr_array((1, 3))),
            r"got \(1, 3\) and \(2,\)",
        ),
        (lambda: metrics.coverage_by_width([1], ONE, 0), "n_strata must be .* got 0"),
        (
            lambda: metrics.coverage_by_group([1], ONE, ["a", "b"]),
            r"groups must have shape \(1,\), got \(2,\)",
        ),
    ],
)
def test_bad_input_gets_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_pit_values():
    cdf, below = np.array([0.3, 0.8, 1.0]), np.array([0.3, 0.2, 0.0])
    pit = metrics.pit_values(cdf, below)
    assert pit[0] == 0.3
    assert ((below <= pit) & (pit <= cdf)).all()
    np.testing.assert_array_equal(pit, metrics.pit_values(cdf, below))
    assert (pit != metrics.pit_values(cdf, below, random_state=1))[1:].all()
    np.testing.assert_array_equal(metrics.pit_values(cdf), cdf)
    rng = np.random.default_rng(0)
    y = rng.binomial(3, 0.4, 20_000)
    shares = np.cumsum([0, 0.6**3, 3 * 0.4 * 0.36, 3 * 0.16 * 0.6, 0.4**3])
    uniform = metrics.pit_values(np.minimum(shares[y + 1], 1), shares[y])
    assert np.abs(np.histogram(uniform, 10, (0, 1))[0] / 20_000 - 0.1).max() < 0.01


@pytest.mark.parametrize(
    ("cdf", "below"),
    [
        ([0.5], [0.6]),
        ([1.5], None),
        ([np.nan], None),
        ([0.5], [0.1, 0.2]),
        (1, None),
    ],
)
def test_pit_values_refuse(cdf, below):
    with pytest.raises(ValueError, match="cdf"):
        metrics.pit_values(cdf, below)
