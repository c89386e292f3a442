"""Selection of base and slope, cross-check and intervals against slow twins."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdiforest.calibration._bases import Base, Candidates, candidate_bases
from hdiforest.calibration._postprocess import PostProcess, nested
from hdiforest.calibration._selection import (
    OBJECTIVES,
    SLOPES,
    Selected,
    best,
    best_group,
    fixed,
    rule_for,
)
from hdiforest.metrics import interval_score

from . import twin
from .twin import BASES, calibrate_oob, calibrate_split, made, select_out_of_bag

COVERAGES = (0.5, 0.9)
ONE_WIDTH = (0.0,)  # no slope to choose


def check_equal(found, choices):
    """Bases and slopes are those of the twin, quantiles and units up to rounding."""
    assert [(level.base, level.slope) for level in found] == [
        (choice.base, choice.slope) for choice in choices
    ]
    q_hat, units = (
        np.array([getattr(level, name) for level in found]) for name in ("q_hat", "unit")
    )
    np.testing.assert_allclose(q_hat, [choice.q for choice in choices], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(units, [choice.unit for choice in choices], rtol=1e-12)


def ends_for(calibration, ends, bases=BASES):
    """What `Calibration.intervals` expects."""
    return ends[..., [bases.index(base) for base in calibration.bases]]


@pytest.mark.parametrize("n", [60, 501])
@pytest.mark.parametrize("lattice", [False, True])
@pytest.mark.parametrize("objective", ["balanced", "width", "interval_score"])
def test_choices_intervals_and_cross_checks_equal_their_twins(n, lattice, objective):
    ends, y = made(n, seed=1, lattice=lattice)
    known = y.tolist()
    found = calibrate_oob(ends, y, y, COVERAGES, objective=objective, bases=BASES)
    choose = twin.corrected if n >= 500 else twin.choose_all

    def expected(rows, to):
        options = (COVERAGES, objective, SLOPES, n)
        choices = choose(ends[rows], BASES, y[rows].tolist(), known, *options)
        return choices, twin.intervals(ends[to], BASES, known, choices)

    everything = np.arange(n)
    choices, intervals = expected(everything, everything)
    check_equal(found.levels, choices)
    lower, upper = np.moveaxis(intervals, 1, 0)
    inside = (lower <= y[:, None] + 1e-9) & (y[:, None] <= upper + 1e-9)
    widths = (upper - lower).mean(axis=0)
    assert [level.mean_width for level in found.levels] == pytest.approx(widths)
    assert [level.realised for level in found.levels] == list(inside.mean(axis=0))
    np.testing.assert_allclose(found.intervals(ends_for(found, ends)), intervals, atol=1e-9)

    order = np.random.default_rng(0).permutation(n)
    first, second = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
    crossed = np.empty_like(intervals)
    crossed[second] = expected(first, second)[1]
    crossed[first] = expected(second, first)[1]
    lower, upper = np.moveaxis(crossed, 1, 0)
    inside = (lower <= y[:, None] + 1e-9) & (y[:, None] <= upper + 1e-9)
    for j, level in enumerate(found.levels):
        share = inside[:, j].mean()
        check = level.cross_check
        assert check.coverage == pytest.approx(share)
        assert check.standard_error == pytest.approx(math.sqrt(share * (1 - share) / n))
        width = (upper - lower)[:, j]
        assert check.mean_width == pytest.approx(width.mean())
        if not lattice:
            order = np.argsort(width)
            points, wide = np.split(inside[order, j], [np.sum(width == 0)])
            thirds = [part.mean() for part in np.array_split(wide, 3)]
            bins = [part.mean() for part in np.array_split(wide, 5)]
            if len(points) >= n / 10:
                bins.append(points.mean())
            # Where 3 or 5 do not divide the rows, a row more may be in the next bin.
            assert check.thirds == pytest.approx(thirds, abs=6 / len(wide))
            assert check.worst_of_five == pytest.approx(min(bins), abs=10 / len(wide))
    assert found.method == "oob"
    assert found.n == n
    assert found.coverages == COVERAGES


def scores_of(selected, candidates, coverage):
    """Mean width and mean interval score of what was selected."""
    candidate = candidates.only(selected.base)
    shifts = selected.slope * candidate.widths[:, None]
    q_hat = selected.q_hat + shifts
    found = candidate.postprocess.widen(candidate.ends, q_hat, [selected.unit])
    width = (found[:, 1] - found[:, 0]).mean()
    return width, interval_score(candidates.y, found, [coverage])[0]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_each_objective_finds_what_it_is_named_for(objective):
    ends, y = made(900, seed=3)
    candidates = Candidates.checked(BASES, ends, y, PostProcess.from_targets(y)).groups()[0]

    def loss(selected):
        width, score = scores_of(selected, candidates, 0.9)
        return {
            "width": width,
            "interval_score": score,
            "balanced": width * score**1.5,
        }[objective]

    chosen = best(candidates, 0.9, objective, SLOPES)
    assert math.exp(chosen.loss) == pytest.approx(loss(chosen))
    others = [
        best(candidates.only(base), 0.9, objective, (slope,))
        for base in candidates.bases
        for slope in SLOPES
    ]
    assert loss(chosen) == pytest.approx(min(map(loss, others)))


def test_the_score_and_the_width_may_choose_differently():
    """One base misses far targets, which costs no width; the other reaches them."""
    n, y = 1000, np.zeros(1000)
    y[:40] = 100
    narrow = np.tile([-1.0, 1.0], (n, 1))
    wide = np.where((y == 100)[:, None], [0.0, 101.0], [-2.0, 2.0])
    ends = np.stack([narrow, wide], axis=-1)
    bases = candidate_bases(("raw", "centred"), ("hdi",), (0.8,))
    smooth = np.linspace(-200, 200, n)  # training targets without a lattice
    chosen = [
        calibrate_oob(ends, y, smooth, 0.9, objective=objective, bases=bases, slopes=ONE_WIDTH)
        .bases[0]
        .family
        for objective in ("width", "interval_score")
    ]
    assert chosen == ["raw", "centred"]


def test_ties_go_to_the_larger_level_and_then_to_the_first():
    ends, y = made(600)
    postprocess = PostProcess.from_targets(y)
    for levels in [(0.3, 0.8, 0.94), (0.94, 0.3, 0.8)]:
        bases = candidate_bases(("raw", "centred"), ("hdi", "equal_tailed"), levels, (1, 5))
        same = np.repeat(ends[..., :1], len(bases), axis=2)
        candidates = Candidates.checked(bases, same, y, postprocess)
        (selected,) = best_group(candidates, [0.9], slopes=ONE_WIDTH)
        assert selected.base == Base("raw", "hdi", 0.94)


def test_ties_of_slopes_go_to_the_first():
    """All rows are equally wide, so that a slope only moves the quantile."""
    y = np.random.default_rng(0).normal(size=600)
    bases = candidate_bases(("raw",), ("equal_tailed",), (0.8,))
    ends = np.tile([[[-1.0], [1.0]]], (600, 1, 1))
    candidates = Candidates.checked(bases, ends, y, PostProcess.from_targets(y)).only(bases[0])
    for slopes in [(0.0, 0.125, 0.25), (0.25, 0.0)]:
        selected = best(candidates, 0.9, "width", slopes)
        assert selected.slope == slopes[0]


def test_below_500_rows_there_is_no_choice():
    for n, rule in [(499, "fixed"), (500, "best_group")]:
        assert getattr(rule_for(n), "func", rule_for(n)).__name__ == rule
    ends, y = made(500, seed=1)
    found = calibrate_oob(ends[:499], y[:499], y, COVERAGES, bases=BASES)
    assert {(level.base, level.slope) for level in found.levels} == {
        (Base("centred", "equal_tailed", 0.8), 0.0)
    }
    assert not found.is_adaptive
    found = calibrate_oob(ends, y, y, COVERAGES, bases=BASES)
    assert found.is_adaptive


@pytest.mark.parametrize(
    "two",
    [
        candidate_bases(("raw", "centred"), ("hdi",), (0.5,)),
        candidate_bases(("raw",), ("hdi",), (0.5,), (1, 15)),
    ],
)
def test_all_coverages_have_one_group(two):
    """Six in ten raw intervals are nearly exact, the others far off; centred ones are all near."""
    n, rng = 1000, np.random.default_rng(0)
    y, noise = rng.normal(size=n), rng.normal(size=n)
    raw = y + noise * np.where(np.arange(n) % 10 < 6, 0.1, 3)
    centred = y + 0.5 * noise
    ends = np.stack([np.stack([m, m], axis=1) for m in (raw, centred)], axis=-1)
    bases = two
    options = {"bases": bases, "objective": "width", "slopes": ONE_WIDTH}
    found = calibrate_oob(ends, y, y, (0.5, 0.8, 0.9), **options)
    assert set(found.bases) == {bases[1]}
    alone = calibrate_oob(ends, y, y, 0.5, **options)
    assert alone.bases[0] == bases[0]
    assert alone.levels[0].mean_width < found.levels[0].mean_width


@pytest.mark.parametrize(
    ("families", "kinds", "levels", "expected"),
    [
        (("raw",), ("hdi", "equal_tailed"), (0.3, 0.8), ("raw", "equal_tailed", 0.8)),
        (("raw", "centred"), ("hdi",), (0.3, 0.8), ("centred", "hdi", 0.8)),
        (("raw",), ("hdi",), (0.3, 0.7), ("raw", "hdi", 0.7)),
    ],
)
def test_without_the_fixed_base_the_nearest_candidate_serves(families, kinds, levels, expected):
    bases = candidate_bases(families, kinds, levels, (5, 1, 15))
    ends, y = made(50, bases=bases)
    (selected,) = fixed(Candidates.checked(bases, ends, y, PostProcess.from_targets(y)), [0.9])
    assert selected.base == Base(*expected)
    assert selected.slope == 0


def test_negative_pads_narrow_the_intervals():
    ends, y = made(600)
    wide = ends + np.array([-50.0, 50.0])[:, None]
    options = {"clip": False, "bases": BASES, "slopes": ONE_WIDTH}
    found = calibrate_oob(wide, y, y, 0.9, **options).levels[0]
    assert -found.unit < found.q_hat < 0
    assert 0.9 <= found.realised <= 0.9 + 2 / 600


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.booleans())
@settings(max_examples=30, deadline=None)
def test_calibrated_intervals_are_nested(seed, n, adaptive):
    """Whatever the coverages were given: other bases and slopes, of one group."""
    ends, y = made(n, seed=seed, lattice=bool(seed % 2))
    rng = np.random.default_rng(seed)
    slopes = rng.choice(SLOPES, 3) if adaptive else np.zeros(3)
    own = [BASES[j] for j in rng.choice(6 if adaptive else len(BASES), 3)]
    selected = [Selected(base, slope=float(b)) for base, b in zip(own, slopes, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = calibrate_split(ends, y, y, (0.3, 0.8, 0.95), selected=selected, bases=BASES)
        again = calibrate_oob(ends, y, y, (0.8, 0.3, 0.95), bases=BASES, selected=selected)
    for calibration in (found, again):
        intervals = calibration.intervals(ends_for(calibration, ends))
        np.testing.assert_array_equal(intervals, nested(intervals))
        assert tuple(level.base for level in calibration.levels) == tuple(own)
        assert [level.slope for level in calibration.levels] == list(slopes)
        assert calibration.is_adaptive == (slopes > 0).any()


def test_one_row_and_half_rows_have_no_cross_check():
    ends, y = made(1)
    found = calibrate_oob(ends, y, y, 0.5, bases=BASES)
    assert found.levels[0].cross_check is None
    ends, y = made(30)
    assert (
        calibrate_oob(ends, y, y, 0.95, bases=BASES).levels[0].cross_check is None
    )  # 15 of 19 needed


@pytest.fixture
def uncorrected(monkeypatch):
    """Quantiles do not allow for the optimism of the selection."""
    monkeypatch.setattr("hdiforest.calibration._selection.corrected", lambda rule: rule)


@pytest.mark.usefixtures("uncorrected")
def test_nesting_of_several_bases_costs_no_coverage():
    """The kinds are independent here, so that their hulls would cover much more than asked."""
    ends, y = made(2000, seed=6)
    coverages = (0.5, 0.8, 0.9, 0.95)
    found = calibrate_oob(ends, y, y, coverages, bases=BASES, objective="width")
    group = [j for j, base in enumerate(BASES) if base.group == found.bases[0].group]
    own = [BASES[j] for j in group]
    alone = calibrate_oob(ends[..., group], y, y, 0.5, bases=own, objective="width").levels[0]
    assert (found.levels[0].base, found.levels[0].q_hat) == (alone.base, alone.q_hat)
    assert len({level.base for level in found.levels}) > 1
    for level in found.levels:
        assert level.coverage <= level.realised <= level.coverage + 2 / 2000


def test_a_lower_coverage_that_holds_enough_is_only_repeated():
    """Every target is an end of its interval, so that no pad covers half of them."""
    n = 1000
    y = np.tile([0.0, 1.0], n // 2)
    ends = np.repeat(np.tile([[[0.0], [1.0]]], (n, 1, 1)), len(BASES), axis=2)
    found = calibrate_oob(ends, y, np.linspace(-1, 2, n), (0.3, 0.9), bases=BASES)
    assert [level.realised for level in found.levels] == [1, 1]
    intervals = found.intervals(ends_for(found, ends))
    np.testing.assert_array_equal(intervals, ends[..., :2])


@pytest.mark.parametrize("objective", ["balanced", "width"])
def test_groups_are_compared_where_all_are_finite(objective):
    """Raw intervals are points at the lower coverage, and wider at the higher one.

    Were the logarithm of zero counted, they would be best.
    """
    n, rng = 1000, np.random.default_rng(0)
    y = rng.normal(size=n)
    near = np.arange(n) % 10 < 6
    raw = np.where(near, y, y + 20 * rng.choice([-1, 1], n))
    centred = y + 0.1 * rng.normal(size=n)
    ends = np.stack([np.stack([m, m], axis=1) for m in (raw, centred)], axis=-1)
    bases = candidate_bases(("raw", "centred"), ("hdi",), (0.5,))
    options = {"bases": bases, "slopes": ONE_WIDTH, "objective": objective, "clip": False}
    found = calibrate_oob(ends, y, y, (0.5, 0.9), **options)
    assert [level.base for level in found.levels] == [bases[1]] * 2
    alone = calibrate_oob(ends, y, y, 0.5, **options).levels[0]
    assert (alone.base, alone.mean_width) == (bases[0], 0)


def quantiles(levels):
    return [(level.base, level.slope, level.q_hat, level.unit) for level in levels]


@pytest.mark.usefixtures("uncorrected")
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("lattice", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_was_selected_gets_the_same_quantiles_on_the_same_rows(objective, lattice, weighted):
    ends, y = made(800, seed=1, lattice=lattice)
    options = {"bases": BASES, "objective": objective}
    options["weights"] = np.arange(800) % 3 + 1.0 if weighted else None
    selected = select_out_of_bag(ends, y, y, COVERAGES, **options)
    whole = calibrate_oob(ends, y, y, COVERAGES, **options)
    again = calibrate_oob(ends, y, y, COVERAGES, **options, selected=selected)
    assert quantiles(again.levels) == quantiles(whole.levels) == quantiles(selected)
    assert [level.realised for level in again.levels] == [level.realised for level in whole.levels]


def test_quantiles_of_more_rows_equal_their_twin():
    """Selected on 600 rows, widened by another 300, and checked on these."""
    ends, y = made(900, seed=1)
    part, others = np.arange(600), np.arange(600, 900)
    known = y.tolist()
    selected = select_out_of_bag(ends[part], y[part], y, COVERAGES, bases=BASES)
    choices = twin.choose_all(ends[part], BASES, y[part].tolist(), known, COVERAGES)
    check_equal(selected, choices)
    found = calibrate_oob(ends[others], y[others], y, COVERAGES, bases=BASES, selected=selected)
    own = y[others].tolist()
    check_equal(found.levels, twin.requantiled(ends[others], BASES, own, known, COVERAGES, choices))
    order = others[np.random.default_rng(0).permutation(300)]
    inside = []
    for rows, to in [(order[:150], order[150:]), (order[150:], order[:150])]:
        again = twin.requantiled(ends[rows], BASES, y[rows].tolist(), known, COVERAGES, choices)
        lower, upper = np.moveaxis(twin.intervals(ends[to], BASES, known, again), 1, 0)
        inside.append((lower - 1e-9 <= y[to, None]) & (y[to, None] <= upper + 1e-9))
    shares = [level.cross_check.coverage for level in found.levels]
    assert shares == pytest.approx(np.concatenate(inside).mean(axis=0))


def test_what_was_selected_must_be_among_the_bases():
    ends, y = made(30)
    with pytest.raises(ValueError, match=r"ends must hold the base raw hdi 0\.94"):
        calibrate_oob(ends, y, y, 0.5, bases=BASES, selected=[Selected(Base("raw", "hdi", 0.94))])
