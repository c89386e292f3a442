"""The rule: which distribution, which level and which quantile, against its slow twin."""

import math
import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdiforest.calibration._candidates import Candidates
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._selection import (
    OBJECTIVES,
    best,
    pinball_loss,
    scale_of,
    widened,
)
from hdiforest.metrics import interval_score

from . import twin
from .rows import calibrate_oob, made, selection
from .twin import BASES, GROUPS

COVERAGES = (0.5, 0.9)


def check_equal(found, expected):
    """Bases are those of the twin, quantiles up to rounding."""
    assert [level.base for level in found] == [base for base, _ in expected]
    q_hat = [level.q_hat for level in found]
    np.testing.assert_allclose(q_hat, [q for _, q in expected], rtol=1e-9, atol=1e-12)


def ends_for(calibration, ends, bases=BASES):
    """What `Calibration.intervals` expects."""
    return ends[..., [bases.index(base) for base in calibration.bases]]


# Below 500 rows no levels are compared, so that the objective does not matter.
CASES = [
    *product((2, 60), (False, True), ["balanced"], (False, True)),
    (501, False, "balanced", True),
    (501, True, "width", False),
    (501, False, "interval_score", False),
]


@pytest.mark.parametrize(("n", "lattice", "objective", "weighted"), CASES)
def test_choices_intervals_and_cross_checks_equal_their_twins(n, lattice, objective, weighted):
    ends, quantiles, y = made(n, seed=n, lattice=lattice)
    weights = np.arange(n) % 3 + 1.0 if weighted else np.ones(n)
    options = {"quantiles": quantiles, "objective": objective, "weights": weights}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = calibrate_oob(ends, y, y, COVERAGES, **options)

    def expected(rows, to):
        of_rows = {group: own[rows] for group, own in quantiles.items()}
        args = of_rows, y[rows].tolist(), y.tolist(), COVERAGES, objective, weights[rows].tolist()
        choices = twin.choose_all(ends[rows], *args, n=n)
        return choices, twin.intervals(ends[to], y.tolist(), choices)

    everything = np.arange(n)
    choices, intervals = expected(everything, everything)
    check_equal(found.levels, choices)
    lower, upper = np.moveaxis(intervals, 1, 0)
    inside = (lower <= y[:, None] + 1e-9) & (y[:, None] <= upper + 1e-9)
    widths = np.average(upper - lower, axis=0, weights=weights)
    assert [level.mean_width for level in found.levels] == pytest.approx(widths)
    realised = np.average(inside, axis=0, weights=weights)
    assert [level.realised for level in found.levels] == pytest.approx(realised)
    np.testing.assert_allclose(found.intervals(ends_for(found, ends)), intervals, atol=1e-9)
    assert (found.method, found.n, found.coverages) == ("oob", n, COVERAGES)
    if n < 60:
        return

    order = np.random.default_rng(0).permutation(n)
    first, second = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
    crossed = np.empty_like(intervals)
    crossed[second] = expected(first, second)[1]
    crossed[first] = expected(second, first)[1]
    lower, upper = np.moveaxis(crossed, 1, 0)
    inside = (lower <= y[:, None] + 1e-9) & (y[:, None] <= upper + 1e-9)
    for j, level in enumerate(found.levels):
        share = np.average(inside[:, j], weights=weights)
        check, width = level.cross_check, (upper - lower)[:, j]
        assert check.coverage == pytest.approx(share)
        error = math.sqrt(share * (1 - share) * (weights**2).sum()) / weights.sum()
        assert check.standard_error == pytest.approx(error)
        assert check.mean_width == pytest.approx(np.average(width, weights=weights))
        if not lattice and not weighted:
            in_order = inside[np.argsort(width), j]
            thirds = [part.mean() for part in np.array_split(in_order, 3)]
            bins = [part.mean() for part in np.array_split(in_order, 5)]
            # Where 3 or 5 do not divide the rows, a row more may be in the next bin.
            assert check.thirds == pytest.approx(thirds, abs=6 / n)
            assert check.worst_of_five == pytest.approx(min(bins), abs=10 / n)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_the_crps_equals_its_twin(seed, weighted):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 20))
    quantiles, y = np.sort(np.round(rng.normal(size=(n, 19)), 1), axis=1), rng.normal(size=n)
    y[::3] = quantiles[::3, 4]  # a quantile that is the target costs nothing
    weights = rng.uniform(0.5, 3, n) if weighted else None
    expected = twin.crps(quantiles.tolist(), y, np.ones(n) if weights is None else weights)
    assert pinball_loss(quantiles, y, weights) == pytest.approx(expected)


@pytest.mark.parametrize("group", GROUPS)
def test_the_distribution_of_least_crps_serves_all_coverages(group):
    ends, quantiles, y = made(600, seed=4)
    quantiles[group] = y[:, None] + np.linspace(-0.1, 0.1, 19)
    found = calibrate_oob(ends, y, y, (0.3, 0.5, 0.9), quantiles=quantiles)
    assert {base.group for base in found.bases} == {group}


def test_of_equal_distributions_the_first_is_taken():
    ends, quantiles, y = made(600)
    same = dict.fromkeys(GROUPS, quantiles[GROUPS[1]])
    found = calibrate_oob(ends, y, y, 0.9, quantiles=same)
    assert found.bases[0].group == GROUPS[0]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_each_objective_finds_what_it_is_named_for(objective):
    ends, _, y = made(900, seed=3)
    postprocess = PostProcess.from_targets(y)
    candidates = Candidates(BASES[:3], ends[..., :3], y, postprocess, {})

    def loss(selected):
        own = candidates.ends_of(selected.base)[..., np.newaxis]
        found = postprocess.engine.widen(own, [selected.q_hat])
        width, score = np.ptp(found, axis=1).mean(), interval_score(y, found, [0.9])[0]
        return {"width": width, "interval_score": score, "balanced": width * score**1.5}[objective]

    of_each = [
        best(Candidates([base], ends[..., [j]], y, postprocess, {}), 0.9, objective)
        for j, base in enumerate(BASES[:3])
    ]
    found = best(candidates, 0.9, objective)
    assert loss(found) == pytest.approx(min(map(loss, of_each)))
    # The scale is a mean, whose last bits depend on how many levels are compared at once.
    assert found[:3] in [each[:3] for each in of_each]


def test_the_score_and_the_width_may_choose_differently():
    """One level misses far targets, which costs no width; the other reaches them."""
    n, y = 1000, np.zeros(1000)
    y[:40] = 100
    narrow = np.tile([-1.0, 1.0], (n, 1))
    wide = np.where((y == 100)[:, None], [0.0, 101.0], [-2.0, 2.0])
    ends = np.stack([narrow, wide], axis=-1)
    smooth = np.linspace(-200, 200, n)  # training targets without a lattice
    found = [
        calibrate_oob(ends, y, smooth, 0.9, objective=objective, bases=BASES[:2]).bases[0]
        for objective in ("width", "interval_score")
    ]
    assert found == list(BASES[:2])


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_ties_go_to_the_larger_level(order):
    ends, _, y = made(600)
    same = np.repeat(ends[..., :1], 3, axis=2)
    found = calibrate_oob(same, y, y, 0.9, bases=[BASES[j] for j in order])
    assert found.bases[0] == BASES[2]


@pytest.mark.parametrize(
    ("coverage", "level"),
    [(0.2, 0.3), (0.5, 0.3), (0.79, 0.3), (0.8, 0.8), (0.95, 0.8), (0.99, 0.8)],
)
def test_below_500_rows_the_level_is_fixed(coverage, level):
    """The largest up to 0.8 and to the coverage, so that narrow intervals are not emptied."""
    ends, quantiles, y = made(500, seed=1)
    part = {group: own[:499] for group, own in quantiles.items()}
    found = calibrate_oob(ends[:499], y[:499], y, coverage, quantiles=part)
    assert found.bases[0].level == level
    assert calibrate_oob(ends, y, y, coverage, quantiles=quantiles).n == 500


def test_coverages_do_not_depend_on_each_other():
    ends, quantiles, y = made(800, seed=2)
    options = {"quantiles": quantiles}
    whole = calibrate_oob(ends, y, y, (0.1, 0.5, 0.8, 0.9, 0.99), **options)
    for some in [(0.9,), (0.5, 0.99), (0.1, 0.8)]:
        found = calibrate_oob(ends, y, y, some, **options)
        assert [(e.base, e.q_hat) for e in found.levels] == [
            (e.base, e.q_hat) for e in map(whole.level, some)
        ]


def test_points_of_rounding_are_points():
    """Both levels make points of all intervals but for roundings, which must not choose."""
    n = 600
    y = np.random.default_rng(0).normal(size=n)
    ends = np.stack([np.stack([y - e, y + e], axis=1) for e in (0.1, 0.7, 1.3)], axis=-1)
    found = calibrate_oob(ends, y, y, 0.5, bases=BASES[:3])
    assert found.bases[0] == BASES[2]
    assert found.levels[0].mean_width < 1e-12


@pytest.mark.parametrize("n", [60, 600])
def test_levels_with_infinite_intervals_take_the_largest(n):
    ends, quantiles, y = made(n)
    with pytest.warns(UserWarning, match="0.9999 are infinite"):
        found = calibrate_oob(ends, y, y, (0.5, 0.9999), quantiles=quantiles)
    assert found.levels[1].q_hat == math.inf
    assert found.bases[1].level == (0.94 if n >= 500 else 0.8)
    assert math.isfinite(found.levels[0].q_hat)


def test_negative_quantiles_narrow_the_intervals():
    ends, quantiles, y = made(600)
    wide = ends + np.array([-50.0, 50.0])[:, None]
    found = calibrate_oob(wide, y, y, 0.9, clip=False, quantiles=quantiles).levels[0]
    assert found.q_hat < 0
    assert 0.9 <= found.realised <= 0.9 + 2 / 600


def test_the_scale_of_boxes_is_half_a_width():
    postprocess = PostProcess.from_targets([1.0, 4.0, 7.0])
    assert scale_of(3.0, postprocess) == 1.5
    assert scale_of(0.0, postprocess) == scale_of(math.inf, postprocess) == 3.0
    assert scale_of(0.0, PostProcess.from_targets([7.0, 7.0])) == 0.0
    ends, quantiles, y = made(600)
    known, rule = selection(ends, y, y, (0.5, 0.9), quantiles=quantiles)
    alone = calibrate_oob(ends, y, y, 0.5, quantiles=quantiles)
    assert rule(*known)[0].scale == pytest.approx(alone.levels[0].mean_width / 2)


def test_nesting_never_lowers_coverage():
    """Levels differ from coverage to coverage here, so that hulls cover more than asked."""
    ends, quantiles, y = made(2000, seed=6)
    coverages = (0.5, 0.8, 0.9, 0.95)
    found = calibrate_oob(ends, y, y, coverages, quantiles=quantiles)
    assert all(level.realised >= level.coverage for level in found.levels)


def test_a_lower_coverage_that_holds_enough_is_only_repeated():
    """Every target is an end of its interval, so that no quantile covers half of them."""
    n = 1000
    y = np.tile([0.0, 1.0], n // 2)
    ends = np.repeat(np.tile([[[0.0], [1.0]]], (n, 1, 1)), 3, axis=2)
    found = calibrate_oob(ends, y, np.linspace(-1, 2, n), (0.3, 0.9), bases=BASES[:3])
    assert [level.realised for level in found.levels] == [1, 1]
    np.testing.assert_array_equal(found.intervals(ends[..., :2]), ends[..., :2])


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("weighted", [False, True])
def test_what_was_selected_gets_the_same_quantiles_on_the_same_rows(objective, weighted):
    ends, quantiles, y = made(800, seed=1)
    options = {"objective": objective, "quantiles": quantiles}
    options["weights"] = np.arange(800) % 3 + 1.0 if weighted else None
    known, rule = selection(ends, y, y, COVERAGES, **options)
    selected = rule(*known)
    assert widened(known[0], selected) == selected
    whole = calibrate_oob(ends, y, y, COVERAGES, **options)
    again = calibrate_oob(ends, y, y, COVERAGES, **options, selected=selected)
    assert [e.q_hat for e in again.levels] == [e.q_hat for e in whole.levels]


@pytest.mark.parametrize("kind", ["constant", "zero-inflated", "lattice", "two"])
@pytest.mark.parametrize("n", [100, 600])
def test_targets_of_few_values(kind, n):
    rng = np.random.default_rng(0)
    y = {
        "constant": np.full(n, 0.1),
        "zero-inflated": np.where(rng.random(n) < 0.7, 0, rng.gamma(2, 3, n)),
        "lattice": rng.integers(0, 5, n) * 0.1,
        "two": rng.integers(0, 2, n) * 0.2 + 0.1,
    }[kind]
    ends, quantiles, _ = made(n, seed=2)
    if kind == "constant":
        ends, quantiles = np.full_like(ends, 0.1), {g: q * 0 + 0.1 for g, q in quantiles.items()}
    elif kind == "zero-inflated":
        ends = np.maximum(ends - 5, 0)
    found = calibrate_oob(ends, y, y, (0.3, 0.5, 0.9, 0.95), quantiles=quantiles)
    intervals = found.intervals(ends_for(found, ends))
    assert np.isfinite(intervals).all()
    assert all(level.realised >= level.coverage for level in found.levels)
    if kind == "constant":
        assert (intervals == 0.1).all()
        assert {base.group for base in found.bases} == {GROUPS[0]}
        assert {level.cross_check.coverage for level in found.levels} == {1.0}
    if kind in ("lattice", "two") and found.postprocess.clip:
        assert np.isin(intervals, np.unique(y)).all()
