"""The record of a calibration: looked up, shown, and taken through arrays."""

import json
import math
import warnings
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdiforest.calibration._bases import Base
from hdiforest.calibration._postprocess import Lattice, PostProcess
from hdiforest.calibration._result import Calibration, CrossCheck
from hdiforest.calibration._selection import Selected
from hdiforest.serving._serialization import calibration_from_arrays, calibration_to_arrays

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


def test_the_html_is_a_well_formed_table():
    opened, cells = [], []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            opened.append(tag)

        def handle_endtag(self, tag):
            assert opened.pop() == tag

        def handle_data(self, data):
            cells.append(data)

    Reader().feed(RECORD._repr_html_())
    assert not opened
    assert {"nominal", "worst of five", "0.5", "0.8", "0.9", RECORD.guarantee} <= set(cells)


def test_guarantees_say_what_holds():
    assert "No guarantee" in RECORD.guarantee
    plain = split()
    assert "exchangeable with the 60" in plain.guarantee
    assert "c + 1 / 61" in plain.guarantee
    sure = split(confidence=0.95)
    assert "confidence of 0.95" in sure.guarantee
    assert all(a.q_hat >= b.q_hat for a, b in zip(sure.levels, plain.levels, strict=True))
    weighted = split(weights=np.ones(60))
    assert "weights" in weighted.guarantee
    for record in (RECORD, plain, sure, weighted):
        assert record.guarantee.count(". ") == 0
        assert record.guarantee.endswith(".")


TARGETS = "postprocess.targets"


def through_json(record):
    facts, arrays = calibration_to_arrays(record)
    return calibration_from_arrays(json.loads(json.dumps(facts, allow_nan=False)), arrays)


@pytest.mark.parametrize("n", [5, 30, 60, 240])
@pytest.mark.parametrize("lattice", [False, True])
def test_arrays_hold_all(n, lattice):
    record, _ = made(n, lattice)
    facts, arrays = calibration_to_arrays(record)
    targets = [] if facts["postprocess"]["lattice"] is None else [TARGETS]
    assert list(arrays) == [*targets, "recent.scores"]
    assert through_json(record) == record
    assert np.array_equal(through_json(record).postprocess.targets, record.postprocess.targets)
    assert repr(through_json(record)) == repr(record)
    assert (facts["postprocess"]["lattice"] is not None) == (lattice and n > 100)


def pruned():
    """The record with a negative quantile, and of pruned trees."""
    levels = [replace(e, base=e.base._replace(min_samples_leaf=5)) for e in RECORD.levels]
    return replace(RECORD, levels=(replace(levels[0], q_hat=-0.1), *levels[1:]))


def test_a_record_of_pruned_trees():
    record = pruned()
    assert through_json(record) == record
    lines = repr(record).splitlines()
    assert all(" leaf 5, q_hat " in line for line in lines[2:5])
    note = "The trees are pruned to leaves of at least 5 rows, for predict, too."
    assert lines[5:] == [note, record.guarantee]
    assert f"<p>{note}</p>" in record._repr_html_()
    assert "pruned" not in repr(RECORD)


def test_the_lowest_coverages_of_a_record_have_the_same_intervals():
    record = pruned()
    ends = np.sort(np.random.default_rng(0).normal(size=(30, 2, 3)), axis=1)
    whole = record.intervals(ends)
    for k in (1, 2, 3):
        np.testing.assert_array_equal(record.first(k).intervals(ends[..., :k]), whole[..., :k])


def test_arrays_hold_splits():
    for options in ({"confidence": 0.9}, {"weights": np.ones(60)}, {}):
        record = split(**options)
        assert through_json(record) == record


def test_thirds_without_rows_stay_none():
    check = CrossCheck(0.9, 0.01, 0.0, (None, 0.5, 1.0), 0.9)
    levels = (replace(RECORD.levels[0], cross_check=check),)
    record = replace(RECORD, levels=levels, recent=None)
    assert through_json(record) == record


def fact(path, value):
    """Change one entry, such as "levels.0.q_hat"."""

    def change(facts, _):
        *outer, last = [int(part) if part.isdecimal() else part for part in path.split(".")]
        for part in outer:
            facts = facts[part]
        facts[last] = value

    return change


INFINITE, NAN = {"float": "inf"}, {"float": "nan"}
LATTICE = {"base": 0.0, "step": 1.0, "slack": 0.0}


def targets(array, lattice=LATTICE):
    def change(facts, arrays):
        facts["postprocess"] |= {"targets": len(array), "lattice": lattice}
        arrays[TARGETS] = array

    return change


CHECK = "levels.0.cross_check."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda facts, _: facts["levels"][0].pop("q_hat"), r"levels\[0\].q_hat is missing"),
        (lambda facts, _: facts.pop("n"), "the fact n is missing"),
        (lambda _, arrays: arrays.update(more=np.zeros(3)), "it has the tensor 'more', which"),
        (fact("more", 1), "it has the fact 'more', which"),
        (fact("levels.0.more", 1), r"it has the fact 'levels\[0\].more', which"),
        (fact("levels", {}), "levels must be a list, got"),
        (fact("levels", []), "coverages must be one or more and ascend"),
        (fact("levels.1", [0.5]), r"levels\[1\] must be an object, got"),
        (fact("levels.0.q_hat", "0.5"), r"levels\[0\].q_hat must be a number, got '0.5'"),
        (fact("levels.0.q_hat", {"float": "1"}), "q_hat must be a number, got"),
        (fact("levels.0.q_hat", True), "q_hat must be a number, got"),
        (fact("levels.0.q_hat", NAN), "q_hat must be a number or infinite"),
        (fact("levels.0.q_hat", {"float": "-inf"}), "q_hat must be a number or infinite"),
        (fact("levels.0.interval_score", NAN), "interval_score must not be negative"),
        (fact("levels.0.base.min_samples_leaf", 0), "min_samples_leaf must be a whole number"),
        (fact("levels.0.base.min_samples_leaf", [1]), "min_samples_leaf must be a whole number"),
        (fact("levels.0.base.min_samples_leaf", 7), "of one distribution, that is of one family"),
        (fact("levels.0.coverage", 0.0), "coverage must be above 0"),
        (fact("levels.0.coverage", NAN), "coverage must be above 0"),
        (fact("levels.0.coverage", 0.95), "coverages must be one or more and ascend"),
        (fact("levels.0.base.level", 1.0), "level must be above 0"),
        (fact("levels.0.mean_width", -1.0), "mean_width must not be negative"),
        (fact("levels.0.mean_width", NAN), "mean_width must not be negative"),
        (fact("levels.0.realised", 1.5), "realised must be in"),
        (fact(CHECK + "coverage", NAN), "coverage must be in"),
        (fact(CHECK + "standard_error", -1.0), "standard_error must not"),
        (fact(CHECK + "mean_width", NAN), "mean_width must not"),
        (fact(CHECK + "thirds", [0.5, 2.0, None]), "thirds must be in"),
        (fact(CHECK + "thirds", [0.5, 1.0]), "thirds must have 3 elements, got 2"),
        (fact(CHECK + "worst_of_five", NAN), "worst_of_five must be in"),
        (fact("method", "magic"), "method must be 'oob' or 'split', got 'magic'"),
        (fact("method", ["oob"]), "method must be a text, got"),
        (fact("levels.2.base.family", "<b>"), "family must be 'raw', 'centred' or 'stacked'"),
        (fact("levels.2.base.kind", 1), r"levels\[2\].base.kind must be .*, got 1"),
        (fact("n", 0), "n must be positive"),
        (fact("n", True), "n must be a whole number"),
        (fact("n", 60.0), "n must be a whole number"),
        (fact("n", 10**400), "n must be a whole number"),
        (fact("weighted", None), "weighted must be true or false"),
        (fact("postprocess.clip", 1), "postprocess.clip must be true or false"),
        (fact("postprocess.low", "1"), "low must be a number"),
        (fact("postprocess.low", 10**400), "low must be a number"),
        (fact("postprocess.low", math.nan), "low and high must be finite"),
        (fact("postprocess.low", 1e9), "low <= high"),
        (fact("postprocess.high", INFINITE), "low and high must be finite"),
        (fact("postprocess.lattice", [0.0, 1.0]), "lattice must be null or an object"),
        (fact("postprocess.lattice", LATTICE | {"step": 0.0}), "lattice must have .* positive st"),
        (fact("postprocess.lattice", LATTICE | {"slack": 0.5}), "lattice must have .* a slack in"),
        (fact("postprocess.lattice", LATTICE | {"base": NAN}), "lattice must have a finite base"),
        (fact("postprocess.lattice", LATTICE | {"base": None}), "base must be a number"),
        (fact("postprocess.targets", 3), "the tensor postprocess.targets is missing"),
        (fact("postprocess.targets", 0), "targets must be null or the length of an array"),
        (targets(np.zeros(1), lattice=None), "targets must be none without a lattice"),
        (targets(np.array([math.nan])), r"targets must ascend in \[low, high\]"),
        (targets(np.array([1e9])), r"targets must ascend in \[low, high\]"),
        (targets(np.zeros((1, 1))), "targets must have 1 dimensions"),
        (targets(np.zeros(2)), r"targets must ascend in \[low, high\]"),
        (targets(np.zeros(1, np.float32)), "targets must be float64 of length 1, got float32"),
        (fact("confidence", 0.9), "confidence must be None unless method"),
        (lambda facts, _: facts.update(confidence=2.0, method="split"), "confidence must be abov"),
        (fact("confidence", "0.9"), "confidence must be null or a number"),
        (
            lambda facts, _: facts.update(confidence=0.9, method="split", weighted=True),
            "confidence must be None",
        ),
    ],
)
def test_hostile_arrays_get_one_sentence(change, message):
    facts, arrays = calibration_to_arrays(RECORD)
    change(facts, arrays)
    with pytest.raises(ValueError, match=message) as error:
        calibration_from_arrays(facts, arrays)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 250


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


PLACES = [
    *calibration_to_arrays(RECORD)[0],
    *(f"levels.0.{name}" for name in calibration_to_arrays(RECORD)[0]["levels"][0]),
    *(f"levels.0.base.{name}" for name in Base._fields),
    *(f"postprocess.{name}" for name in calibration_to_arrays(RECORD)[0]["postprocess"]),
]


@given(st.sampled_from(PLACES), json_values)
def test_any_fact_gives_a_record_or_one_sentence(place, value):
    facts, arrays = calibration_to_arrays(RECORD)
    fact(place, value)(facts, arrays)
    try:
        record = calibration_from_arrays(facts, arrays)
    except ValueError:
        return
    assert isinstance(record, Calibration)
    with np.errstate(all="ignore"):
        record.intervals(np.zeros((2, 2, 3)))


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


def test_records_are_checked():
    with pytest.raises(ValueError, match="coverages must be one or more"):
        replace(RECORD, levels=())
    with pytest.raises(ValueError, match="n must be positive"):
        replace(RECORD, n=0)
