"""The record of a calibration: looked up, shown, and taken through arrays."""

import json
import math
import warnings
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdicore import read_calibration
from hdiforest.calibration import Split
from hdiforest.calibration._postprocess import Lattice, PostProcess
from hdiforest.calibration._result import Calibration, CrossCheck
from hdiforest.calibration._selection import Selected
from hdiforest.serving._calibrations import calibration_arrays, calibration_of
from hdiforest.serving._parts import Parts, as_facts

from . import rows
from .rows import calibrate_oob, calibrate_split


def made(n=60, lattice=False, coverages=(0.5, 0.8, 0.9)):
    ends, quantiles, y = rows.made(n, 1, lattice)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return calibrate_oob(ends, y, y, coverages, quantiles=quantiles), (ends, y, y, coverages)


RECORD, ARGUMENTS = made()


def split(**options):
    """The same rows and bases as of RECORD, widened as by new ones."""
    ends, y, y_train, coverages = ARGUMENTS
    selected = [Selected(e.base, e.coverage) for e in RECORD.levels]
    return calibrate_split(ends, y, y_train, coverages, selected=selected, **options)


def test_a_coverage_is_looked_up_and_others_are_refused():
    assert RECORD.level(0.8) is RECORD.levels[1]
    assert RECORD.level(0.1 + 0.8) is RECORD.levels[2]  # 0.9000000000000000222
    assert RECORD.positions(0.5) == 0
    for wanted in (0.85, 0.81, math.nan):
        message = f"must be one that was calibrated: 0.5, 0.8, 0.9; got {wanted}"
        with pytest.raises(ValueError, match=message):
            RECORD.level(wanted)


def test_the_text_shows_each_coverage_on_a_line():
    lines = repr(RECORD).splitlines()
    assert lines[0] == "Calibration, method oob, 60 rows"
    assert (
        " ".join(lines[1].split()) == "nominal coverage cross check worst of five width intervals"
    )
    for line, level in zip(lines[2:5], RECORD.levels, strict=True):
        check, base = level.cross_check, level.base
        assert line.split()[:5] == [
            f"{level.coverage:g}",
            f"{level.realised:.3f}",
            f"{check.coverage:.3f}",
            "±",
            f"{check.standard_error:.3f}",
        ]
        assert f"{base.family} {base.kind} {base.level:g}, q_hat" in line
    assert lines[5] == RECORD.guarantee
    assert len({line.index("centred") for line in lines[2:5]}) == 1  # aligned
    assert made(10)[0].levels[2].cross_check is None
    assert "inf" in repr(made(5)[0])


def test_guarantees_say_what_holds():
    plain = Split().promised(split())
    assert "exchangeable with the 60" in plain.guarantee
    assert "c + 1 / 61" in plain.guarantee
    sure = Split(confidence=0.95).promised(split(confidence=0.95))
    assert "confidence of 0.95" in sure.guarantee
    assert all(a.q_hat >= b.q_hat for a, b in zip(sure.levels, plain.levels, strict=True))
    for record in (plain, sure):
        assert record.guarantee.count(". ") == 0
        assert record.guarantee.endswith(".")


def through_arrays(record):
    return calibration_of(Parts(calibration_arrays(record)))


@pytest.mark.parametrize("n", [5, 240])
@pytest.mark.parametrize("lattice", [False, True])
def test_arrays_hold_all(n, lattice):
    record, _ = made(n, lattice)
    assert list(calibration_arrays(record)) == ["numbers", "recent_scores", "facts"]
    again = through_arrays(record)
    assert again == record
    assert np.array_equal(again.postprocess.targets, record.postprocess.targets)
    assert np.array_equal(again.recent.scores, record.recent.scores)
    assert repr(again) == repr(record)
    assert (again.postprocess.lattice is not None) == (lattice and n > 100)


def pruned():
    """The record with a negative quantile, and of pruned trees."""
    levels = [replace(e, base=e.base._replace(min_samples_leaf=5)) for e in RECORD.levels]
    return replace(RECORD, levels=(replace(levels[0], q_hat=-0.1), *levels[1:]))


def test_a_record_of_pruned_trees():
    record = pruned()
    assert through_arrays(record) == record
    lines = repr(record).splitlines()
    assert all(" leaf 5, q_hat " in line for line in lines[2:5])
    note = "The trees are pruned to leaves of at least 5 rows, for predict, too."
    assert lines[5:] == [note, record.guarantee]
    assert f"<p>{note}</p>" in record._repr_html_()
    assert "pruned" not in repr(RECORD)


def test_arrays_hold_splits():
    for options in ({"confidence": 0.9}, {"weights": np.ones(60)}, {}):
        record = split(**options)
        assert through_arrays(record) == record


def test_thirds_without_rows_stay_none():
    check = CrossCheck(0.9, 0.01, 0.0, (None, 0.5, 1.0), 0.9)
    levels = (replace(RECORD.levels[0], cross_check=check),)
    record = replace(RECORD, levels=levels, recent=None)
    assert through_arrays(record) == record


def with_fact(path, value):
    """Arrays of RECORD with another entry among the facts, such as "levels.0.realised"."""
    arrays = calibration_arrays(RECORD)
    whole = json.loads(arrays["facts"].tobytes())
    *outer, last = [int(part) if part.isdecimal() else part for part in path.split(".")]
    facts = whole
    for part in outer:
        facts = facts[part]
    facts[last] = value
    return arrays | {"facts": as_facts(whole)}


CHECK = "levels.0.cross_check."


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("levels", {}, "zip.* is shorter|is longer"),
        ("levels.1", [0.5], "its facts are not what this version writes"),
        ("levels.0.interval_score", math.nan, "interval_score must not be negative"),
        ("levels.0.mean_width", -1.0, "mean_width must not be negative"),
        (CHECK + "coverage", math.nan, "coverage must be in"),
        (CHECK + "standard_error", -1.0, "standard_error must not"),
        (CHECK + "standard_error", 10**400, "OverflowError"),
        (CHECK + "thirds", [0.5, 2.0, None], "thirds must be in"),
        (CHECK + "worst_of_five", math.nan, "worst_of_five must be in"),
        ("n", True, "n must be a whole number"),
        ("confidence", 0.9, "confidence must be None unless method"),
        ("confidence", "0.9", "its facts are not|confidence must be"),
        ("recent.misses", [3.0, 0.2, 0.1], "shares of misses"),
        ("recent.history", [{"method": "often"}], "method must be 'rolling' or 'aci'"),
        ("recent", {}, "KeyError: 'history'"),
    ],
)
def test_hostile_facts_get_one_sentence(path, value, message):
    with pytest.raises(ValueError, match=message) as error:
        calibration_of(Parts(with_fact(path, value)))
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 250


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
KNOWN = json.loads(calibration_arrays(RECORD)["facts"].tobytes())
PLACES = [
    *KNOWN,
    *(f"levels.0.{name}" for name in KNOWN["levels"][0]),
    *(CHECK + name for name in KNOWN["levels"][0]["cross_check"]),
    *(f"recent.{name}" for name in KNOWN["recent"]),
]


@given(st.sampled_from(PLACES), json_values)
def test_any_fact_gives_a_record_or_one_sentence(place, value):
    try:
        record = calibration_of(Parts(with_fact(place, value)))
    except ValueError:
        return
    assert isinstance(record, Calibration)
    assert repr(record)
    with np.errstate(all="ignore"):
        record.intervals(np.zeros((2, 2, 3)))


N_NUMBERS = len(calibration_arrays(RECORD)["numbers"])


@given(
    st.lists(
        st.tuples(st.integers(0, N_NUMBERS - 1), st.floats() | st.integers(-1, 4)), max_size=3
    ),
    st.integers(0, N_NUMBERS + 2),
)
def test_any_numbers_give_a_record_or_one_sentence(changes, n):
    numbers = np.resize(calibration_arrays(RECORD)["numbers"], n)
    for at, value in changes:
        numbers[at : at + 1] = value
    with suppress(ValueError):
        assert len(read_calibration(numbers)["levels"]) <= n


@given(
    st.floats(-1e300, 1e300),
    st.floats(5e-324, 1e300),
    st.floats(-1e308, 1e308),
    st.floats(0, 1e308),
)
def test_any_postprocess_that_is_accepted_gives_ordered_ends(base, step, lower, width):
    postprocess = PostProcess(-1e300, 1e300, Lattice(base, step, 1e-6), True)
    ends = [[[lower], [min(lower + width, 1.7e308)]]]
    low, high = postprocess.engine.widen(ends, [0.0])[0, :, 0]
    assert np.isnan(low) == np.isnan(high)
    assert low <= high or np.isnan(low)


def test_files_of_earlier_commits_say_that_they_hold_no_guarantee():
    arrays = calibration_arrays(RECORD)
    facts = json.loads(arrays["facts"].tobytes())
    del facts["guarantee"]
    found = calibration_of(Parts(arrays | {"facts": as_facts(facts)}))
    assert "does not say what is promised" in repr(found)


@pytest.mark.parametrize(
    ("field", "value", "must"),
    [
        ("q_hat", -math.inf, "be a number or infinite"),
        ("q_hat", math.nan, "be a number or infinite"),
        ("mean_width", -1.0, "not be negative"),
        ("interval_score", math.nan, "not be negative"),
        ("realised", 1.1, r"be in \[0, 1\]"),
    ],
)
def test_levels_are_checked(field, value, must):
    with pytest.raises(ValueError, match=f"{field} must {must}, got {value}"):
        replace(RECORD.levels[0], **{field: value})
