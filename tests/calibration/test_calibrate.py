"""Calibration out of bag and by split: the exact promise, warnings and refused arguments."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdiforest._model.bases import Base
from hdiforest.calibration import _calibrate
from hdiforest.calibration._calibrate import CrossFit, best_by_half
from hdiforest.calibration._candidates import Candidates
from hdiforest.calibration._methods import resolve_method
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.exceptions import InfiniteIntervalsWarning

from .rows import calibrate_oob, calibrate_split, chosen, made, selection
from .twin import BASES

RAW_HDI = Base("raw", "hdi", 0.8)
FIXED = Base("centred", "averaged", 0.8)


def test_intervals_that_are_exact_in_the_middle_become_their_midpoints():
    """The quantile is -5, by which the ends of the last intervals cross."""
    y = np.zeros(8)
    ends = np.array([[-5.0, 5.0]] * 6 + [[-1.0, 3.0]] * 2)
    options = {"selected": chosen(RAW_HDI, 0.5), "bases": [RAW_HDI]}
    found = calibrate_split(ends[..., None], y, np.linspace(-9, 9, 50), 0.5, **options)
    assert found.levels[0].q_hat == -5
    np.testing.assert_allclose(
        found.intervals(ends[..., None])[..., 0], [[0, 0]] * 6 + [[1, 1]] * 2, atol=1e-14
    )


targets_of_training = st.sampled_from(["smooth", "few", "grades"])
TRAINING = {
    "smooth": np.linspace(-6, 6, 300),
    "few": np.linspace(-6, 6, 100),
    "grades": np.repeat(np.arange(-6.0, 7.0), 30),
}


@given(
    rows=st.lists(st.tuples(*[st.integers(-80, 80)] * 3), min_size=2, max_size=14),
    training=targets_of_training,
    coverage=st.sampled_from([0.3, 0.5, 0.8, 0.9]),
    weighted=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_split_keeps_its_promise_through_clipping_snapping_and_ties(
    rows, training, coverage, weighted
):
    """Of n + 1 rows, each left out of the calibration in turn, the share c is covered: exactly."""
    numbers = np.array(rows) / 10
    base, y = np.sort(numbers[:, :2], axis=1), numbers[:, 2]
    weights = np.arange(len(y)) % 3 + 1.0 if weighted else np.ones(len(y))
    weights[-2:] = weights.max()  # so that no row left out is the only heaviest one
    covered = Fraction(0)
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = calibrate_split(
                base[others, :, None],
                y[others],
                TRAINING[training],
                coverage,
                selected=chosen(RAW_HDI, coverage),
                bases=[RAW_HDI],
                weights=weights[others] if weighted else None,
            )
        lower, upper = found.intervals(base[i : i + 1, :, None])[0, :, 0]
        covered += Fraction(weights[i]) * int(lower <= y[i] <= upper)
    assert covered >= Fraction(str(coverage)) * Fraction(weights.sum())


def test_too_few_rows_give_infinite_ends_and_one_warning():
    ends, quantiles, y = made(8)
    known, rule = selection(ends, y, y, (0.5, 0.9, 0.95), quantiles=quantiles)
    message = "coverage 0.9, 0.95 are infinite: 8 .* too few; needed are 9 for 0.9, 19 for 0.95$"
    with pytest.warns(InfiniteIntervalsWarning, match=message) as warned:
        found, _ = _calibrate.calibrate("oob", *known, rule)
    assert len(warned) == 1
    assert warned[0].filename == __file__
    intervals = found.intervals(np.zeros((4, 2, len(found.bases))))
    assert np.isfinite(intervals[..., 0]).all()
    np.testing.assert_array_equal(intervals[..., 1:], [[[-np.inf] * 2, [np.inf] * 2]] * 4)
    assert found.level(0.9).cross_check is None
    assert found.level(0.9).realised == 1


OF_FIXED = {"selected": chosen(FIXED, 0.9)}


def test_too_few_rows_for_a_confidence():
    ends, _, y = made(28)
    assert math.isfinite(calibrate_split(ends, y, y, 0.9, **OF_FIXED).levels[0].q_hat)
    with pytest.warns(UserWarning, match="28 .* too few; needed are 29 for 0.9$"):
        found = calibrate_split(ends, y, y, 0.9, **OF_FIXED, confidence=0.95)
    assert math.isinf(found.levels[0].q_hat)


def test_targets_outside_the_training_range_are_named_where_they_make_pads_infinite():
    ends, _, y = made(50)
    far = np.append(y[:-9], np.full(9, 1e6))
    training = np.linspace(y.min(), y.max(), 300)
    with pytest.warns(UserWarning, match="0.9 are infinite: targets outside the range"):
        calibrate_split(ends, far, training, 0.9, **OF_FIXED)
    found = calibrate_split(ends, far, training, 0.9, **OF_FIXED, clip=False)
    assert 1e5 < found.levels[0].q_hat < math.inf


def test_weights_move_the_conformal_quantile():
    ends, quantiles, y = made(200)
    plain = calibrate_oob(ends, y, y, 0.8, quantiles=quantiles).levels[0]
    equal = calibrate_oob(ends, y, y, 0.8, weights=np.full(200, 2.0), quantiles=quantiles)
    assert equal.levels[0] == plain
    assert equal.weighted
    missed = np.abs(y - ends[..., BASES.index(plain.base)].mean(axis=1))
    heavy = calibrate_oob(ends, y, y, 0.8, weights=1 + missed, quantiles=quantiles).levels[0]
    assert heavy.q_hat > plain.q_hat


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y_train": [[1.0]]}, "y_train must have shape"),
        ({"coverages": 90}, r"coverage must be above 0 .* got 90 \(did you mean 0.9\?\)"),
        ({"coverages": (0.5, 1)}, "coverage must be above 0 and below 1, got 1"),
        ({"coverages": ()}, "coverage must be a number or a list of numbers, got ()"),
        ({"coverages": (0.5, 0.5)}, "coverage must be .* distinct"),
        ({"coverages": "high"}, "coverage must be a number or a list of numbers, got 'high'"),
        ({"coverages": math.nan}, "coverage must be above 0"),
        ({"objective": "speed"}, "objective must be 'balanced', 'width' or 'interval_score'.*'sp"),
    ],
)
def test_refused_arguments(changed, message):
    ends, quantiles, y = made(30)
    given = {"ends": ends, "y": y, "y_train": y, "coverages": 0.5, "quantiles": quantiles}
    with pytest.raises(ValueError, match=message) as error:
        calibrate_oob(**given | changed)
    assert "\n" not in str(error.value)


def test_a_coverage_in_the_place_of_rows_is_told():
    with pytest.raises(ValueError, match=r"X must be rows .* got 0.9; coverages are given by name"):
        resolve_method(None, 0.9, None)
    with pytest.raises(ValueError, match="coverages are given by name"):
        resolve_method(None, np.array([0.8, 0.9]), None)


def test_each_half_takes_the_fit_that_is_best_on_the_other():
    in_first = np.array([True, False, True])
    intervals = [np.full((3, 2, 1), value) for value in (1.0, 2.0)]
    ones, y = np.ones((2, 1)), np.zeros(3)
    of_rows = Candidates((FIXED,), np.zeros((3, 2, 1)), y, PostProcess.from_targets(y), {})
    fits = [
        CrossFit(of_rows, in_first, own, ones, np.array(scores)[:, None], ())
        for own, scores in zip(intervals, ([2.0, 3.0], [4.0, 1.0]), strict=True)
    ]
    best = best_by_half(fits, "balanced")  # the first half is best by fit 0, the second by fit 1
    np.testing.assert_array_equal(best.intervals[:, 0, 0], [2.0, 1.0, 2.0])
    np.testing.assert_array_equal(best.scores[:, 0], [2.0, 1.0])
    some = best.of_rows(np.array([1, 2]))
    np.testing.assert_array_equal(some.intervals[:, 0, 0], [1.0, 2.0])
    np.testing.assert_array_equal(some.in_first, [False, True])
