"""Intervals by folds of the engine against numpy, bit for bit, and groups that it looks up."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdicore import CalibrationGroups, CrossCalibration, PostProcess

PLAIN = PostProcess(-1.0, 1.0, clip=False)
SCORES = [np.array([[-1.0, 0.0], [2.0, 2.5]]), np.array([[0.5, 1.0]])]


def kth_shifted(shifts, scores, k, weights=None):
    """The k-th smallest of shifts[f] + score for each column of shifts (K, n), by bisection."""
    weights = [np.ones(len(fold)) for fold in scores] if weights is None else weights
    together, weigh = np.concatenate(scores), np.concatenate(weights)
    if np.isinf(k) or k > weigh.sum():
        return np.full(shifts.shape[1], np.inf)
    middle = weighted_quantile(together, weigh, k)
    rounding = 4 * np.finfo(np.float64).eps * (np.abs(shifts).max(axis=0) + np.abs(middle))
    if all(len(fold) == 1 for fold in scores):
        return weighted_quantile(shifts.T + together, weigh, k) + rounding
    lower = shifts.min(axis=0) + middle - rounding
    upper = shifts.max(axis=0) + middle + rounding
    reached_at = [np.concatenate([[0], np.cumsum(fold)]) for fold in weights]
    for _ in range(54):
        unsure = upper - lower > 2 * rounding
        centre = lower / 2 + upper / 2
        reached = sum(
            total[np.searchsorted(fold, centre - shift, side="right")]
            for fold, shift, total in zip(scores, shifts, reached_at, strict=True)
        )
        lower = np.where(unsure & (reached < k), centre, lower)
        upper = np.where(unsure & (reached >= k), centre, upper)
    return upper + rounding


def weighted_quantile(values, weights, k):
    order = np.argsort(values, axis=-1, kind="stable")
    position = np.count_nonzero(np.cumsum(weights[order], axis=-1) < k, axis=-1, keepdims=True)
    last = np.minimum(position, values.shape[-1] - 1)
    ordered = np.take_along_axis(values, order, axis=-1)
    return np.take_along_axis(ordered, last, axis=-1)[..., 0]


def twin(ends, scores, needed, postprocess, weights=None):
    """Intervals (n, 2, k) of ends (K, n, 2, k)."""
    result = np.empty(ends.shape[1:])
    for j, k in enumerate(needed):
        own = [fold[:, j] for fold in scores]
        heavy = None if weights is None else [fold[:, j] for fold in weights]
        result[:, 0, j] = -kth_shifted(-ends[:, :, 0, j], own, k, heavy)
        result[:, 1, j] = kth_shifted(ends[:, :, 1, j], own, k, heavy)
    return postprocess.widen(result, np.zeros(len(needed)), nested=True)


def made(sizes, weighted, seed=0, n=40, k=3):
    """Ends, scores, needed numbers or weights, and weights, with ties."""
    rng = np.random.default_rng(seed)
    scores = [np.sort(rng.normal(size=(size, k)).round(1), axis=0) for size in sizes]
    weights = [rng.uniform(0.1, 3, (size, k)) for size in sizes] if weighted else None
    total = np.concatenate(weights).sum(axis=0) if weighted else np.full(k, float(sum(sizes)))
    needed = total * np.linspace(0.4, 0.97, k)
    ends = np.sort(rng.normal(size=(len(sizes), n, 2, k)), axis=2)
    return ends, scores, needed if weighted else np.ceil(needed), weights


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sizes", [(7, 1, 0, 30), (1,) * 25, (200, 300), (2, 1, 1)])
@pytest.mark.parametrize("postprocess", [PLAIN, PostProcess(-1.5, 1.5, True, (-1.5, 0.25, 1e-6))])
def test_intervals_are_those_of_numpy(sizes, weighted, postprocess):
    ends, scores, needed, weights = made(sizes, weighted)
    ends[0, 3, 1, 1], ends[-1, 4, 0, 0] = np.nan, -np.inf
    cross = CrossCalibration(scores, needed, postprocess, weights)
    with np.errstate(invalid="ignore"):
        expected = twin(ends, scores, needed, postprocess, weights)
    for positions in ([0, 1, 2], [2, 0], [1]):
        lowest = ends[..., : max(positions) + 1]
        for given_ends in (ends, lowest):
            found = cross.widen(given_ends, positions)
            np.testing.assert_array_equal(found, expected[..., positions])
    again = pickle.loads(pickle.dumps(cross)).widen(ends, [0, 1, 2])
    np.testing.assert_array_equal(again, expected)


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 9), min_size=2, max_size=6))
@settings(max_examples=20, deadline=None)
def test_any_folds_have_the_intervals_of_numpy(seed, sizes):
    for weighted in (False, True):
        if sum(sizes) == 0:
            continue
        ends, scores, needed, weights = made(sizes, weighted, seed, n=5)
        ends *= 10.0 ** np.random.default_rng(seed).integers(-12, 12, (1, 5, 1, 1))
        found = CrossCalibration(scores, needed, PLAIN, weights).widen(ends, range(3))
        np.testing.assert_array_equal(found, twin(ends, scores, needed, PLAIN, weights))


@pytest.mark.parametrize("sizes", [(9, 20), (1,) * 25])
def test_no_bit_depends_on_threads_blocks_or_the_other_rows(sizes, set_block_rows):
    ends, scores, needed, weights = made(sizes, True, n=300)
    cross = CrossCalibration(scores, needed, PLAIN, weights)
    expected = cross.widen(ends, [2, 0], n_threads=1)
    for block, n_threads in ((1, 3), (7, 0), (64, 1), (64, 3)):
        set_block_rows(block)
        found = cross.widen(ends, [2, 0], n_threads=n_threads)
        assert found.tobytes() == expected.tobytes()
    alone = [cross.widen(ends[:, [i]], [2, 0])[0] for i in range(20)]
    assert np.array(alone).tobytes() == expected[:20].tobytes()
    assert cross.widen(ends[:, :0], [1]).shape == (0, 2, 1)


def test_one_interval_serves_all_coverages():
    ends, scores, needed, _ = made((5, 6), weighted=False)
    cross, shared = CrossCalibration(scores, needed, PLAIN), ends[..., :1]
    repeated = np.repeat(shared, 3, axis=3)
    np.testing.assert_array_equal(cross.widen(shared, [1, 2]), cross.widen(repeated, [1, 2]))


def test_ends_are_infinite_where_too_little_is_there():
    ends = np.zeros((2, 1, 2, 2))
    for needed, weights in (
        ([3.0, 4.0], None),
        ([1.0, np.inf], [np.ones((2, 2)), np.ones((1, 2))]),
    ):
        found = CrossCalibration(SCORES, needed, PLAIN, weights).widen(ends, [0, 1])[0]
        assert np.isfinite(found[:, 0]).all()
        np.testing.assert_array_equal(found[:, 1], [-np.inf, np.inf])
    none = [np.empty((0, 1)), np.empty((0, 1))]
    assert np.isinf(CrossCalibration(none, [0.5], PLAIN).widen(ends[..., :1], [0])).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": SCORES[:1]}, "scores must be those of two folds or more"),
        ({"scores": [SCORES[0], SCORES[1][:, :1]]}, "scores of each fold must be of 2 coverages"),
        ({"scores": [SCORES[0][::-1], SCORES[1]]}, "scores must be finite and ascend"),
        ({"scores": [["a"], ["b"]]}, "scores must be an array of numbers"),
        ({"needed": [1.0, np.nan]}, "needed must not be NaN"),
        ({"needed": 1.0}, "needed must have 1 dimensions"),
        ({"weights": SCORES[::-1]}, "weights must be as many as scores in each fold"),
        ({"weights": SCORES}, "weights must be finite and positive"),
    ],
)
def test_refused_scores(change, message):
    with pytest.raises(ValueError, match=message):
        CrossCalibration(
            **({"scores": SCORES, "needed": [1.0, 2.0], "postprocess": PLAIN} | change)
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ends": np.zeros((3, 1, 2, 2))}, r"ends must have shape \(2, n, 2, m\), m 1 or at least"),
        ({"ends": np.zeros((2, 1, 3, 2))}, r"ends must .* got \(2, 1, 3, 2\)"),
        ({"ends": np.zeros((2, 1, 2))}, "m 1 or at least 2, got"),
        ({"positions": [2]}, "positions must be from 0 to 1, got 2"),
        ({"positions": []}, "positions must be one or more"),
        ({"n_threads": -1}, "n_threads must be a whole number"),
    ],
)
def test_refused_ends(change, message):
    cross = CrossCalibration(SCORES, [1.0, 2.0], PLAIN)
    with pytest.raises(ValueError, match=message):
        cross.widen(**({"ends": np.zeros((2, 1, 2, 2)), "positions": [1]} | change))


def test_groups_are_looked_up_by_numbers():
    groups = CalibrationGroups([7.0, "7", None, -0.5, np.inf], np.arange(10.0).reshape(5, 2))
    values = np.array([-0.5, np.nan, 7, 8, np.inf, -np.inf])
    for again in (groups, pickle.loads(pickle.dumps(groups))):
        for kind in (np.float32, np.float64):
            np.testing.assert_array_equal(again.codes(values.astype(kind)), [3, 2, 0, -1, 4, -1])
    np.testing.assert_array_equal(CalibrationGroups([0.0], [[1.0]]).codes([-0.0, np.nan]), [0, -1])


def test_groups_without_a_quantile_take_the_common_one():
    groups = CalibrationGroups([1.0, 2.0], [[0.5, np.nan], [0.25, 0.75]])
    found = groups.quantiles([1, 0, -1], [9.0, 8.0])
    np.testing.assert_array_equal(found, [[0.25, 0.75], [0.5, 8.0], [9.0, 8.0]])
    for codes, common, message in (
        ([2], [0.0, 0.0], "codes must be from -1 to 1, got 2"),
        ([-2], [0.0, 0.0], "codes must be from -1 to 1, got -2"),
        ([0], [0.0], "common must have a quantile of each coverage"),
    ):
        with pytest.raises(ValueError, match=message):
            groups.quantiles(codes, common)
    with pytest.raises(ValueError, match=r"q_hat must have shape \(2, 1\), got \(1, 1\)"):
        CalibrationGroups([1.0, 2.0], [[0.0]])
