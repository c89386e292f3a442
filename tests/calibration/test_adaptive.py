"""Quantiles that differ from row to row, and negative ones that scale intervals."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdiforest.calibration._bases import Base, Candidates
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._quantiles import rank
from hdiforest.calibration._selection import (
    SLOPES,
    Selected,
    _less,
    best,
    calibrated_intervals,
    widen_base,
)

from .twin import BASES, calibrate_oob, calibrate_split, made

BASE = Base("raw", "hdi", 0.5)
WIDE = BASE.of_width
TWO = (BASE, WIDE)
GRADES = np.repeat(np.arange(-6.0, 7.0), 30)  # 390 targets, 13 distinct


def rows_of(rng, n, kind):
    """Ends (n, 2, 2) by `TWO`, and targets."""
    middle = rng.normal(size=(n, 1))
    half = np.sort(rng.gamma(1, 2, (n, 2)), axis=1)
    y = rng.normal(scale=2, size=n)
    if kind == "tied":
        middle, half, y = np.round(middle), np.round(half), np.round(y)
    elif kind == "lattice":
        middle, y = middle * 3, np.clip(np.round(y * 2), -6, 6)
    elif kind == "points":
        half[rng.random(n) < 0.5, 0] = 0
        half[rng.random(n) < 0.3] = 0
        y = np.where(rng.random(n) < 0.4, middle[:, 0], y)
    elif kind == "uneven":  # of many magnitudes
        half *= 10 ** rng.uniform(-9, 9, (n, 1))
        half.sort(axis=1)
        y = middle[:, 0] + rng.uniform(-1.1, 1.1, n) * half[:, 0]
    elif kind in ("huge", "tiny"):
        unit = 1e290 if kind == "huge" else 1e-290
        middle, half, y = middle * unit, half * unit, y * unit
    elif kind == "inside":
        y = middle[:, 0] + rng.uniform(-1, 1, n) * half[:, 0]
    elif kind == "one-sided":  # ends at zero, as of targets that cannot be negative
        middle = half
        y = rng.uniform(0, 2, n) * half[:, 0]
    return np.stack([middle - half, middle + half], axis=1), y


KINDS = ("smooth", "tied", "lattice", "points", "uneven", "huge", "tiny", "inside", "one-sided")
seeds = st.integers(0, 2**32 - 1)


def postprocess_of(kind, y):
    return PostProcess.from_targets(GRADES if kind == "lattice" else y)


@given(
    seeds,
    st.sampled_from(KINDS),
    st.sampled_from([0.0, 0.1, 0.25, 1 / 3]),
    st.sampled_from([math.nan, 1.0, 1e-9]),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_each_target_whose_score_is_at_most_the_quantile_is_covered(
    seed, kind, slope, unit, weighted
):
    """For the quantile of every coverage, that is for every score; units may be of other rows."""
    rng = np.random.default_rng(seed)
    ends, y = rows_of(rng, 12, kind)
    weights = rng.integers(1, 4, 12) * 1.0 if weighted else None
    postprocess = postprocess_of(kind, y)
    candidates = Candidates.checked(TWO, ends, y, postprocess, weights)
    before = Selected(BASE, slope=slope, unit=unit * candidates.units[0])
    for coverage in np.arange(1, 13) / 13 - 0.01:
        selected = widen_base(candidates, before, coverage)
        intervals = calibrated_intervals(candidates, [selected])
        lower, upper = intervals[..., 0].T
        covered = (lower <= y) & (y <= upper)
        scores = postprocess.scores(ends[..., :1], y, selected.unit)[:, 0]
        q = selected.q_hat + slope * candidates.widths_of(BASE)
        assert covered[scores <= q].all()
        if weights is None:
            assert covered.sum() >= rank(12, coverage)
        else:
            assert weights[covered].sum() >= coverage * weights.sum()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", [1.0, 0.37e-9, 1e9])
def test_each_row_is_covered_by_its_own_score(kind, unit):
    """Whatever rounds: scores are scaled, and less what the slope adds again."""
    ends, y = rows_of(np.random.default_rng(0), 2000, kind)
    targets = GRADES if kind == "lattice" else y
    postprocess = PostProcess.from_targets(targets, clip=False)
    candidates = Candidates.checked(TWO, ends, y, postprocess)
    units = unit * candidates.units
    scores = postprocess.scores(ends, y, units)
    for slope in (0.0, 0.1, 1 / 3):
        shifts = slope * candidates.widths_of(BASE)[:, None]
        q = _less(scores, shifts) + shifts
        found = postprocess.widen(ends, q, units)
        assert (q >= scores).all()
        assert ((found[:, 0] <= y[:, None]) & (y[:, None] <= found[:, 1])).all()
        if kind != "lattice" and slope == 0:
            inside = scores[:, 0] < 0
            widths = found[:, 1, 0] - found[:, 0, 0]
            expected = (ends[:, 1, 0] - ends[:, 0, 0]) * (1 + scores[:, 0] / units[0])
            rounding = 1e-14 * np.abs(ends[inside]).max(axis=(1, 2))
            assert (np.abs(widths - expected)[inside] <= rounding).all()


@given(seeds, st.sampled_from([0.3, 0.5, 0.8, 0.9]), st.sampled_from(SLOPES), st.booleans())
@settings(max_examples=60, deadline=None)
def test_split_covers_as_many_calibration_rows_as_the_rank_says(seed, coverage, slope, narrows):
    """Exactly so many, where no scores tie: slopes and units come from elsewhere."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 80))
    ends, y = rows_of(rng, n, "inside" if narrows else "smooth")
    selected = [Selected(BASE, slope=slope, unit=float(rng.gamma(2)))]
    found = calibrate_split(ends, y, y, coverage, selected=selected, bases=TWO, clip=False)
    level = found.levels[0]
    assert (level.slope, level.unit) == (slope, selected[0].unit)
    assert round(level.realised * n) == math.ceil((n + 1) * coverage - 1e-9)


@given(seeds, st.sampled_from(KINDS))
@settings(max_examples=60)
def test_without_slope_and_below_no_score_of_zero_ends_move_by_the_quantile(seed, kind):
    """Whether units are known or not, and whichever they are."""
    rng = np.random.default_rng(seed)
    ends, y = rows_of(rng, 20, kind)
    postprocess = postprocess_of(kind, y)
    plain, scaled = (postprocess.scores(ends, y, units) for units in (None, [0.5, 3.0]))
    outside = plain >= 0
    np.testing.assert_array_equal(plain[outside], scaled[outside])
    assert (scaled[~outside] < 0).all()
    q = plain[outside].max(initial=0)
    q = q if math.isfinite(q) else 1.5
    np.testing.assert_array_equal(
        postprocess.widen(ends, [q, 0.0], [0.5, 3.0]), postprocess.widen(ends, [q, 0.0])
    )


@given(seeds, st.sampled_from(["smooth", "inside", "uneven", "one-sided", "huge", "tiny"]))
@settings(max_examples=100)
def test_negative_quantiles_empty_no_interval(seed, kind):
    """All intervals keep the same share of their width, and their middle."""
    rng = np.random.default_rng(seed)
    ends, y = rows_of(rng, 50, kind)
    postprocess = PostProcess.from_targets(y)
    candidates = Candidates.checked(TWO, ends, y, postprocess)
    for share in (0.999, 0.5, 0.01):
        found = postprocess.widen(ends, -share * candidates.units, candidates.units)
        widths = ends[:, 1] - ends[:, 0]
        rounding = 1e-13 * np.abs(ends).max(axis=1)
        error = np.abs(found[:, 1] - found[:, 0] - (1 - share) * widths)
        assert (error <= rounding).all()
        middles = found / 2 - ends / 2
        assert (np.abs(middles[:, 0] + middles[:, 1]) <= rounding).all()


def test_negative_quantiles_of_rows_that_noise_leaves_wide():
    """Subtraction would empty the narrow half of the rows."""
    rng = np.random.default_rng(0)
    scale = np.where(np.arange(1000) % 2 == 0, 0.1, 10.0)
    y = scale * rng.normal(size=1000)
    ends = np.stack([-3 * scale, 3 * scale], axis=1)[..., None]
    base = [BASE._replace(level=0.9)]
    found = calibrate_split(ends, y, y, 0.8, selected=[Selected(base[0])], bases=base)
    assert found.levels[0].q_hat < -0.3
    lower, upper = found.intervals(ends)[..., 0].T
    np.testing.assert_allclose((upper - lower) / scale, 2.56, atol=0.15)
    covered = (lower <= y) & (y <= upper)
    for half in (covered[::2], covered[1::2]):
        assert 0.76 < half.mean() < 0.84


@given(
    seeds,
    st.sampled_from(KINDS),
    st.lists(st.floats(-3, 3), min_size=2, max_size=6),
    st.sampled_from(SLOPES),
)
@settings(max_examples=100)
def test_larger_quantiles_of_one_base_and_slope_contain_smaller_ones(seed, kind, q, slope):
    rng = np.random.default_rng(seed)
    ends, y = rows_of(rng, 20, kind)
    candidates = Candidates.checked(TWO, ends, y, postprocess_of(kind, y))
    unit = float(candidates.units[0])
    q_hat = np.sort(q) * unit + slope * candidates.widths_of(BASE)[:, None]
    base = np.repeat(ends[..., :1], len(q), axis=2)
    found = candidates.postprocess.widen(base, q_hat, np.full(len(q), unit))
    rounding = 1e-12 * (np.abs(ends).max() + np.abs(q_hat).max())
    assert (np.diff(found[:, 0]) <= rounding).all()
    assert (np.diff(found[:, 1]) >= -rounding).all()


@given(seeds, st.sampled_from(KINDS), st.booleans())
@settings(max_examples=40, deadline=None)
def test_intervals_of_all_rows_are_nested_over_coverages(seed, kind, adaptive):
    rng = np.random.default_rng(seed)
    ends, y = rows_of(rng, 520, kind)
    slopes = SLOPES if adaptive else (0.0,)
    found = calibrate_oob(ends, y, y, (0.2, 0.5, 0.8, 0.95), bases=TWO, slopes=slopes)
    intervals = found.intervals(ends[..., [TWO.index(base) for base in found.bases]])
    assert (np.diff(intervals[:, 0]) <= 0).all()
    assert (np.diff(intervals[:, 1]) >= 0).all()
    for j, level in enumerate(found.levels):
        lower, upper = intervals[..., j].T
        assert np.mean((lower <= y) & (y <= upper)) == level.realised >= level.coverage


def test_a_slope_widens_rows_by_their_width():
    y = np.zeros(4)
    ends = np.array([[[0.0, -w / 2], [0.0, w / 2]] for w in (0.0, 1.0, 4.0, 8.0)])
    levels = [Selected(BASE, 1.0, 0.25, 1.0), Selected(BASE, 2.0, 0.5, 1.0)]
    postprocess = PostProcess.from_targets([-99.0, 99.0])
    found = calibrated_intervals(Candidates.checked(TWO, ends, y, postprocess), levels)
    np.testing.assert_allclose(found[:, 1, 0], [1, 1.25, 2, 3], rtol=1e-14)
    np.testing.assert_allclose(found[:, 1, 1], [2, 2.5, 4, 6], rtol=1e-14)
    np.testing.assert_array_equal(found[:, 0], -found[:, 1])


def test_a_slope_is_chosen_where_noise_grows_with_the_width():
    """Targets differ by multiples of a row's width, from intervals that are points."""
    rng = np.random.default_rng(0)
    width = rng.gamma(1, 3, 2000)
    y = 0.4 * width * rng.uniform(-1, 1, 2000)
    ends = np.stack([np.zeros((2000, 2)), np.zeros((2000, 2))], axis=2)
    ends[:, 0, 1], ends[:, 1, 1] = -width / 2, width / 2
    candidates = Candidates.checked(TWO, ends, y, PostProcess.from_targets(y)).only(BASE)
    chosen = best(candidates, 0.9, "balanced", SLOPES)
    assert chosen.slope == 0.25
    found = calibrate_oob(ends, y, y, 0.9, bases=TWO)
    plain = calibrate_oob(ends, y, y, 0.9, bases=TWO, slopes=(0.0,))
    assert found.levels[0].interval_score <= plain.levels[0].interval_score


@pytest.mark.parametrize("kind", ["constant", "zero-inflated", "lattice"])
def test_targets_of_few_values(kind):
    rng = np.random.default_rng(0)
    n = 600
    y = {
        "constant": np.full(n, 0.1),
        "zero-inflated": np.where(rng.random(n) < 0.7, 0, rng.gamma(2, 3, n)),
        "lattice": rng.integers(0, 5, n) * 0.1,
    }[kind]
    ends, _ = made(n, seed=2)
    if kind == "constant":
        ends = np.full_like(ends, 0.1)
    elif kind == "zero-inflated":
        ends = np.maximum(ends - 5, 0)
    coverages = (0.3, 0.5, 0.9, 0.95)
    found = calibrate_oob(ends, y, y, coverages, bases=BASES)
    intervals = found.intervals(ends[..., [BASES.index(base) for base in found.bases]])
    assert np.isfinite(intervals).all()
    assert all(level.realised >= level.coverage for level in found.levels)
    if kind == "constant":
        assert (intervals == 0.1).all()
        assert [level.slope for level in found.levels] == [0] * 4
        assert {level.unit for level in found.levels} == {1.0}
        assert {level.cross_check.coverage for level in found.levels} == {1.0}
    if kind == "lattice":
        assert np.isin(intervals, np.unique(y)).all()
    if kind == "zero-inflated":
        assert intervals.min() == 0


def test_infinite_quantiles_with_slopes():
    """Beside negative ones, and for rows whose intervals are points."""
    ends, y = rows_of(np.random.default_rng(0), 12, "smooth")
    ends[::2, :, 0] = y[::2, None]
    selected = [Selected(BASE, slope=0.25, unit=2.0)] * 2
    with pytest.warns(UserWarning, match="coverage 0.95 are infinite: 12"):
        found = calibrate_split(ends, y, y, (0.1, 0.95), selected=selected, bases=TWO)
    assert found.levels[0].q_hat < 0
    assert found.levels[1].q_hat == math.inf
    assert found.levels[1].cross_check is None
    intervals = found.intervals(ends[..., [0, 0, 1]])
    assert np.isfinite(intervals[..., 0]).all()
    np.testing.assert_array_equal(intervals[..., 1], [[-math.inf, math.inf]] * 12)
    one = replace(found, levels=found.levels[:1], recent=None)
    assert repr(found.first(1)) == repr(one)
    np.testing.assert_array_equal(one.intervals(ends[..., [0, 1]])[..., 0], intervals[..., 0])


def test_rows_without_intervals_get_none():
    ends, y = rows_of(np.random.default_rng(0), 30, "smooth")
    selected = [Selected(BASE, slope=0.1), Selected(BASE, slope=0.0)]
    found = calibrate_split(ends, y, y, (0.3, 0.8), selected=selected, bases=TWO)
    some = ends[..., [0, 0, 1]].copy()
    some[0] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        intervals = found.intervals(some)
    assert np.isnan(intervals[0]).all()
    assert np.isfinite(intervals[1:]).all()
