"""HDIForestRegressor keeps scikit-learn's promises and its own."""

import tracemalloc
from operator import attrgetter

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import hdicore
from hdiforest import HDIForestRegressor, OutOfBagPredictions

RNG = np.random.default_rng(7)
X = RNG.normal(size=(300, 4)).astype(np.float32)
Y = (2 * X[:, 0] + np.exp(RNG.normal(size=300))).astype(np.float64)
X_NEW = RNG.normal(size=(80, 4)).astype(np.float32)
LEVELS = [0.05, 0.5, 0.8, 0.9, 0.95, 1.0]
FOREST = RandomForestRegressor(40, min_samples_leaf=3, random_state=0).fit(X, Y)
WEIGHTINGS = ["all", "inbag", "oob"]


def imported(**options):
    return HDIForestRegressor.from_forest(FOREST, X, Y, **options)


# A bootstrapped forest draws other rows when rows are repeated than when they weigh more.
EXPECTED_TO_FAIL = {"check_sample_weight_equivalence_on_dense_data": "the bootstrap draws anew"}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:.* not calibrated")  # tables of few rows
@parametrize_with_checks(
    [
        HDIForestRegressor(RandomForestRegressor(5, random_state=0), calibration=False),
        HDIForestRegressor(ExtraTreesRegressor(60, bootstrap=True, random_state=0)),
    ],
    expected_failed_checks=lambda _: EXPECTED_TO_FAIL,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_dense_weights():
    """Oracle: weights from leaf ids alone, by their definition."""
    leaves, new_leaves = FOREST.apply(X), FOREST.apply(X_NEW)
    together = new_leaves[:, None, :] == leaves[None, :, :]
    expected = (together / together.sum(axis=1, keepdims=True)).mean(axis=2)
    weights = imported().predict_weights(X_NEW)
    assert weights.shape == (80, 300)
    assert_allclose(weights.toarray(), expected, atol=2.0**-31)
    assert_allclose(weights.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("weights", WEIGHTINGS)
def test_everything_agrees_with_the_weights(weights):
    model = imported(weights=weights)
    dense = model.predict_weights(X_NEW).toarray()
    assert_allclose(model.predict(X_NEW), dense @ Y, atol=1e-7)
    points = np.quantile(Y, [0.1, 0.5, 0.9])
    expected = [dense @ (point >= Y) for point in points]
    assert_allclose(
        model.predict_cdf(X_NEW, np.tile(points, (80, 1))), np.transpose(expected), atol=1e-12
    )
    lower, upper = model.predict_interval(X_NEW, 0.8).T
    inside = (lower[:, None] <= Y) & (upper[:, None] >= Y)
    assert ((dense * inside).sum(axis=1) > 0.8 - 2.0**-29).all()


def test_shapes_with_several_outputs():
    model = HDIForestRegressor(RandomForestRegressor(30, random_state=0), calibration=False)
    model.fit(X, np.column_stack([Y, -Y]))
    assert model.n_outputs_ == 2
    assert model.predict(X_NEW).shape == (80, 2)
    assert model.predict_interval(X_NEW).shape == (80, 2, 2)
    assert model.predict_interval(X_NEW, LEVELS).shape == (80, 2, 2, 6)
    assert model.predict_quantiles(X_NEW, 0.5).shape == (80, 2)
    assert model.predict_quantiles(X_NEW, [0.5, 0.6]).shape == (80, 2, 2)
    assert model.predict_cdf(X_NEW, np.zeros((80, 2))).shape == (80, 2)
    assert model.predict_cdf(X_NEW, np.zeros((80, 2, 3))).shape == (80, 2, 3)
    assert model.predict_weights(X_NEW).shape == (80, 300)
    assert model.oob_.interval(LEVELS).shape == (300, 2, 2, 6)
    # Both outputs of a draw are those of one training row.
    draws = model.sample(X_NEW, 5, random_state=0)
    assert draws.shape == (80, 2, 5)
    assert_array_equal(draws[:, 0], -draws[:, 1])


def test_draws_follow_the_distribution():
    model = imported()
    draws = model.sample(X_NEW[:5], 20000, random_state=1)
    assert_array_equal(draws, model.sample(X_NEW[:5], 20000, random_state=1))
    assert np.isin(draws, Y).all()
    assert_allclose(draws.mean(axis=1), model.predict(X_NEW[:5]), atol=0.1)
    points = np.quantile(Y, [0.2, 0.5, 0.8])
    shares = (draws[:, :, None] <= points).mean(axis=1)
    assert_allclose(shares, model.predict_cdf(X_NEW[:5], np.tile(points, (5, 1))), atol=0.02)


@pytest.mark.parametrize("n_samples", [0, 2.5])
def test_bad_numbers_of_draws(n_samples):
    with pytest.raises(ValueError, match="n_samples must be a whole number from 1 on"):
        imported().sample(X_NEW, n_samples)


def test_clone_keeps_a_frozen_forest():
    model = imported(weights="inbag", n_jobs=2)
    copied = clone(model)
    assert copied.get_params()["weights"] == "inbag"
    assert not hasattr(copied, "scorer_")
    assert_array_equal(copied.fit(X, Y).predict(X_NEW), model.predict(X_NEW))
    assert copied.estimator_ is FOREST


def test_a_loaded_model_says_what_it_is_and_fits_no_other_forest(tmp_path):
    imported().save(tmp_path / "model")
    loaded = HDIForestRegressor.load(tmp_path / "model")
    text = repr(loaded)
    for fact in ("StoredForest", "n_trees=40", "n_training_rows=300", "n_features=4"):
        assert fact in text
    assert get_tags(loaded).input_tags.allow_nan == get_tags(imported()).input_tags.allow_nan
    copied = clone(loaded)
    assert text == f"{copied!r}: 40 trees, 300 training rows, 1 output"
    with pytest.raises(NotFittedError):
        copied.predict(X_NEW)
    for model in (copied, loaded):
        with pytest.raises(ValueError, match="loaded from a file cannot be fitted"):
            model.fit(X[:, :3], Y)
    assert_array_equal(loaded.predict(X_NEW), imported().predict(X_NEW))
    frozen = clone(FrozenEstimator(loaded)).fit(X, Y)
    assert_array_equal(frozen.predict_interval(X_NEW), imported().predict_interval(X_NEW))
    fitted = copied.set_params(estimator=RandomForestRegressor(3), calibration=False).fit(X, Y)
    assert fitted.scorer_.forest.n_trees == 3


@pytest.mark.parametrize(("make", "dtype"), [("fit", np.float32), ("from_forest", np.float64)])
def test_the_model_keeps_its_rows_when_the_caller_reuses_the_arrays(dtype, make, tmp_path):
    rows, targets, weights = X.astype(dtype), np.column_stack([Y, -Y]), np.ones(300)
    forest = ExtraTreesRegressor(20, bootstrap=True, random_state=0)
    if make == "fit":
        model = HDIForestRegressor(forest, calibration=False).fit(
            rows, targets, sample_weight=weights
        )
    else:
        forest.fit(rows, targets, sample_weight=weights)
        model = HDIForestRegressor.from_forest(forest, rows, targets, sample_weight=weights)

    def answers(model):
        yield model.predict_weights(X_NEW).toarray()
        yield model.oob_.interval()
        yield model.sample(X_NEW, 2, random_state=0)

    model.save(tmp_path / "before")
    expected = list(answers(HDIForestRegressor.load(tmp_path / "before")))
    rows[:], targets[:], weights[:] = -1, 0, 7
    for found, before in zip(answers(model), expected, strict=True):
        assert_array_equal(found, before)
    model.save(tmp_path / "after")
    assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()


QUESTIONS = {
    "predict": (X_NEW,),
    "predict_interval": (X_NEW,),
    "predict_quantiles": (X_NEW, 0.5),
    "predict_cdf": (X_NEW, np.zeros(80)),
    "predict_weights": (X_NEW,),
    "sample": (X_NEW,),
    "score": (X_NEW, np.zeros(80)),
    "oob_.prediction": (),
    "oob_.interval": (),
    "oob_.quantiles": (0.5,),
    "oob_.cdf": (),
    "oob_.weights": (),
    "save": ("nowhere",),
}


@pytest.mark.parametrize("method", QUESTIONS)
def test_unfitted_and_uninitialised_models(method):
    for model in (HDIForestRegressor(), HDIForestRegressor.__new__(HDIForestRegressor)):
        with pytest.raises(NotFittedError, match="This HDIForestRegressor instance is not fitted"):
            attrgetter(method)(model)(*QUESTIONS[method])


def test_every_question_is_asked_of_unfitted_models():
    public = {name for name in dir(HDIForestRegressor) if name.startswith("predict")}
    public = {name for name in public if not name.endswith("_")}  # attributes
    public |= {f"oob_.{name}" for name in vars(OutOfBagPredictions) if not name.startswith("_")}
    assert public <= set(QUESTIONS)


@pytest.mark.parametrize(
    "part_of", [lambda tree: tree.tree_, lambda tree: [tree], lambda tree: type(tree)]
)
def test_parts_of_an_estimator_are_refused(part_of):
    part = part_of(DecisionTreeRegressor().fit(X, Y))
    message = "estimator must be a forest such as RandomForestRegressor"
    with pytest.raises(ValueError, match=message):
        HDIForestRegressor.from_forest(part, X, Y)
    with pytest.raises(ValueError, match=message):
        HDIForestRegressor(part).fit(X, Y)


def test_a_random_state_goes_on_from_fit_to_fit():
    state = np.random.RandomState(0)
    model = HDIForestRegressor(RandomForestRegressor(5), random_state=state, calibration=False)
    first, second = (model.fit(X[:40], Y[:40]).predict(X_NEW) for _ in range(2))
    assert (first != second).any()


def test_n_jobs_follows_the_forest_and_joblib(monkeypatch):
    told, mean = [], hdicore.Scorer.mean

    def watched(*arguments, n_threads, **options):
        told.append(n_threads)
        return mean(*arguments, n_threads=n_threads, **options)

    monkeypatch.setattr(hdicore.Scorer, "mean", watched)
    forest = clone(FOREST).set_params(n_jobs=3).fit(X, Y)
    imported().predict(X)
    HDIForestRegressor.from_forest(forest, X, Y).predict(X)
    HDIForestRegressor.from_forest(forest, X, Y, n_jobs=2).predict(X)
    with joblib.parallel_config(n_jobs=2):
        imported().predict(X)
    assert told == [1, 3, 2, 2]
    with pytest.raises(ValueError, match="n_jobs"):
        imported(n_jobs=0)


def test_no_rows_give_empty_results():
    model = imported(n_jobs=2)
    none = np.empty((0, 4))
    assert model.predict(none).shape == (0,)
    assert model.predict_interval(none, LEVELS).shape == (0, 2, 6)
    assert model.predict_quantiles(none, 0.5).shape == (0,)
    assert model.predict_cdf(none, np.empty(0)).shape == (0,)
    assert model.predict_weights(none).shape == (0, 300)
    assert model.sample(none, 2).shape == (0, 2)


def test_rows_in_c_order_are_neither_copied_nor_answered_otherwise():
    model = imported()
    expected = model.predict_interval(X_NEW.tolist(), 0.9)
    for dtype in (np.float32, np.float64):
        many = np.tile(X_NEW, (400, 1)).astype(dtype)
        tracemalloc.start()
        model.predict(many)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak - 8 * len(many) < many.nbytes / 2  # what is predicted
        rows = np.ascontiguousarray(X_NEW, dtype=dtype)
        for same in (rows, np.asfortranarray(rows), rows.astype(rows.dtype.newbyteorder())):
            assert_array_equal(model.predict_interval(same, 0.9), expected)


def test_missing_values_are_refused_where_the_forest_refuses_them():
    tree = ExtraTreeRegressor(splitter="best", max_depth=4).fit(X, Y)
    if get_tags(tree).input_tags.allow_nan:
        pytest.skip("this scikit-learn says that such a tree takes missing values")
    model = HDIForestRegressor.from_forest(tree, X, Y)
    rows = X_NEW.copy()
    rows[1, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.predict_interval(rows)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (X_NEW[:, :3], "X has 3 features, but HDIForestRegressor is expecting 4 features"),
        (X_NEW[0], "Expected 2D array, got 1D array instead"),
        (np.full((2, 4), np.inf), r"X\[0, 0\] is infinite"),
        (np.full((2, 4), 1e300), "too large for float32"),
        (np.full((2, 4), np.inf).tolist(), "infinity"),
        (np.full((2, 4), "a", dtype=object), "could not convert string to float"),
    ],
)
def test_bad_rows(rows, message):
    with pytest.raises(ValueError, match=message):
        imported().predict_interval(rows)


def test_bad_weights():
    with pytest.raises(ValueError, match="'oob' or 'monotonic', got 'each'"):
        imported(weights="each")


def test_constant_target_and_single_row():
    for rows, target in ((X, np.full(300, 3.5)), (X[:1], np.array([3.5]))):
        model = HDIForestRegressor(RandomForestRegressor(3), calibration=False).fit(rows, target)
        assert (model.predict_interval(X_NEW, LEVELS) == 3.5).all()
        assert_allclose(model.predict(X_NEW), 3.5)


def test_parameters_set_after_fit_wait_for_the_next_fit(tmp_path):
    model = imported().set_params(weights="inbag")
    expected = imported()
    assert_array_equal(model.oob_.interval(), expected.oob_.interval())
    weights = model.predict_weights(X_NEW).toarray()
    assert_array_equal(weights, expected.predict_weights(X_NEW).toarray())
    model.save(tmp_path / "model")
    assert HDIForestRegressor.load(tmp_path / "model").weights == "all"
    assert_allclose(model.fit(X, Y).predict(X_NEW), FOREST.predict(X_NEW), atol=1e-7)


def test_fit_again_replaces_everything():
    model = HDIForestRegressor(RandomForestRegressor(5, random_state=0), calibration=False).fit(
        X, Y
    )
    model.predict_weights(X_NEW[:1])
    model.fit(X[:50], Y[:50])
    assert model.predict_weights(X_NEW).shape == (80, 50)
    assert np.isin(model.predict_interval(X_NEW), Y[:50]).all()


def test_importances_are_nearly_those_of_the_forest(tmp_path):
    pytest.importorskip("safetensors")
    model = imported(weights="inbag")
    found = model.feature_importances_
    assert_allclose(found, FOREST.feature_importances_, atol=0.02)
    assert found.sum() == pytest.approx(1)
    model.save(tmp_path / "model", training_rows=False)
    assert_array_equal(HDIForestRegressor.load(tmp_path / "model").feature_importances_, found)
    assert not hasattr(HDIForestRegressor(), "feature_importances_")


def test_features_are_selected_by_importance():
    noise = np.random.default_rng(0).normal(size=(300, 2))
    rows, model = np.column_stack([noise, X]), HDIForestRegressor(FOREST, calibration=False)
    chosen = SelectFromModel(model, max_features=1).fit(rows, Y).get_support(indices=True)
    assert len(chosen) == 1
    assert chosen[0] >= 2
    eliminated = RFE(model, n_features_to_select=X.shape[1]).fit(rows, Y)
    assert not eliminated.support_[:2].any()
    assert eliminated.predict(rows[:3]).shape == (3,)


def test_notebooks_do_not_compute_what_takes_time(monkeypatch):
    """scikit-learn reads all attributes of a model that it shows."""
    for name in ("feature_importances_", "oob_prediction_"):
        assert hasattr(imported(), name)
        monkeypatch.setattr(HDIForestRegressor, name, property(lambda _: pytest.fail("was read")))
    assert "n_training_rows_" in imported()._repr_html_()


@pytest.mark.parametrize("columns", [2, 4])
def test_a_refused_refit_leaves_the_model_as_it_was(columns):
    forest = RandomForestRegressor(60, min_samples_leaf=3, random_state=0)
    model = HDIForestRegressor(forest, calibration=True).fit(X, Y)
    before, attributes = model.predict_interval(X_NEW), vars(model).copy()
    with pytest.raises(ValueError, match="calibration must be 'auto' or False instead of True"):
        model.fit(X[:5, :columns], Y[:5])
    assert vars(model) == attributes
    assert_array_equal(model.predict_interval(X_NEW), before)
