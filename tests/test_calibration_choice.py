"""Choice of the base, audit and calibrated intervals, against slow twins; and the exact promise."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdiforest.calibration import FAMILIES, KINDS, LEVELS, Base, calibrate_oob, calibrate_split
from hdiforest.calibration.candidates import Candidates
from hdiforest.calibration.choice import fixed, narrowest, rule_for
from hdiforest.calibration.finish import Finish
from hdiforest.calibration.intervals import nested
from hdiforest.metrics import interval_score

from . import calibration_twin as twin

NAMES = (("raw", "centred"), ("hdi", "equal_tailed"), (0.3, 0.8, 0.94))
AXES = dict(zip(("families", "kinds", "levels"), NAMES, strict=True))


def made(n, seed=0, names=NAMES, lattice=False):
    """Candidate intervals of n rows, better or worse by family, kind and level; and targets."""
    rng = np.random.default_rng(seed)
    centre, scale = rng.normal(5, 3, n), rng.gamma(2, 1, n)
    y = centre + scale * rng.normal(size=n)
    y = np.round(y) if lattice else y
    shape = tuple(map(len, names[:2]))
    noise = rng.normal(size=(*shape, n, 1)) * rng.uniform(0.2, 1, (*shape, 1, 1))
    half = scale[:, None] * np.array(names[2]) * rng.uniform(0.5, 3, (*shape, 1, 1))
    middle = centre[:, None] + noise
    return np.stack([middle - half, middle + half], axis=3), y


@pytest.mark.parametrize("n", [60, 501])
@pytest.mark.parametrize("lattice", [False, True])
@pytest.mark.parametrize("objective", ["width", "interval_score"])
def test_choices_intervals_and_audit_equal_their_twins(n, lattice, objective):
    ends, y = made(n, lattice=lattice)
    coverages = (0.5, 0.9, 0.95)
    found = calibrate_oob(ends, y, y, coverages, objective=objective, **AXES)

    def expected(rows, to, n_rule):
        choices, inner = [], None
        part, known = ends[:, :, rows], y.tolist()
        for c in coverages:
            options = (c, NAMES, objective, n_rule, inner)
            choices.append(twin.choose(part, y[rows].tolist(), known, *options))
            inner = twin.intervals(part, known, NAMES, choices)[..., -1].tolist()
        return choices, twin.intervals(ends[:, :, to], y.tolist(), NAMES, choices)

    everything = np.arange(n)
    choices, intervals = expected(everything, everything, n)
    lower, upper = np.moveaxis(intervals, 1, 0)
    inside = (lower <= y[:, None] + 1e-9) & (y[:, None] <= upper + 1e-9)
    assert [(*level.choice.base, level.choice.pad) for level in found.levels] == choices
    widths = (upper - lower).mean(axis=0)
    assert [level.choice.mean_width for level in found.levels] == pytest.approx(widths)
    assert [level.choice.realised for level in found.levels] == list(inside.mean(axis=0))
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
        audit = level.audit
        assert audit.coverage == pytest.approx(share)
        assert audit.standard_error == pytest.approx(math.sqrt(share * (1 - share) / n))
        width = (upper - lower)[:, j]
        assert audit.mean_width == pytest.approx(width.mean())
        if not lattice:
            order = np.argsort(width)
            points, wide = np.split(inside[order, j], [np.sum(width == 0)])
            thirds = [part.mean() for part in np.array_split(wide, 3)]
            bins = [part.mean() for part in np.array_split(wide, 5)]
            if len(points) >= n / 10:
                bins.append(points.mean())
            # Where 3 or 5 do not divide the rows, a row more may be in the next bin.
            assert audit.thirds == pytest.approx(thirds, abs=6 / len(wide))
            assert audit.worst_of_five == pytest.approx(min(bins), abs=10 / len(wide))
    assert found.method == "oob"
    assert found.n == n
    assert found.coverages == coverages


@pytest.mark.parametrize("objective", ["width", "interval_score"])
def test_each_objective_finds_what_it_is_named_for(objective):
    ends, y = made(900, seed=3)
    candidates = Candidates.of(ends, y, **AXES)
    finish = Finish.of(y)
    chosen = narrowest(candidates, 0.9, finish, objective=objective)
    others = [
        narrowest(
            Candidates.of(
                ends[f : f + 1, k : k + 1, ..., c : c + 1],
                y,
                families=NAMES[0][f : f + 1],
                kinds=NAMES[1][k : k + 1],
                levels=NAMES[2][c : c + 1],
            ),
            0.9,
            finish,
        )
        for f in range(2)
        for k in range(2)
        for c in range(3)
    ]

    def loss(choice):
        if objective == "width":
            return choice.mean_width
        base = candidates.ends_of(choice.base)
        lower, upper = finish.apply(base[:, 0] - choice.pad, base[:, 1] + choice.pad)
        return interval_score(y, np.stack([lower, upper], axis=1), 0.9)

    assert loss(chosen) == pytest.approx(min(map(loss, others)))


def test_the_score_and_the_width_may_choose_differently():
    """One base misses far targets, which costs no width; the other reaches them."""
    n, y = 1000, np.zeros(1000)
    y[:40] = 100
    narrow = np.tile([-1.0, 1.0], (n, 1))
    wide = np.where((y == 100)[:, None], [0.0, 101.0], [-2.0, 2.0])
    ends = np.stack([narrow, wide])[:, None, :, :, None]
    axes = {"kinds": ("hdi",), "levels": (0.8,)}
    smooth = np.linspace(-200, 200, n)  # training targets without a lattice
    chosen = [
        calibrate_oob(ends, y, smooth, 0.9, objective=objective, **axes).bases[0].family
        for objective in ("width", "interval_score")
    ]
    assert chosen == ["raw", "centred"]


def test_ties_go_to_the_larger_level_and_then_to_the_first():
    ends, y = made(600)
    same = np.broadcast_to(ends[:1, :1, :, :, 1:2], ends.shape)
    finish = Finish.of(y)
    names = {"families": NAMES[0], "kinds": NAMES[1]}
    for levels in [(0.3, 0.8, 0.94), (0.94, 0.3, 0.8)]:
        candidates = Candidates.of(same, y, levels=levels, **names)
        assert narrowest(candidates, 0.9, finish).base == Base("raw", "hdi", 0.94)


def test_below_500_rows_there_is_no_choice():
    for n, rule in [(499, "fixed"), (500, "narrowest")]:
        assert getattr(rule_for(n), "func", rule_for(n)).__name__ == rule
    ends, y = made(499)
    found = calibrate_oob(ends, y, y, (0.5, 0.9), **AXES)
    assert found.bases == (Base("centred", "equal_tailed", 0.8),) * 2


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
    candidates = Candidates.of(ends, y, families=families, kinds=kinds, levels=levels)
    assert fixed(candidates, 0.9, Finish.of(y)).base == expected


def test_negative_pads_narrow_the_intervals():
    ends, y = made(600)
    wide = ends + np.array([-50.0, 50.0])[:, None]
    found = calibrate_oob(wide, y, y, 0.9, clip=False, **AXES).levels[0].choice
    assert found.pad < 0
    assert 0.9 <= found.realised <= 0.9 + 2 / 600


def test_a_crossed_interval_is_its_midpoint():
    """Half the rows have exact bases: the pad is -5, which crosses the narrow ones."""
    y = np.zeros(8)
    ends = np.array([[-5.0, 5.0]] * 6 + [[-1.0, 3.0]] * 2)
    found = calibrate_split(
        ends[None, None, :, :, None],
        y,
        np.linspace(-9, 9, 50),
        0.5,
        choices=[rule_for(1)(Candidates.of(ends[None, None, :, :, None], y, **ONE), 0.5, WIDE)],
        **ONE,
    )
    assert found.levels[0].choice.pad == -5
    np.testing.assert_allclose(
        found.intervals(ends[..., None])[..., 0], [[0, 0]] * 6 + [[1, 1]] * 2, atol=1e-14
    )


ONE = {"families": ("raw",), "kinds": ("hdi",), "levels": (0.8,)}
WIDE = Finish.of(np.linspace(-9, 9, 50))


@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
@settings(max_examples=30)
def test_calibrated_intervals_are_nested(seed, n):
    ends, y = made(n, seed=seed, lattice=bool(seed % 2))
    rng = np.random.default_rng(seed)
    families, kinds, levels = NAMES
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        oob = calibrate_oob(ends, y, y, (0.8, 0.3, 0.95), **AXES)
        mixed = [
            type(level.choice)(
                str(rng.choice(families)),
                str(rng.choice(kinds)),
                float(rng.choice(levels)),
                0.0,
                level.coverage,
                1.0,
                1.0,
                n,
            )
            for level in oob.levels
        ]
        found = calibrate_split(ends, y, y, oob.coverages, choices=mixed, **AXES)
    candidates = Candidates.of(ends, y, **AXES)
    base = np.stack([candidates.ends_of(choice.base) for choice in mixed], axis=-1)
    intervals = found.intervals(base)
    np.testing.assert_array_equal(intervals, nested(intervals))
    assert found.bases == tuple(choice.base for choice in mixed)


choices_of_targets = st.sampled_from(["smooth", "few", "grades"])
TRAINING = {
    "smooth": np.linspace(-6, 6, 300),
    "few": np.linspace(-6, 6, 100),
    "grades": np.repeat(np.arange(-6.0, 7.0), 30),
}


@given(
    rows=st.lists(st.tuples(*[st.integers(-80, 80)] * 3), min_size=2, max_size=14),
    training=choices_of_targets,
    coverage=st.sampled_from([0.3, 0.5, 0.8, 0.9]),
    weighted=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_split_keeps_its_promise_through_clipping_snapping_and_ties(
    rows, training, coverage, weighted
):
    """Of n + 1 rows, each left out of the calibration in turn, the share c is covered: exactly."""
    numbers = np.array(rows) / 10
    base, y = np.sort(numbers[:, :2], axis=1), numbers[:, 2]
    weights = np.arange(len(y)) % 3 + 1.0 if weighted else np.ones(len(y))
    weights[-1] = weights.max()
    ends = base[None, None, :, :, None]
    choice = fixed(Candidates.of(ends, y, **ONE), coverage, WIDE)
    covered = Fraction(0)
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = calibrate_split(
                ends[:, :, others],
                y[others],
                TRAINING[training],
                coverage,
                choices=[choice],
                weights=weights[others] if weighted else None,
                **ONE,
            )
        lower, upper = found.intervals(base[i : i + 1, :, None])[0, :, 0]
        covered += Fraction(weights[i]) * int(lower <= y[i] <= upper)
    assert covered >= Fraction(str(coverage)) * Fraction(weights.sum())


@pytest.mark.parametrize(("n", "expected"), [(8, True), (9, False)])
def test_too_few_rows_give_infinite_ends_and_one_warning(n, expected):
    ends, y = made(n)
    if not expected:
        found = calibrate_oob(ends, y, y, 0.9, **AXES)
        assert math.isfinite(found.levels[0].choice.pad)
        return
    message = "coverage 0.9, 0.95 are infinite: 8 .* too few; needed are 9 for 0.9, 19 for 0.95$"
    with pytest.warns(UserWarning, match=message) as warned:
        found = calibrate_oob(ends, y, y, (0.5, 0.9, 0.95), **AXES)
    assert len(warned) == 1
    assert warned[0].filename == __file__
    intervals = found.intervals(np.zeros((4, 2, 3)))
    assert np.isfinite(intervals[..., 0]).all()
    np.testing.assert_array_equal(intervals[..., 1:], [[[-np.inf] * 2, [np.inf] * 2]] * 4)
    assert found.level(0.9).audit is None
    assert found.level(0.9).choice.realised == 1


def test_too_few_rows_for_a_confidence():
    ends, y = made(28)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        choices = [level.choice for level in calibrate_oob(ends, y, y, 0.9, **AXES).levels]
    assert math.isfinite(
        calibrate_split(ends, y, y, 0.9, choices=choices, **AXES).levels[0].choice.pad
    )
    with pytest.warns(UserWarning, match="28 .* too few; needed are 29 for 0.9$"):
        found = calibrate_split(ends, y, y, 0.9, choices=choices, confidence=0.95, **AXES)
    assert math.isinf(found.levels[0].choice.pad)


def test_targets_outside_the_training_range_are_named_where_they_make_pads_infinite():
    ends, y = made(50)
    choices = [level.choice for level in calibrate_oob(ends, y, y, 0.9, **AXES).levels]
    far = np.append(y[:-9], np.full(9, 1e6))
    training = np.linspace(y.min(), y.max(), 300)
    with pytest.warns(UserWarning, match="0.9 are infinite: targets outside the range"):
        calibrate_split(ends, far, training, 0.9, choices=choices, **AXES)
    found = calibrate_split(ends, far, training, 0.9, choices=choices, clip=False, **AXES)
    assert 1e5 < found.levels[0].choice.pad < math.inf


def test_one_row_and_half_rows_have_no_audit():
    ends, y = made(1)
    found = calibrate_oob(ends, y, y, 0.5, **AXES)
    assert found.levels[0].audit is None
    ends, y = made(30)
    assert calibrate_oob(ends, y, y, 0.95, **AXES).levels[0].audit is None  # 15 of 19 needed


def test_weights_move_the_pad():
    ends, y = made(200)
    plain = calibrate_oob(ends, y, y, 0.8, **AXES).levels[0].choice
    equal = calibrate_oob(ends, y, y, 0.8, weights=np.full(200, 2.0), **AXES)
    assert equal.levels[0].choice == plain
    assert equal.weighted
    missed = np.abs(y - ends[1, 1, :, :, 1].mean(axis=1))
    heavy = calibrate_oob(ends, y, y, 0.8, weights=1 + missed, **AXES).levels[0].choice
    assert heavy.pad > plain.pad


def test_the_default_axes_are_those_of_the_candidates():
    ends, y = made(700, names=(FAMILIES, KINDS, LEVELS))
    found = calibrate_oob(ends, y, y, (0.99, 0.5))
    assert found.coverages == (0.5, 0.99)
    assert all(level.choice.level in LEVELS for level in found.levels)


def arguments(**changed):
    ends, y = made(30)
    return {"ends": ends, "y": y, "y_train": y, "coverages": 0.5} | AXES | changed


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ends": np.zeros((2, 2, 29, 2, 3))}, "ends must have shape .*30, 2, 3.*got .*29"),
        ({"ends": np.full((2, 2, 30, 2, 3), np.nan)}, "ends must be finite"),
        ({"ends": -np.cumsum(np.ones((2, 2, 30, 2, 3)), axis=3)}, "lower <= upper"),
        ({"y": np.full(30, np.nan)}, "y must be finite"),
        ({"y": []}, "y must have shape"),
        ({"y_train": [[1.0]]}, "y_train must have shape"),
        ({"coverages": 90}, r"coverage must be above 0 .* got 90 \(did you mean 0.9\?\)"),
        ({"coverages": (0.5, 1)}, "coverage must be above 0 and below 1, got 1"),
        ({"coverages": ()}, "coverages must be one or more"),
        ({"coverages": (0.5, 0.5)}, "coverages must be .* distinct"),
        ({"coverages": math.nan}, "coverage must be above 0"),
        ({"families": ("raw", "boosted")}, "families must be some of raw, centred"),
        ({"kinds": ("hdi", "hdi")}, "kinds must be some of hdi, equal_tailed"),
        ({"levels": (0.3, 0.8, 1.0)}, "levels must lie between"),
        ({"weights": np.ones(3)}, "weights must have shape"),
        ({"weights": np.zeros(30)}, "weights must be finite and positive"),
        ({"objective": "speed"}, "objective must be 'width' or 'interval_score', got 'speed'"),
    ],
)
def test_refused_arguments(changed, message):
    with pytest.raises(ValueError, match=message) as error:
        calibrate_oob(**arguments(**changed))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"coverages": (0.5, 0.7)}, "choices must have one for coverage 0.7, got those for 0.5"),
        ({"choices": []}, "choices must have one for coverage 0.5, got those for none"),
        ({"confidence": 1.0}, "confidence must be above 0 and below 1"),
        ({"confidence": 0.9, "weights": np.ones(30)}, "confidence must be None"),
        (
            {"levels": (0.3, 0.7, 0.94)},
            "ends must hold the chosen base centred, equal_tailed, 0.8",
        ),
    ],
)
def test_refused_arguments_of_split(changed, message):
    choices = [level.choice for level in calibrate_oob(**arguments()).levels]
    with pytest.raises(ValueError, match=message):
        calibrate_split(**arguments(choices=choices) | changed)
