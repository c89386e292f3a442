"""Calibrated models: coverage, what they choose, what they keep, and what they refuse."""

import pickle
import re
import warnings
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_regression
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor

from hdicore import weighted_hdi
from hdiforest import (
    CalibrationDisplay,
    DistributionDisplay,
    ForestSearchOOB,
    HDIForestRegressor,
    IntervalDisplay,
    WidthDisplay,
    fit_table,
    from_leaves,
)
from hdiforest.calibration import CVPlus, JackknifePlus, OutOfBag, Split
from hdiforest.metrics import (
    coverage_score,
    interval_score,
    make_coverage_scorer,
    make_interval_scorer,
    make_pinball_scorer,
)
from hdiforest.regions import calibrate_region
from hdiforest.serving import BatchScorer

from ..calibration.rows import two_kinds_of_rows
from ..oracle import SKLEARN, restored

X, Y = make_regression(1600, 5, noise=30, random_state=0)
X_TRAIN, Y_TRAIN, X_NEW, Y_NEW = X[:900], Y[:900], X[900:], Y[900:]
FEW = X_TRAIN[:200], Y_TRAIN[:200]
LARGE = RandomForestRegressor(80, random_state=0, n_jobs=1)
# Its trees leave out each row often enough.
SMALL = RandomForestRegressor(40, max_samples=0.4, random_state=0, n_jobs=1)
UNSEEDED = clone(SMALL).set_params(random_state=None)


@cache
def grown(forest, n):
    return clone(forest).fit(X_TRAIN[:n], Y_TRAIN[:n])


def fresh(forest=LARGE, n=900, **options):
    """A model of its own around a forest that tests share."""
    return HDIForestRegressor.from_forest(grown(forest, n), X_TRAIN[:n], Y_TRAIN[:n], **options)


@pytest.fixture(scope="module")
def model():
    return fresh().calibrate(coverage=(0.5, 0.8, 0.9))


def covered(intervals, y=Y_NEW):
    return ((intervals[:, 0] <= y) & (y <= intervals[:, 1])).mean()


def test_calibrated_intervals_cover_what_they_say(model):
    for coverage in (0.5, 0.8, 0.9):
        error = 3 * np.sqrt(coverage * (1 - coverage) * (1 / len(Y_NEW) + 1 / len(Y_TRAIN)))
        assert abs(covered(model.predict_interval(X_NEW, coverage)) - coverage) < error


def test_calibrated_is_the_default_kind_once_there_is_a_calibration(model):
    raw = fresh()
    assert_array_equal(raw.predict_interval(X_NEW, 0.9), raw.predict_interval(X_NEW, kind="hdi"))
    calibrated = model.predict_interval(X_NEW, [0.5, 0.9])
    assert_array_equal(model.predict_interval(X_NEW, [0.5, 0.9], kind="calibrated"), calibrated)
    assert_array_equal(model.predict_interval(X_NEW, 0.9), calibrated[..., 1])
    assert_array_equal(model.predict_interval(X_NEW, kind="hdi"), raw.predict_interval(X_NEW))
    with pytest.raises(AttributeError, match="call calibrate first"):
        raw.predict_interval(X_NEW, kind="calibrated")
    assert not hasattr(raw, "calibration_")


def test_smooth_targets_choose_the_centred_family(model):
    assert "centred" in {base.family for base in model.calibration_.bases}
    assert 800 < model.calibration_.n <= 900  # those with enough trees
    assert "No guarantee" in repr(model.calibration_)


def test_rows_and_threads_change_no_bit(model):
    whole = model.predict_interval(X_NEW, [0.5, 0.9])
    again = fresh(n_jobs=2).calibrate(coverage=(0.5, 0.8, 0.9))
    assert_array_equal(again.predict_interval(X_NEW, [0.5, 0.9]), whole)
    assert_array_equal(model.predict_interval(X_NEW[7:9], [0.5, 0.9]), whole[7:9])


@pytest.mark.parametrize("weights", ["inbag", "oob"])
def test_other_weights_have_raw_candidates_only(weights):
    model = fresh(weights=weights).calibrate(coverage=0.8)
    assert {base.family for base in model.calibration_.bases} == {"raw"}
    assert abs(covered(model.predict_interval(X_NEW, 0.8)) - 0.8) < 0.07


def test_a_split_pads_on_new_rows(model):
    split = fresh().calibrate(X_NEW[:300], Y_NEW[:300], coverage=[0.8])
    assert split.calibration_.method == "split"
    assert split.calibration_.n == 300
    assert abs(covered(split.predict_interval(X_NEW[300:], 0.8), Y_NEW[300:]) - 0.8) < 0.08
    few_trees = fresh(RandomForestRegressor(45))  # some rows have 20 out of bag, fewer than a half
    few_trees.calibrate(X_NEW[:300], Y_NEW[:300], coverage=0.8)
    without_bags = fresh(ExtraTreesRegressor(40, random_state=0))
    with pytest.raises(ValueError, match=r"or call calibrate\(X, y\) with"):
        without_bags.calibrate(coverage=0.8)
    without_bags.calibrate(X_NEW[:300], Y_NEW[:300], coverage=0.8)
    assert covered(without_bags.predict_interval(X_NEW[300:], 0.8), Y_NEW[300:]) > 0.7


def test_a_new_fit_forgets_the_calibration():
    model = HDIForestRegressor(SMALL, calibration=False)
    model.fit(*FEW).calibrate(coverage=0.9)
    assert hasattr(model, "calibration_")
    assert not hasattr(model.fit(*FEW), "calibration_")


def test_calibrate_takes_random_states():
    """The seed draws the rows, and the folds of another regressor."""
    mean = HistGradientBoostingRegressor(max_iter=5)
    options = {"coverage": 0.9, "method": OutOfBag(120), "mean": mean}
    one, other = (
        fresh(SMALL, 200).calibrate(random_state=np.random.RandomState(1), **options).calibration_
        for _ in range(2)
    )
    seed = np.random.RandomState(1).randint(2**31 - 1)
    assert one.n == 120
    assert repr(one) == repr(other)
    assert repr(one) == repr(fresh(SMALL, 200).calibrate(random_state=seed, **options).calibration_)


REPEATED = {
    "oob": {"method": OutOfBag(120), "coverage": 0.9},
    "split": {"X": X_NEW[:200], "y": Y_NEW[:200], "coverage": 0.9},
    "folds": {"method": CVPlus(2), "coverage": 0.8},
    "jackknife": {"method": JackknifePlus(50), "coverage": 0.9},
    "boosting": {"mean": "boosting", "coverage": 0.9},
    "regressor without a seed": {"mean": make_pipeline(RandomForestRegressor(5)), "coverage": 0.9},
    "order": {"method": OutOfBag(order=np.arange(200)), "coverage": 0.9},
}


@pytest.mark.parametrize("how", REPEATED.values(), ids=REPEATED)
def test_a_calibration_without_a_seed_repeats(how):
    """Also where the forest has none, which some methods fit again."""
    models = [fresh(UNSEEDED, 200) for _ in range(2)]
    for seed, model in zip([{}, {"random_state": 0}], models, strict=True):
        np.random.random()  # noqa: NPY002 (numpy's own seed moves on)
        model.calibrate(**how, **seed)
    first, other = (model.predict_interval(X_NEW, how["coverage"]) for model in models)
    assert_array_equal(first, other)
    assert len({repr(model.calibration_) for model in models}) == 1


@pytest.mark.parametrize("method", ["oob", "split", JackknifePlus(50)])
def test_a_coverage_that_was_not_calibrated_is_an_error(method, model, tmp_path):
    """In memory and of a file, of new rows and out of bag: predicting changes nothing."""
    own = {"X": X_NEW, "y": Y_NEW} if method == "split" else {}
    fresh().calibrate(coverage=(0.9, 0.5), method=method, **own).save(tmp_path / "m")
    loaded = HDIForestRegressor.load(tmp_path / "m")
    name = method if isinstance(method, str) else method.name
    how = {"oob": "", "split": "X, y, ", "jackknife+": "method='jackknife+', "}[name]
    said = re.escape(
        "coverage must be one that was calibrated: 0.5, 0.9; got 0.7; call "
        f"calibrate({how}coverage=[0.5, 0.7, 0.9]), or use kind='hdi', which is not calibrated"
    )
    for call in (
        lambda: loaded.predict_interval(X_NEW, 0.7),
        lambda: loaded.predict_interval(X_NEW, [0.5, 0.7], output="pyarrow"),
    ):
        with pytest.raises(ValueError, match=said):
            call()
    if method in ("oob", "split"):
        with pytest.raises(ValueError, match=said):
            loaded.oob_.interval(0.7)


def test_a_model_of_the_default_forest_is_calibrated():
    model = HDIForestRegressor().fit(X_TRAIN, Y_TRAIN)
    assert model.calibration_.coverages == (0.5, 0.8, 0.9, 0.95, 0.99)
    lower, upper = model.predict_interval(X_NEW).T
    assert 0.86 < ((lower <= Y_NEW) & (upper >= Y_NEW)).mean() < 0.95
    raw = model.predict_interval(X_NEW, kind="hdi")
    again = HDIForestRegressor.from_forest(model.estimator_, X_TRAIN, Y_TRAIN)
    assert_array_equal(again.predict_interval(X_NEW), raw)
    again.calibrate(random_state=0)
    assert again.calibration_ == model.calibration_


def test_the_parameter_calibration():
    """ "auto" does what can be done, True says why it cannot, and False nothing."""
    auto = HDIForestRegressor(SMALL).fit(*FEW)
    always = HDIForestRegressor(SMALL, calibration=True).fit(*FEW)
    imported = fresh(SMALL, 200, calibration=True)
    assert auto.calibration_ == always.calibration_ == imported.calibration_
    assert not hasattr(fresh(), "calibration_")
    for calibration in (False, "auto"):
        few = HDIForestRegressor(RandomForestRegressor(9), calibration=calibration)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert not hasattr(few.fit(*FEW), "calibration_")
        assert len(caught) == (calibration == "auto")
    assert not hasattr(auto.set_params(calibration=False).fit(*FEW), "calibration_")
    rising = clone(SMALL).set_params(monotonic_cst=[1, 0, 0, 0, 0])
    one_kind = HDIForestRegressor(rising, weights="monotonic").fit(*FEW)
    assert {base.kind for base in one_kind.calibration_.bases} == {"equal_tailed"}
    for rows, trees, reason in (
        (FEW[0], 9, "at least 20 trees that did not draw a row"),
        (X_TRAIN[:8], 80, "coverage 0.9 needs 9 calibration rows, and there are 8"),
    ):
        model = HDIForestRegressor(RandomForestRegressor(trees, random_state=0), calibration=True)
        with pytest.raises(ValueError, match=f"calibration must be .* because .*{reason}"):
            model.fit(rows, Y_TRAIN[: len(rows)])
    for wrong in ("never", None, 1, 0.0, 90, [0.9, 0.9], []):
        said = re.escape(f"must be 'auto', True, False or coverages, got {wrong!r}: coverage must")
        with pytest.raises(ValueError, match=said):
            HDIForestRegressor(calibration=wrong).fit(*FEW)


@pytest.mark.parametrize("coverage", [0.93, [0.93, 0.6], np.array([0.6, 0.93])])
def test_the_parameter_calibration_names_coverages(coverage):
    model = clone(HDIForestRegressor(SMALL, calibration=coverage)).fit(*FEW)
    assert model.calibration_ == fresh(SMALL, 200).calibrate(coverage=coverage).calibration_
    score = make_interval_scorer(0.93)
    assert cross_val_score(model, *FEW, scoring=score, cv=2, error_score="raise").all()
    few = HDIForestRegressor(RandomForestRegressor(9), calibration=coverage)
    with pytest.raises(ValueError, match=r"calibration must be 'auto' or False .* 20 trees"):
        few.fit(*FEW)


def test_what_an_error_advises_after_from_forest_can_be_done():
    forest = ExtraTreesRegressor(10, random_state=0).fit(X_TRAIN, Y_TRAIN)
    advice = r"must be 'auto' or False .* call calibrate\(X, y\) .*, or calibrate\(method='cv\+'\)$"
    with pytest.raises(ValueError, match=advice):
        HDIForestRegressor.from_forest(forest, X_TRAIN, Y_TRAIN, calibration=True)
    model = HDIForestRegressor.from_forest(forest, X_TRAIN, Y_TRAIN, calibration=False)
    assert model.calibrate(X_NEW, Y_NEW).calibration_.method == "split"
    assert model.calibrate(method="cv+", coverage=0.8).calibration_.method == "cv+"


@pytest.mark.parametrize(
    ("estimator", "n", "why"),
    [
        (DecisionTreeRegressor(), 900, r"0 of 900 .* every tree was fitted on all .*=False"),
        (RandomForestRegressor(12), 900, r"[0-9] of 900 .* left out by 4\.\d+ of 12 trees on aver"),
        (
            RandomForestRegressor(60, max_samples=1),
            4,
            "coverage 0.9 needs 9 calibration rows, and there are 4",
        ),
    ],
)
def test_a_fit_that_could_not_calibrate_says_why_once(estimator, n, why):
    rows = X_TRAIN[:n], Y_TRAIN[:n]
    with pytest.warns(UserWarning, match=f"intervals are not calibrated .*: .*{why}") as caught:
        model = HDIForestRegressor(estimator).fit(*rows)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert not hasattr(model, "calibration_")
    HDIForestRegressor(estimator, calibration=False).fit(*rows)
    table = {f"x{j}": column for j, column in enumerate(rows[0].T)} | {"y": rows[1]}
    with pytest.warns(UserWarning, match="intervals are not calibrated") as caught:
        fit_table(table, "y", estimator=estimator)
    assert len(caught) == 1


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_a_fit_says_which_coverages_its_rows_are_too_few_for(n_outputs):
    y = np.column_stack([Y_TRAIN[:15]] * n_outputs).squeeze()
    model = HDIForestRegressor(RandomForestRegressor(60, max_samples=2))
    said = r"^coverage 0\.95, 0\.99 is not calibrated, because 15 .* too few; calibration=\[0\.5, "
    with pytest.warns(UserWarning, match=said) as caught:
        model.fit(X_TRAIN[:15], y)
    assert len(caught) == 1
    model.set_params(calibration=list(model.calibration_.coverages)).fit(X_TRAIN[:15], y)


@pytest.mark.filterwarnings("ignore:coverage .* is not calibrated")
def test_a_coverage_that_rows_are_too_few_for():
    model = HDIForestRegressor(SMALL).fit(X_TRAIN[:40], Y_TRAIN[:40])
    assert model.calibration_.coverages == (0.5, 0.8, 0.9, 0.95)
    with pytest.raises(ValueError, match=r"coverage 0.99 needs 99 calibration rows, and there are"):
        model.predict_interval(X_NEW, 0.99)
    assert model.predict_interval(X_NEW[:2], np.float32(0.9)).shape == (2, 2)
    with pytest.raises(
        ValueError, match=r"coverage must be a number or a list of numbers, got \[\]"
    ):
        model.predict_interval(X_NEW, [])


def test_the_default_forest_of_targets_that_cannot_be_averaged_stays_raw():
    """Eight targets, whose sum is finite, while the sum over the trees is not."""
    model = HDIForestRegressor(SMALL).fit(*FEW).set_params(estimator=None, random_state=0)
    largest = np.sort(FEW[1])[-8] <= FEW[1]
    with pytest.warns(UserWarning, match=r"not calibrated .*: .* too large to be averaged"):
        model.fit(np.c_[FEW[0], 100 * largest], np.where(largest, 1.7e307, 0))
    assert not hasattr(model, "calibration_")


def test_arguments_out_of_range_are_named(model):
    wrong = [
        ({"coverage": 90}, r"coverage must be above 0 and below 1, got 90 \(did you mean 0.9"),
        ({"method": "cv"}, "method must be 'oob', 'split', 'cv"),
        ({"method": "split"}, "X and y must be given"),
        ({"X": X_NEW}, "X and y must be given"),
        ({"X": X_NEW, "method": OutOfBag()}, "must be None with method='oob'"),
        ({"method": Split}, "or an object of one of the classes OutOfBag, Split, CVPlus, Jack"),
        ({"method": "split", "X": X_TRAIN, "y": Y_TRAIN}, "900 of 900 are training rows"),
        ({"method": "split", "X": X_NEW, "y": Y_NEW[1:]}, r"y must have shape \(700,\)"),
    ]
    for options, message in wrong:
        with pytest.raises(ValueError, match=message):
            model.calibrate(**options)
    for method in (OutOfBag, JackknifePlus):
        for count in (0, True, 1.5):
            with pytest.raises(ValueError, match="max_rows must be a whole number from 1 on, got"):
                method(count)
    with pytest.raises(ValueError, match="confidence must be above 0"):
        Split(2)
    for method in (OutOfBag, Split, CVPlus):
        with pytest.raises(ValueError, match="objective must be"):
            method(objective="mean")
    with pytest.raises(ValueError, match="20 trees"):
        fresh(RandomForestRegressor(10)).calibrate()
    with pytest.raises(ValueError, match=r"coverage must be above 0 and below 1, got 1"):
        model.predict_interval(X_NEW, [0.9, 1])


def test_files_keep_the_calibration(model, tmp_path):
    model.save(tmp_path / "with_rows")
    model.save(tmp_path / "without_rows", training_rows=False)
    for name in ("with_rows", "without_rows"):
        loaded = HDIForestRegressor.load(tmp_path / name)
        assert repr(loaded.calibration_) == repr(model.calibration_)
        assert_array_equal(loaded.predict_interval(X_NEW), model.predict_interval(X_NEW))
    with pytest.raises(ValueError, match="without its training rows"):
        loaded.calibrate()


def test_rows_without_weight_do_not_count():
    weights = np.r_[np.ones(700), np.zeros(200)]
    y = Y_TRAIN + np.where(weights > 0, 0, 1e6)
    forest = clone(LARGE).fit(X_TRAIN, y, sample_weight=weights)
    model = HDIForestRegressor.from_forest(forest, X_TRAIN, y, sample_weight=weights)
    model.calibrate(coverage=0.9)
    assert model.calibration_.n <= 700
    assert model.calibration_.postprocess.high == Y_TRAIN[:700].max()


def test_heavy_rows_that_are_never_out_of_bag_are_missed():
    """By their weights such rows would count, but none of them has a score."""
    weights = np.where(np.arange(len(Y_TRAIN)) % 10 == 0, 9.0, 1.0)
    model = HDIForestRegressor(RandomForestRegressor(60, random_state=0), calibration=False)
    model.fit(X_TRAIN, Y_TRAIN, sample_weight=weights)
    if SKLEARN < (1, 9):  # weights do not decide what is drawn
        model.calibrate(coverage=0.9)
        return
    sentence = r"needs rows of all weights .* are 810 of 900 training rows, but have 50% of their"
    with pytest.raises(ValueError, match=sentence):
        model.calibrate(coverage=0.9)


def test_sample_weights_are_weights_of_the_scores():
    """Half of the rows are noisy, and have two thirds of the weight."""
    X, y, weights = two_kinds_of_rows(np.random.default_rng(4), 1200)
    forest = RandomForestRegressor(100, random_state=0, min_samples_leaf=10)
    model = HDIForestRegressor(forest, calibration=False).fit(X, y, sample_weight=weights)
    model.calibrate(coverage=[0.8, 0.9])
    for level in model.calibration_.levels:
        assert level.realised == pytest.approx(level.coverage, abs=0.01)
        assert level.cross_check.coverage == pytest.approx(level.coverage, abs=0.03)
    X_new, y_new, weights_new = two_kinds_of_rows(np.random.default_rng(5), 2000)
    intervals = model.predict_interval(X_new, [0.8, 0.9])
    shares = coverage_score(y_new, intervals, sample_weight=weights_new)
    assert_allclose(shares, [0.8, 0.9], atol=0.04)
    assert (coverage_score(y_new, intervals) > shares + 0.02).all()


def test_heavy_rows_that_few_trees_leave_out_count_in_full():
    """Bootstraps of scikit-learn 1.9 draw heavy rows often; of 80 trees few leave them out."""
    shares = []
    for seed in range(2):
        X, y, weights = two_kinds_of_rows(np.random.default_rng(seed), 400)
        new, target, new_weights = two_kinds_of_rows(np.random.default_rng(100 + seed), 500)
        forest = RandomForestRegressor(80, min_samples_leaf=10, random_state=0)
        model = HDIForestRegressor(forest, calibration=False).fit(X, y, sample_weight=weights)
        for method in (OutOfBag(), JackknifePlus(100)):
            model.calibrate(coverage=0.8, method=method)
            intervals = model.predict_interval(new, 0.8)
            shares.append(coverage_score(target, intervals, sample_weight=new_weights))
        regions = calibrate_region(model, coverage=0.8).predict(new)
        shares.append(np.average(regions.contains(target), weights=new_weights))
    assert_allclose(np.mean(np.reshape(shares, (2, 3)), axis=0), 0.8, atol=0.03)


def test_a_pickle_is_checked_against_its_forest(model):
    with pytest.raises(ValueError, match="leaf_means must be"):
        restored(model, arrays={"centred.leaf_means": np.zeros(3)})
    with pytest.raises(ValueError, match="does not fit the residuals"):
        restored(model, without="centred")


@pytest.mark.parametrize(("first", "step"), [(0, 1), (0.3, 0.1)])
def test_ends_of_counts_are_counts(tmp_path, first, step):
    """And lie in their range, in memory, of a pickle and of a file."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = first + step * rng.poisson(1.0, 300)
    model = HDIForestRegressor(SMALL, calibration=False).fit(X, y)
    for method in ("oob", "jackknife+"):
        model.calibrate(coverage=[0.5, 0.9], method=method)
        found = model.predict_interval(X[:100], [0.5, 0.9])
        assert np.isin(found, y).all()
        model.save(tmp_path / "model.hdi")
        loaded = HDIForestRegressor.load(tmp_path / "model.hdi")
        for copy in (loaded, pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(copy.predict_interval(X[:100], [0.5, 0.9]), found)


@pytest.mark.filterwarnings("ignore:.* not calibrated")
@pytest.mark.filterwarnings("ignore:.*out-of-bag", "ignore:.*out of bag")
@pytest.mark.parametrize("n", [1, 8, 9, 20])
def test_defaults_work_with_any_number_of_rows(n, tmp_path):
    """The fit calibrates if there are rows enough for the coverage of `predict_interval`."""
    pytest.importorskip("safetensors")
    pytest.importorskip("pyarrow")
    model = HDIForestRegressor(random_state=0).fit(X[:n], Y[:n])
    assert hasattr(model, "calibration_") == (n >= 9)
    ends = model.predict_interval(X_NEW)
    assert np.isfinite(ends).all()
    model.save(tmp_path / "model.hdi", training_rows=False)
    scored = BatchScorer(tmp_path / "model.hdi")({str(j): X_NEW[:, j] for j in range(5)})
    assert_array_equal(ends, np.transpose([scored["lower_0.9"], scored["upper_0.9"]]))


WRONG_SHARES = {
    "text": ("0.9", "coverages? must .*'0.9'"),
    "texts": (["0.5", "0.9"], r"coverages? must .*'0.5'.*'0.9'"),
    "boolean": (True, "coverages? must .*True"),
    "percentage": (90, "coverages? must .*90"),
}


@pytest.mark.parametrize(("given", "message"), WRONG_SHARES.values(), ids=WRONG_SHARES)
def test_coverages_are_numbers_wherever_they_are_asked_for(given, message, model, tmp_path):
    """numpy casts texts and booleans to floats."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("safetensors")
    leaves = from_leaves(model.estimator_.apply, X_TRAIN, Y_TRAIN)
    padded = clone(leaves).fit(X_TRAIN, Y_TRAIN).calibrate(X_NEW, Y_NEW, coverage=[0.5, 0.8])
    model.save(tmp_path / "model.hdi")
    ends = model.predict_interval(X_NEW, [0.5, 0.8])
    several = given if isinstance(given, list) else [given]
    for call in (
        lambda: model.calibrate(coverage=given),
        lambda: model.predict_interval(X_NEW, given),
        lambda: model.predict_interval(X_NEW, given, kind="hdi", output="pyarrow"),
        lambda: model.oob_.interval(given),
        lambda: leaves.predict_interval(X_NEW, given),
        lambda: leaves.calibrate(X_NEW, Y_NEW, coverage=given),
        lambda: padded.predict_interval(X_NEW, given),
        lambda: padded.predict_interval(X_NEW, given, output="pyarrow"),
        lambda: weighted_hdi(Y, None, given),
        lambda: model.scorer_.intervals(X_NEW, given),
        lambda: BatchScorer(tmp_path / "model.hdi", given),
        lambda: interval_score(Y_NEW, ends[..., 0], given),
        lambda: make_interval_scorer(given),
        lambda: make_coverage_scorer(given),
        lambda: ForestSearchOOB(coverage=given).fit(X_TRAIN, Y_TRAIN),
        lambda: IntervalDisplay.from_estimator(model, X_NEW, Y_NEW, coverage=given),
        lambda: IntervalDisplay.from_predictions(Y_NEW, ends[..., 0], coverage=given),
        lambda: WidthDisplay.from_estimator(model, X_NEW, Y_NEW, coverage=given),
        lambda: WidthDisplay.from_predictions(Y_NEW, ends[..., 0], coverage=given),
        lambda: CalibrationDisplay.from_estimator(model, X_NEW, Y_NEW, coverages=several),
        lambda: CalibrationDisplay.from_predictions(
            Y_NEW, ends[..., : len(several)], coverages=several
        ),
        lambda: DistributionDisplay.from_estimator(model, X_NEW[:1], coverage=given),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_quantiles_are_numbers(model):
    leaves = from_leaves(model.estimator_.apply, X_TRAIN, Y_TRAIN)
    for given in ("0.9", ["0.9"], True, [True, False]):
        for call in (
            lambda: model.predict_quantiles(X_NEW, given),  # noqa: B023
            lambda: model.oob_.quantiles(given),  # noqa: B023
            lambda: leaves.predict_quantiles(X_NEW, given),  # noqa: B023
            lambda: make_pinball_scorer(given),  # noqa: B023
        ):
            with pytest.raises(ValueError, match="quantiles must "):
                call()


@pytest.mark.parametrize("seed", ["a", 2**32, 0.5, True])
def test_seeds_are_refused_in_one_sentence(seed, model):
    for call in (
        lambda: model.sample(X_NEW, 2, random_state=seed),
        lambda: model.calibrate(random_state=seed),
        lambda: ForestSearchOOB(random_state=seed).fit(X_TRAIN, Y_TRAIN),
    ):
        with pytest.raises(ValueError, match=r"random_state'? (must|parameter)"):
            call()
