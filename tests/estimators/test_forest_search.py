"""ForestSearchOOB: which forest it keeps, what it tells of all, and what it refuses."""

import gc
import pickle
import re
import weakref
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_regression
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from hdiforest import ForestSearchOOB, HDIForestRegressor
from hdiforest.calibration import OutOfBag

from ..oracle import SKLEARN

X, Y = make_regression(1100, 4, noise=20, random_state=0)
X_TRAIN, Y_TRAIN, X_NEW, Y_NEW = X[:600], Y[:600], X[600:], Y[600:]
X_FEW, Y_FEW = X[:120], Y[:120]
DRAWN = {"bootstrap": True, "max_samples": 0.4}  # so 40 trees leave out each row often enough
# Coarse trees are wider by far.
COARSE = RandomForestRegressor(40, max_depth=2, **DRAWN)
FINE = RandomForestRegressor(40, **DRAWN)
EXTRA = ExtraTreesRegressor(40, **DRAWN)


@pytest.fixture(scope="module")
def search():
    return ForestSearchOOB([COARSE, FINE, EXTRA], random_state=0).fit(X_TRAIN, Y_TRAIN)


# See tests/estimators/test_hdi_forest.py.
EXPECTED_TO_FAIL = {"check_sample_weight_equivalence_on_dense_data": "the bootstrap draws anew"}
if SKLEARN >= (1, 9):  # weights decide what is drawn
    EXPECTED_TO_FAIL["check_sample_weights_not_overwritten"] = (
        "a row with 40 % of the weight is never out of bag"
    )
# Enough trees to calibrate the few rows of these checks, also where all weigh 3.
SMALL = [ExtraTreesRegressor(36, bootstrap=True, max_samples=0.15)]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:Using the fractional value max_samples")
@parametrize_with_checks(
    [ForestSearchOOB(SMALL, coverage=0.8, random_state=0)],
    expected_failed_checks=lambda _: EXPECTED_TO_FAIL,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def calibrated(forest):
    return HDIForestRegressor(forest, calibration=0.9).fit(X_TRAIN, Y_TRAIN)


@pytest.fixture(scope="module")
def models(search):
    return [calibrated(forest) for forest in search.results_["forest"]]


def test_it_keeps_the_forest_with_the_narrowest_calibrated_intervals(search, models):
    assert all(forest.random_state is not None for forest in search.results_["forest"])
    widths = [model.calibration_.levels[0].mean_width for model in models]
    assert search.results_["width"] == widths
    assert search.best_index_ == np.argmin(widths) > 0
    assert type(search.best_estimator_) is HDIForestRegressor
    assert search.calibration_ is search.best_estimator_.calibration_
    assert search.calibration_.levels[0].mean_width == min(widths)


def test_results_are_a_table(search):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(search.results_)
    assert list(table) == [
        "forest",
        "width",
        "interval_score",
        "coverage",
        "cross_check",
        "seconds",
    ]
    assert [type(forest) for forest in table["forest"]] == [
        RandomForestRegressor,
        RandomForestRegressor,
        ExtraTreesRegressor,
    ]
    assert not any(hasattr(forest, "estimators_") for forest in table["forest"])
    assert_allclose(table["coverage"], 0.9, atol=0.015)  # at least, for the optimism of the choice
    assert_allclose(table["cross_check"], 0.9, atol=0.05)
    assert (table["seconds"] > 0).all()


def cross_check(model):
    return model.calibration_.level(0.9).cross_check


def test_the_cross_check_is_of_the_choice_too(search, models):
    """Each half of the rows by the forest that was best on the other half."""
    assert cross_check(search) == cross_check(models[search.best_index_])  # best on both
    forests = [
        FrozenEstimator(clone(FINE).set_params(random_state=seed).fit(X_TRAIN, Y_TRAIN))
        for seed in (0, 1, 2)
    ]
    found = cross_check(ForestSearchOOB(forests, random_state=0).fit(X_TRAIN, Y_TRAIN))
    alone = [cross_check(calibrated(forest)) for forest in forests]
    assert found not in alone
    widths = [check.mean_width for check in alone]
    assert min(widths) < found.mean_width < max(widths)


def test_it_answers_as_the_best_model(search):
    best = search.best_estimator_
    assert_array_equal(search.predict(X_NEW), best.predict(X_NEW))
    assert_array_equal(search.predict_interval(X_NEW), best.predict_interval(X_NEW, 0.9))
    raw = search.predict_interval(X_NEW, [0.5, 0.8], kind="hdi")
    assert_array_equal(raw, best.predict_interval(X_NEW, [0.5, 0.8], kind="hdi"))
    for interpolation in ("inverted_cdf", "linear"):
        assert_array_equal(
            search.predict_quantiles(X_NEW, 0.1, kind="raw", interpolation=interpolation),
            best.predict_quantiles(X_NEW, 0.1, kind="raw", interpolation=interpolation),
        )
    for inclusive in (True, False):
        assert_array_equal(
            search.predict_cdf(X_NEW, Y_NEW, inclusive=inclusive),
            best.predict_cdf(X_NEW, Y_NEW, inclusive=inclusive),
        )
    assert search.score(X_NEW, Y_NEW) == best.score(X_NEW, Y_NEW)


def test_the_coverage_of_the_search_is_that_of_its_intervals():
    search = ForestSearchOOB([FINE], coverage=0.8, random_state=0).fit(X_TRAIN, Y_TRAIN)
    assert_array_equal(search.predict_interval(X_NEW), search.predict_interval(X_NEW, 0.8))
    search.set_params(coverage=0.7)  # waits for the next fit
    assert_array_equal(search.predict_interval(X_NEW), search.predict_interval(X_NEW, 0.8))
    with pytest.raises(ValueError, match=r"calibrated: 0.8; got 0.9; call"):
        search.predict_interval(X_NEW, 0.9)
    search.best_estimator_.calibrate(coverage=(0.5, 0.9))
    assert search.predict_interval(X_NEW, [0.5, 0.9]).shape == (500, 2, 2)


def test_the_interval_score_chooses_if_asked():
    """With targets near 0 that rarely are large, narrow intervals are not those that score best."""
    rng = np.random.default_rng(1)
    rows = rng.random((600, 3))
    targets = np.where(rng.random(600) < 0.08, rng.exponential(50, 600), rows[:, 0])
    forests = [
        FrozenEstimator(clone(forest).set_params(random_state=0).fit(rows, targets))
        for forest in (FINE, COARSE)
    ]
    search = ForestSearchOOB(forests, objective="interval_score", random_state=0)
    search.fit(rows, targets)
    scores = search.results_["interval_score"]
    assert search.best_index_ == np.argmin(scores)
    by_width = clone(search).set_params(objective="width").fit(rows, targets)
    assert by_width.best_index_ != search.best_index_
    best = HDIForestRegressor(forests[search.best_index_], calibration=False).fit(rows, targets)
    best.calibrate(coverage=0.9, method=OutOfBag(objective="interval_score"))
    assert without_check(search) == without_check(best)


def without_check(model):
    return [replace(level, cross_check=None) for level in model.calibration_.levels]


def test_ties_go_to_the_earlier_forest():
    search = ForestSearchOOB([FINE, FINE], random_state=0).fit(X_FEW, Y_FEW)
    assert len(set(search.results_["width"])) == 1
    assert search.best_index_ == 0


def test_the_default_forests():
    search = ForestSearchOOB(random_state=0).fit(X_FEW, Y_FEW)
    forests = search.results_["forest"]
    assert [type(forest) for forest in forests] == [RandomForestRegressor] * 2 + [
        ExtraTreesRegressor
    ]
    assert [forest.max_features for forest in forests] == [1 / 3, 1, 1]
    assert [forest.min_samples_leaf for forest in forests] == [1, 1, 1]
    assert all(forest.bootstrap for forest in forests)
    assert search.forests is None


def test_forests_without_a_seed_get_one_and_others_keep_theirs():
    own = clone(FINE).set_params(random_state=5, n_jobs=2)
    search = ForestSearchOOB([COARSE, FINE, own], n_jobs=1, random_state=0)
    before = repr(search)
    search.fit(X_FEW, Y_FEW)
    assert repr(clone(search)) == before
    first, second, third = search.results_["forest"]
    assert first.random_state == second.random_state != 5
    assert third.random_state == 5
    assert (first.n_jobs, third.n_jobs) == (1, 2)
    assert search.best_estimator_.n_jobs == 1
    again = clone(search).fit(X_FEW, Y_FEW)
    assert_array_equal(again.predict_interval(X_NEW), search.predict_interval(X_NEW))
    other = clone(search).set_params(forests=[FINE], random_state=1).fit(X_FEW, Y_FEW)
    assert other.results_["forest"][0].random_state != first.random_state


def test_forests_that_are_fitted_are_taken_as_they_are():
    fitted = clone(FINE).set_params(random_state=0).fit(X_FEW, Y_FEW)
    forests = [COARSE, FrozenEstimator(fitted)]
    search = ForestSearchOOB(forests, n_jobs=1, random_state=0).fit(X_FEW, Y_FEW)
    assert search.best_index_ == 1
    assert search.best_estimator_.estimator_ is fitted


def test_bagged_trees_may_draw_rows_without_replacement():
    bagged = BaggingRegressor(
        DecisionTreeRegressor(), 60, bootstrap=False, max_samples=0.5, random_state=0
    )
    search = ForestSearchOOB([COARSE, bagged], random_state=0).fit(X_TRAIN, Y_TRAIN)
    assert search.best_index_ == 1


def test_sample_weight_is_passed_on():
    weights = np.random.default_rng(0).uniform(0.5, 2, 120)
    forests = [clone(FINE).set_params(n_estimators=60)]
    search = ForestSearchOOB(forests, random_state=0).fit(X_FEW, Y_FEW, sample_weight=weights)
    expected = HDIForestRegressor(search.results_["forest"][0], calibration=False)
    expected.fit(X_FEW, Y_FEW, sample_weight=weights).calibrate(coverage=0.9)
    assert_array_equal(search.predict_interval(X_NEW), expected.predict_interval(X_NEW, 0.9))


def test_tables_are_read_by_name():
    pandas = pytest.importorskip("pandas")
    names = ["a", "b", "c", "d"]
    frame = pandas.DataFrame(X_FEW, columns=names)
    search = ForestSearchOOB([FINE], random_state=0).fit(frame, pandas.Series(Y_FEW))
    assert search.feature_names_in_.tolist() == names
    assert search.n_features_in_ == 4
    with pytest.raises(ValueError, match="same order"):
        search.predict_interval(frame[["b", "a", "c", "d"]])
    search.fit(X_FEW, Y_FEW)
    assert not hasattr(search, "feature_names_in_")


def test_missing_values_are_taken_where_all_forests_take_them():
    assert get_tags(ForestSearchOOB()).input_tags.allow_nan
    picky = BaggingRegressor(LinearRegression())
    assert not get_tags(ForestSearchOOB([FINE, picky])).input_tags.allow_nan


def test_it_can_be_pickled_and_cross_validated(search):
    again = pickle.loads(pickle.dumps(search))
    assert_array_equal(again.predict_interval(X_NEW), search.predict_interval(X_NEW))
    small = ForestSearchOOB([FINE], random_state=0)
    assert cross_val_score(small, X_TRAIN, Y_TRAIN, cv=2).min() > 0


def test_a_forest_that_lost_is_dropped_before_the_next_is_fitted(monkeypatch):
    alive, seen = [], []
    original = HDIForestRegressor.fit

    def fit(self, *arguments):
        gc.collect()
        seen.append(sum(known() is not None for known in alive))
        alive.append(weakref.ref(self))
        return original(self, *arguments)

    monkeypatch.setattr(HDIForestRegressor, "fit", fit)
    ForestSearchOOB([FINE, COARSE, COARSE, EXTRA], random_state=0).fit(X_FEW, Y_FEW)
    assert seen == [0, 1, 1, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"forests": []}, "forests must be a list of one forest or more, got []"),
        ({"forests": FINE}, "a list of one forest or more, got RandomForestRegressor("),
        ({"forests": "forest"}, "forests[0] must be a RandomForestRegressor, Extra"),
        ({"forests": [FINE, LinearRegression()]}, "BaggingRegressor, got LinearRegression()"),
        ({"forests": [FINE, ExtraTreesRegressor()]}, "forests[1] must have bootstrap=True"),
        ({"coverage": 90}, "got 90 (did you mean 0.9?)"),
        ({"coverage": [0.5, 0.9]}, "coverage must be one number above 0 and below 1, got [0.5"),
        ({"objective": "score"}, "objective must be 'balanced', 'width' or 'interval_score', got"),
    ],
)
def test_bad_arguments_are_named_before_any_fit(options, message, monkeypatch):
    monkeypatch.delattr(HDIForestRegressor, "fit")
    with pytest.raises(ValueError, match=re.escape(message)):
        ForestSearchOOB(**options).fit(X_TRAIN, Y_TRAIN)


def test_too_few_trees_are_an_error_that_names_the_forest():
    forests = [FINE, RandomForestRegressor(30)]
    message = (
        r"forests\[1\], RandomForestRegressor\(n_estimators=30\), cannot be calibrated on 600 "
        r"sample\(s\): .* at least 20 trees that did not draw a row"
    )
    with pytest.raises(ValueError, match=message):
        ForestSearchOOB(forests).fit(X_TRAIN, Y_TRAIN)


def test_several_targets_are_refused_and_a_column_is_read_as_one():
    with pytest.raises(ValueError, match=r"y should be a 1d array, got .*\(120, 2\)"):
        ForestSearchOOB([FINE]).fit(X_FEW, np.column_stack([Y_FEW, Y_FEW]))
    search = ForestSearchOOB([FINE], random_state=0)
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        search.fit(X_FEW, Y_FEW[:, None])
    assert search.predict(X_NEW).shape == (500,)


QUESTIONS = {
    "predict": (X_NEW,),
    "predict_interval": (X_NEW,),
    "predict_quantiles": (X_NEW, 0.5),
    "predict_cdf": (X_NEW, Y_NEW),
    "score": (X_NEW, Y_NEW),
}


@pytest.mark.parametrize("method", QUESTIONS)
def test_unfitted_searches(method):
    assert {name for name in dir(ForestSearchOOB) if name.startswith("predict")} <= set(QUESTIONS)
    with pytest.raises(NotFittedError, match="This ForestSearchOOB instance is not fitted"):
        getattr(ForestSearchOOB(), method)(*QUESTIONS[method])
