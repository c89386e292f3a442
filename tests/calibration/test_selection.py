"""Selection of the base, cross-check and intervals against slow twins; and the exact promise."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdiforest.calibration._bases import Base, Candidates, candidate_bases
from hdiforest.calibration._calibrate import calibrate_oob, calibrate_split
from hdiforest.calibration._postprocess import PostProcess, nested
from hdiforest.calibration._selection import fixed, narrowest, rule_for
from hdiforest.metrics import interval_score

from . import twin
from .twin import BASES, NAMES, by_base, made


@pytest.mark.parametrize("n", [60, 501])
@pytest.mark.parametrize("lattice", [False, True])
@pytest.mark.parametrize("objective", ["width", "interval_score"])
def test_choices_intervals_and_cross_checks_equal_their_twins(n, lattice, objective):
    ends, y = made(n, lattice=lattice)
    coverages = (0.5, 0.9, 0.95)
    found = calibrate_oob(by_base(ends), y, y, coverages, objective=objective, bases=BASES)

    def expected(rows, to, n_rule):
        part, known = ends[:, :, rows], y.tolist()
        options = (coverages, NAMES, objective, n_rule)
        choices = twin.choose_all(part, y[rows].tolist(), known, *options)
        return choices, twin.intervals(ends[:, :, to], y.tolist(), NAMES, choices)

    everything = np.arange(n)
    choices, intervals = expected(everything, everything, n)
    lower, upper = np.moveaxis(intervals, 1, 0)
    inside = (lower <= y[:, None] + 1e-9) & (y[:, None] <= upper + 1e-9)
    assert [(*level.base, level.q_hat) for level in found.levels] == choices
    widths = (upper - lower).mean(axis=0)
    assert [level.mean_width for level in found.levels] == pytest.approx(widths)
    assert [level.realised for level in found.levels] == list(inside.mean(axis=0))
    base = np.stack(
        [
            ends[NAMES[0].index(f), NAMES[1].index(k), :, :, NAMES[2].index(c)]
            for f, k, c in found.bases
        ],
        axis=-1,
    )
    np.testing.assert_allclose(found.intervals(base), intervals, atol=1e-9)

    order = np.random.default_rng(0).permutation(n)
    first, second = order[: n // 2], order[n // 2 :]
    crossed = np.empty_like(intervals)
    crossed[second] = expected(first, second, n)[1]
    crossed[first] = expected(second, first, n)[1]
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
    assert found.coverages == coverages


@pytest.mark.parametrize("objective", ["width", "interval_score"])
def test_each_objective_finds_what_it_is_named_for(objective):
    ends, y = made(900, seed=3)
    candidates = Candidates.checked(BASES, by_base(ends), y)
    postprocess = PostProcess.from_targets(y)
    chosen = narrowest(candidates, 0.9, postprocess, objective=objective)
    others = [
        narrowest(
            Candidates.checked([base], candidates.ends_of(base)[..., None], y), 0.9, postprocess
        )
        for base in BASES
    ]

    def loss(level):
        if objective == "width":
            return level.loss
        base = candidates.ends_of(level.base)
        lower, upper = postprocess.apply(base[:, 0] - level.q_hat, base[:, 1] + level.q_hat)
        return interval_score(y, np.stack([lower, upper], axis=1), 0.9)

    assert loss(chosen) == pytest.approx(min(map(loss, others)))


def test_the_score_and_the_width_may_choose_differently():
    """One base misses far targets, which costs no width; the other reaches them."""
    n, y = 1000, np.zeros(1000)
    y[:40] = 100
    narrow = np.tile([-1.0, 1.0], (n, 1))
    wide = np.where((y == 100)[:, None], [0.0, 101.0], [-2.0, 2.0])
    ends = np.stack([narrow, wide])[:, None, :, :, None]
    bases = candidate_bases(("raw", "centred"), ("hdi",), (0.8,))
    smooth = np.linspace(-200, 200, n)  # training targets without a lattice
    chosen = [
        calibrate_oob(by_base(ends), y, smooth, 0.9, objective=objective, bases=bases)
        .bases[0]
        .family
        for objective in ("width", "interval_score")
    ]
    assert chosen == ["raw", "centred"]


def test_ties_go_to_the_larger_level_and_then_to_the_first():
    ends, y = made(600)
    same = np.broadcast_to(ends[:1, :1, :, :, 1:2], ends.shape)
    postprocess = PostProcess.from_targets(y)
    for levels in [(0.3, 0.8, 0.94), (0.94, 0.3, 0.8)]:
        candidates = Candidates.checked(candidate_bases(*NAMES[:2], levels), by_base(same), y)
        assert narrowest(candidates, 0.9, postprocess).base == Base("raw", "hdi", 0.94)


def test_below_500_rows_there_is_no_choice():
    for n, rule in [(499, "fixed"), (500, "narrowest_family")]:
        assert getattr(rule_for(n), "func", rule_for(n)).__name__ == rule
    ends, y = made(499)
    found = calibrate_oob(by_base(ends), y, y, (0.5, 0.9), bases=BASES)
    assert found.bases == (Base("centred", "equal_tailed", 0.8),) * 2


def test_all_coverages_have_one_family():
    """Six in ten raw intervals are nearly exact, the others far off; centred ones are all near."""
    n, rng = 1000, np.random.default_rng(0)
    y, noise = rng.normal(size=n), rng.normal(size=n)
    raw = y + noise * np.where(np.arange(n) % 10 < 6, 0.01, 3)
    centred = y + 0.5 * noise
    ends = np.stack([np.stack([m, m], axis=1)[None, :, :, None] for m in (raw, centred)])
    bases = candidate_bases(("raw", "centred"), ("hdi",), (0.5,))
    found = calibrate_oob(by_base(ends), y, y, (0.5, 0.8, 0.9), bases=bases)
    assert {base.family for base in found.bases} == {"centred"}
    alone = calibrate_oob(by_base(ends), y, y, 0.5, bases=bases)
    assert alone.bases[0].family == "raw"
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
    ends, y = made(50, names=(families, kinds, levels))
    candidates = Candidates.checked(candidate_bases(families, kinds, levels), by_base(ends), y)
    (level,) = fixed(candidates, [0.9], PostProcess.from_targets(y))
    assert level.base == expected


def test_negative_pads_narrow_the_intervals():
    ends, y = made(600)
    wide = ends + np.array([-50.0, 50.0])[:, None]
    found = calibrate_oob(by_base(wide), y, y, 0.9, clip=False, bases=BASES).levels[0]
    assert found.q_hat < 0
    assert 0.9 <= found.realised <= 0.9 + 2 / 600


@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
@settings(max_examples=30)
def test_calibrated_intervals_are_nested(seed, n):
    ends, y = made(n, seed=seed, lattice=bool(seed % 2))
    rng = np.random.default_rng(seed)
    families, kinds, levels = NAMES
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        oob = calibrate_oob(by_base(ends), y, y, (0.8, 0.3, 0.95), bases=BASES)
        mixed = [
            Base(str(rng.choice(families)), str(rng.choice(kinds)), float(rng.choice(levels)))
            for _ in oob.levels
        ]
        candidates = Candidates.checked(BASES, by_base(ends), y)
        base = np.stack([candidates.ends_of(chosen) for chosen in mixed], axis=-1)
        found = calibrate_split(base, y, y, oob.coverages, bases=mixed)
    intervals = found.intervals(base)
    np.testing.assert_array_equal(intervals, nested(intervals))
    assert found.bases == tuple(mixed)


def test_one_row_and_half_rows_have_no_cross_check():
    ends, y = made(1)
    found = calibrate_oob(by_base(ends), y, y, 0.5, bases=BASES)
    assert found.levels[0].cross_check is None
    ends, y = made(30)
    assert (
        calibrate_oob(by_base(ends), y, y, 0.95, bases=BASES).levels[0].cross_check is None
    )  # 15 of 19 needed


def test_nesting_across_families_costs_no_coverage():
    """The families are independent here, so that their hulls would cover much more than asked."""
    ends, y = made(2000, seed=5)
    coverages = (0.5, 0.8, 0.9, 0.95)
    found = calibrate_oob(by_base(ends), y, y, coverages, bases=BASES)
    alone = [calibrate_oob(by_base(ends), y, y, c, bases=BASES).levels[0] for c in coverages]
    assert (found.bases[0], found.levels[0].q_hat) == (alone[0].base, alone[0].q_hat)
    assert len(set(found.bases)) > 1
    for level in found.levels:
        assert level.coverage <= level.realised <= level.coverage + 2 / 2000


def test_a_lower_coverage_that_holds_enough_is_only_repeated():
    """Every target is an end of its interval, so that no pad covers half of them."""
    n = 1000
    y = np.tile([0.0, 1.0], n // 2)
    ends = np.broadcast_to(np.array([0.0, 1.0])[:, None], (2, 2, n, 2, 3))
    found = calibrate_oob(by_base(ends), y, np.linspace(-1, 2, n), (0.3, 0.9), bases=BASES)
    assert [level.realised for level in found.levels] == [1, 1]
    intervals = found.intervals(np.stack([ends[0, 0, ..., 0]] * 2, axis=-1))
    np.testing.assert_array_equal(intervals, ends[0, 0, ..., :2])
