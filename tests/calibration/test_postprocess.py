"""Post-processing of widened intervals: crossed ends, the range and the lattice of the targets."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor

import hdicore
from hdiforest import HDIForestRegressor

from . import twin

GRADES = np.repeat(np.arange(3.0, 9.0), 50)  # 300 targets, 6 distinct
SMOOTH = np.linspace(-2, 5, 300)
ends = st.floats(-20, 20)


def known_of(y):
    """What a calibrated model knows of its training targets."""
    stump = DecisionTreeRegressor(max_depth=1)
    model = HDIForestRegressor(stump, calibration=False).fit(np.zeros((len(y), 1)), y)
    return model.calibrate([[1.0]], y[:1], coverage=0.5).calibration_.postprocess


def lattice_of(y):
    return known_of(y).lattice


def engine_of(y, clip=True):
    """What finishes widened intervals of a model of these targets."""
    known = known_of(y)
    more = {"lattice": known.lattice, "targets": known.targets}
    return hdicore.PostProcess(known.low, known.high, clip=clip and known.clip, **more)


TARGETS = (GRADES, SMOOTH, SMOOTH[::2])  # smooth ones are clipped if they are many
ENGINES = [engine_of(y) for y in TARGETS]


def applied(engine, lower, upper):
    """Ends that targets can have: those of an interval that is widened by nothing."""
    both = np.stack([np.atleast_1d(lower), np.atleast_1d(upper)], axis=1)
    found = engine.widen(both[..., None], [0.0])[..., 0].T
    return tuple(found if np.ndim(lower) else found[:, 0])


def test_the_lattice_of_grades_decimals_and_large_values():
    assert lattice_of(GRADES) == (3.0, 1.0, 1e-6)
    base, step, slack = lattice_of(np.repeat(np.round(np.arange(5, 25) * 0.1, 1), 4))
    assert (base, step) == (0.5, pytest.approx(0.1, rel=1e-14))
    assert slack < 2e-6
    # The least difference is rounded by 1e-11 of itself, and a million times that is the range.
    values = np.append(np.arange(100) * 0.1 + 1e5, 0.3)
    assert lattice_of(np.repeat(values, 4))[:2] == (0.3, pytest.approx(0.1, rel=1e-12))


@pytest.mark.parametrize(
    "y",
    [
        np.repeat([1.0], 300),  # one value
        np.arange(300.0),  # more than a quarter distinct
        np.repeat([0.0, 1.0, 2.5], 100),  # 2.5 is no multiple of the least difference
        np.repeat([0.0, 1.0, 2.02], 100),
        np.repeat([0.0, 1e-300, 1e300], 100),
        np.repeat([0.0, 5e-324, 1.0], 100),
        np.array([4.0]),
    ],
)
def test_no_lattice(y):
    assert lattice_of(y) is None


def test_a_quarter_distinct_is_few_enough():
    y = np.append(np.repeat([0.0, 1.0, 2.0], 4), 3)
    assert lattice_of(y) is None  # 4 of 13
    assert lattice_of(np.append(y, [3.0, 3.0, 3.0])) == (0.0, 1.0, 1e-6)


@given(
    steps=st.lists(st.integers(0, 40), min_size=2, max_size=30, unique=True),
    base=st.integers(-1000, 1000).map(lambda k: k / 8),
    step=st.sampled_from([0.25, 1.0, 3.0]),
    copies=st.integers(1, 8),
)
def test_the_lattice_equals_its_twin(steps, base, step, copies):
    y = [base + step * k for k in steps] * copies
    found = lattice_of(y)
    expected = twin.lattice(y)
    assert (found is None) == (expected is None)
    if found is not None:
        assert found[:2] == expected


@given(
    st.lists(st.tuples(ends, ends), min_size=1, max_size=20),
    st.sampled_from(["grades", "smooth", "few"]),
    st.booleans(),
)
def test_postprocess_equals_its_twin(intervals, targets, clip):
    y = {"grades": GRADES, "smooth": SMOOTH, "few": SMOOTH[::2]}[targets]
    lower, upper = np.array(intervals).T
    middles = (lower + upper) / 2
    # Halfway between two grades either is as near.
    assume(targets != "grades" or np.all(np.abs(middles % 1 - 0.5) > 1e-9))
    expected = np.transpose([twin.finish(*pair, y.tolist(), clip) for pair in intervals])
    found = applied(engine_of(y, clip=clip), lower, upper)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_each_rule_by_hand():
    smooth = engine_of(SMOOTH)
    assert applied(smooth, 3.0, 1.0) == (2, 2)  # crossed: the midpoint
    assert applied(smooth, -9.0, 9.0) == (-2, 5)  # clipped
    assert applied(smooth, -9.0, -8.0) == (-2, -2)
    assert applied(smooth, -math.inf, math.inf) == (-math.inf, math.inf)  # no pad was large enough
    assert np.isnan(applied(smooth, math.nan, math.nan)).all()
    assert applied(engine_of(SMOOTH, clip=False), -9.0, 9.0) == (-9, 9)
    grades = engine_of(GRADES)
    for given_ends, expected in [
        ((4.2, 6.9), (5, 6)),
        ((5.0, 6.0), (5, 6)),  # ends on the lattice stay
        ((4.2, 4.4), (4, 4)),  # between two points: the nearer
        ((4.6, 4.8), (5, 5)),
        ((-7.0, 3.2), (3, 3)),
    ]:
        assert applied(grades, *given_ends) == expected
    lower, upper = applied(grades, -math.inf, math.inf)
    assert (lower, upper) == (-math.inf, math.inf)
    assert np.isnan(applied(grades, math.nan, math.nan)).all()


@pytest.mark.parametrize(("n", "clips"), [(199, False), (200, True)])
def test_there_is_no_clipping_below_200_rows(n, clips):
    assert known_of(np.linspace(0, 1, n)).clip is clips


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_target_of_the_lattice_is_lost(dtype):
    """Not even where the targets were rounded to float32, 3e-5 of a step from the lattice here."""
    values = (np.arange(0, 500) * 0.01 + 7).astype(dtype).astype(np.float64)
    postprocess = engine_of(np.repeat(values, 4))
    assert lattice_of(np.repeat(values, 4)) is not None
    lower, upper = applied(postprocess, values, values)
    np.testing.assert_array_equal([lower, upper], [values, values])


@pytest.mark.parametrize("clip", [True, False])
@pytest.mark.parametrize(
    "values",
    [np.arange(5.0), np.arange(1.0, 3), np.arange(12) * 0.1 - 0.3, np.arange(20) / 100],
)
def test_ends_on_a_lattice_are_training_targets(values, clip):
    """Not beside them, so that none is outside of their range."""
    postprocess = engine_of(np.repeat(values, 100), clip=clip)
    rng = np.random.default_rng(0)
    given_ends = np.sort(rng.uniform(values[0], values[-1], (1000, 2)))
    found = np.array(applied(postprocess, *given_ends.T))
    assert np.isin(found, values).all()
    assert np.array_equal(applied(postprocess, *found), found)


@pytest.mark.parametrize("step", [1.0, 0.1, np.float64(np.float32(0.1))])
def test_targets_of_other_rows_are_covered_if_their_score_says_so(step):
    """On the lattice, beside it, between its points, and where no training target is."""
    values = (np.arange(40) * step)[np.r_[:20, 30:40]]
    postprocess = engine_of(np.repeat(values, 8), clip=False)
    y = np.concatenate([values, values + 1e-7 * step, values - 1e-16, values + 0.4 * step])
    base = np.stack([y - step, y + step], axis=1)
    scores = postprocess.scores(base, y)
    for i in range(len(y)):
        lower, upper = postprocess.widen(base[[i]][..., None], [scores[i]])[0, :, 0]
        assert lower <= y[i] <= upper


@given(
    st.tuples(ends, ends), st.integers(-160, 160).map(lambda k: k / 8), st.sampled_from([0, 1, 2])
)
def test_the_score_is_the_least_pad_that_covers(base, target, targets):
    postprocess = ENGINES[targets]
    interval = np.sort(np.array([base]), axis=1)
    score = postprocess.scores(interval, np.array([target]))[0]

    def covers(q):
        found = postprocess.widen(interval[..., None], [q])[0, :, 0]
        return found[0] <= target <= found[1]

    assert covers(score)
    y, clips = TARGETS[targets], targets < 2
    inside = not clips or y.min() <= target <= y.max()
    if math.isinf(score):
        assert not inside
        assert not covers(1e9)
    else:
        assert covers(score + 0.3)
        # Below it no more than the point to which an empty interval is post-processed.
        below = score - 0.01
        if covers(below):
            lower, upper = postprocess.widen(interval[..., None], [below])[0, :, 0]
            assert upper - lower <= 1e-5
        on_grid = targets > 0 or target % 1 == 0
        if on_grid and inside:
            assert score == max(interval[0, 0] - target, target - interval[0, 1])


@given(st.lists(st.tuples(*[st.integers(-999, 999)] * 3), min_size=1, max_size=30), st.data())
def test_a_target_whose_score_is_the_pad_is_covered_in_spite_of_rounding(rows, data):
    numbers = np.array(rows) * 0.1
    base, y = np.sort(numbers[:, :2], axis=1), numbers[:, 2]
    postprocess = engine_of(SMOOTH, clip=False)
    scores = postprocess.scores(base, y)
    q = data.draw(st.sampled_from(scores.tolist()))
    lower, upper = postprocess.widen(base[..., None], [q])[..., 0].T
    assert np.all(((lower <= y) & (y <= upper))[scores <= q])


@given(st.integers(1, 5), st.integers(0, 2**32 - 1), st.sampled_from([0, 1]))
def test_intervals_are_nested_and_grow_by_no_more_than_that(k, seed, targets):
    rng = np.random.default_rng(seed)
    base = np.sort(rng.normal(4, 3, (8, 2, k)), axis=1)
    postprocess = ENGINES[targets]
    q_hat = rng.normal(size=k)
    alone = postprocess.widen(base, q_hat)
    found = postprocess.widen(base, q_hat, nested=True)
    assert np.all(found[:, 0, 1:] <= found[:, 0, :-1])
    assert np.all(found[:, 1, 1:] >= found[:, 1, :-1])
    for j in range(k):
        np.testing.assert_array_equal(found[:, 0, j], alone[:, 0, : j + 1].min(axis=-1))
        np.testing.assert_array_equal(found[:, 1, j], alone[:, 1, : j + 1].max(axis=-1))
