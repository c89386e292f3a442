"""Centres stacked with another regressor's mean, against their definition, and what is refused."""

import pickle
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.datasets import make_friedman1
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hdicore import weighted_hdi
from hdicore.means import BoostedMean
from hdiforest import HDIForestRegressor
from hdiforest._model.bases import Base
from hdiforest._model.out_of_bag import OutOfBagIntervals
from hdiforest._model.residuals import RegressorMean
from hdiforest._model.stacking import RidgeAndBoosting, boosted_mean, is_plain_boosting
from hdiforest.calibration import CVPlus, OutOfBag
from hdiforest.exceptions import FrozenMeanWarning
from hdiforest.serving import BatchScorer

from ..oracle import restored

X, Y = make_friedman1(240, 6, noise=1, random_state=0)
RNG = np.random.default_rng(0)
X_NEW = make_friedman1(50, 6, noise=1, random_state=1)[0].astype(np.float32)


FOREST = RandomForestRegressor(60, random_state=0).fit(X, Y)


def fitted(**options):
    return HDIForestRegressor.from_forest(FOREST, X, Y, n_jobs=1, **options)


MODEL = fitted()


def stacked_source(mean, model=MODEL):
    return OutOfBagIntervals(model._fitted, 1, mean, 0)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
@pytest.mark.parametrize("missing", [False, True])
def test_boosted_arrays_predict_what_the_regressor_does(loss, missing):
    rng = np.random.default_rng(2)
    rows = X.astype(np.float32)
    if missing:
        rows[rng.random(rows.shape) < 0.2] = np.nan
        rows[:, 1] = np.where(rows[:, 1] > 0.5, rows[:, 1], np.nan)  # a split of missing or not
    booster = HistGradientBoostingRegressor(loss=loss, max_iter=30, random_state=0)
    booster.fit(rows, np.where(np.isnan(rows[:, 1]), 3, 0) + Y)
    assert is_plain_boosting(booster)
    mean = boosted_mean(booster, rows.shape[1])
    assert_allclose(mean.predict(rows, 1), booster.predict(rows), rtol=1e-12)
    assert_array_equal(mean.predict(rows, 2), mean.predict(rows, 1))


@pytest.mark.parametrize(
    "regressor",
    [
        LinearRegression(),
        HistGradientBoostingRegressor(loss="poisson", max_iter=3),
        HistGradientBoostingRegressor(categorical_features=[0], max_iter=3),
    ],
)
def test_other_regressors_stay_what_they_are(regressor):
    rows = np.round(X * 3)
    assert not is_plain_boosting(regressor.fit(rows, np.abs(Y)))


def test_the_share_minimises_the_squared_error():
    booster = HistGradientBoostingRegressor(max_iter=30, random_state=0)
    source = stacked_source(booster)
    c, g = source.means.centres, source.stacking.out_of_fold
    folds = KFold(5, shuffle=True, random_state=0)
    expected = cross_val_predict(booster, X.astype(np.float32), Y, cv=folds)
    assert_array_equal(g, expected)
    errors = [np.square(Y - c - a * (g - c)).sum() for a in np.linspace(0, 1, 1001)]
    assert abs(source.stacking.share - np.argmin(errors) / 1000) <= 0.0005
    assert isinstance(source.stacking.mean, BoostedMean)


@pytest.mark.parametrize("weighted", [False, True])
def test_boosting_is_a_ridge_and_boosted_trees_of_what_it_leaves(weighted):
    rows, y = X[:150].astype(np.float32).astype(np.float64), Y[:150]
    rows[::7, 2] = np.nan
    weight = np.arange(len(y)) % 3 / len(y) + 1e-9 if weighted else None
    found = RidgeAndBoosting(3).fit(rows, y, weight).predict(rows)
    weight = None if weight is None else weight / weight.mean()
    filled = SimpleImputer(strategy="median").fit_transform(rows)
    Z = StandardScaler().fit_transform(filled, sample_weight=weight)
    line = RidgeCV(np.logspace(-4, 6, 21)).fit(Z, y, weight).predict(Z)
    trees = HistGradientBoostingRegressor(random_state=3).fit(rows, y - line, weight)
    expected = np.clip(line + trees.predict(rows), y.min(), y.max())
    assert np.quantile(np.abs(found - expected), 0.99) < 1e-6 * y.std()


def test_the_seed_and_the_weights_reach_both_parts():
    """More than 10,000 rows stop the trees early, by rows that are drawn."""
    rng = np.random.default_rng(0)
    rows = rng.random((10_100, 2))
    y = np.sin(9 * rows[:, 0]) + rng.normal(size=len(rows))
    first, again, other = (RidgeAndBoosting(seed).fit(rows, y).predict(rows) for seed in (0, 0, 1))
    assert_array_equal(first, again)
    assert (first != other).any()
    rows, y = rows[:999], np.where(rows[:999, 1] < 0.5, y[:999], 99)  # rows that weigh nothing
    weighted = RidgeAndBoosting(0).fit(rows, y, (rows[:, 1] < 0.5) * 1.0)
    alone = RidgeAndBoosting(0).fit(rows[rows[:, 1] < 0.5], y[rows[:, 1] < 0.5])
    assert_allclose(weighted.predict(rows), alone.predict(rows), rtol=1e-9)


LINEAR = RNG.normal(size=(40, 3))
TARGETS = LINEAR @ [1.0, -2.0, 3.0]


@pytest.mark.parametrize(
    ("rows", "y", "weight"),
    [
        (LINEAR, np.full(40, 7.0), None),
        (np.ones((40, 3)), TARGETS, None),
        (LINEAR[:, :1], LINEAR[:, 0], None),
        (LINEAR[:1], TARGETS[:1], None),
        (LINEAR[:2], TARGETS[:2], None),
        (LINEAR * 1e-30, TARGETS * 1e200, None),
        (LINEAR * 1e30, TARGETS * 1e-200, None),
        (LINEAR * [1e30, 1, 1e-30], TARGETS + 1e6, np.full(40, 1e300)),
        (np.where([True, False, False], np.nan, LINEAR), LINEAR[:, 1], None),
        (LINEAR, TARGETS, (np.arange(40) == 3) * 1e-300),
    ],
)
def test_boosting_of_rows_of_any_kind(rows, y, weight):
    mean = RidgeAndBoosting(0).fit(rows, y, weight)
    kept = slice(None) if weight is None else weight > 0
    found = mean.predict(rows)[kept] - y[kept]
    spread = 0.0 if np.ptp(rows) == 0 else 0.05
    allowed = np.ptp(y[kept]) * (spread or 1)
    assert (np.abs(found) <= allowed + 1e-9 * np.abs(y).max()).all()
    far = mean.predict(np.vstack([np.full_like(rows[:1], 3e38), np.full_like(rows[:1], -3e38)]))
    assert (y[kept].min() <= far).all()
    assert (far <= y[kept].max()).all()


def test_intervals_of_rows_far_away_stay_within_the_targets_and_are_not_empty():
    source = X @ np.arange(1.0, 7.0) + RNG.normal(size=len(X))
    model = HDIForestRegressor(FOREST, n_jobs=1, calibration=False)
    model.fit(X, source).calibrate(coverage=0.9, mean="boosting", random_state=0)
    assert model._fitted.calibrated.centred.share > 0.8
    ends = model.predict_interval(np.array([[1e30] * 6, [-1e30] * 6, [50.0] * 6]), 0.9)
    assert (source.min() <= ends).all()
    assert (ends <= source.max()).all()
    assert (ends[:, 1] - ends[:, 0] > 0.5).all()


def test_weights_take_part_in_the_share():
    weight = np.where(np.arange(len(Y)) < 160, 1.0, 0.0)
    model = HDIForestRegressor(FOREST, calibration=False).fit(X, Y, weight)
    source = stacked_source(LinearRegression(), model)
    c, g = source.means.centres[:160], source.stacking.out_of_fold[:160]
    share = (g - c) @ (Y[:160] - c) / np.square(g - c).sum()
    assert source.stacking.share == pytest.approx(np.clip(share, 0, 1))


@pytest.mark.parametrize("mean", ["boosting", LinearRegression()])
def test_intervals_are_those_of_residuals_around_stacked_centres(mean):
    source = stacked_source(mean)
    stacking, centred = source.stacking, source.centred_forest("stacked")
    a = stacking.share
    assert centred.family == "stacked"
    levels = [0.5123, 0.8871]  # no sums of weights, up to rounding
    found = centred.intervals(X_NEW, levels, ["hdi", "hdi"], 1)
    residuals = Y - (1 - a) * source.means.centres - a * stacking.out_of_fold
    means = MODEL.estimator_.predict(X_NEW)
    if a > 0:
        means = (1 - a) * means + a * stacking.mean.predict(X_NEW, 1)
    weights = MODEL.predict_weights(X_NEW).toarray()
    for i, centre in enumerate(means):
        expected = weighted_hdi(centre + residuals, weights[i], levels)
        assert_allclose(found[i], expected, rtol=1e-7)


def test_a_share_of_zero_gives_the_centred_intervals():
    """The mean of all targets knows less than the forest."""
    source = stacked_source(DummyRegressor())
    assert source.stacking.share == 0
    plain = OutOfBagIntervals(MODEL._fitted, 1)
    rows = np.arange(20)
    stacked, centred = (
        [Base(family, "hdi", level) for level in (0.5, 0.9)] for family in ("stacked", "centred")
    )
    assert_array_equal(source.intervals(rows, stacked), plain.intervals(rows, centred))
    assert source.families == ("raw", "centred", "stacked")


def calibrated(mean):
    options = {"coverage": [0.5, 0.9], "random_state": 0}
    return fitted().calibrate(mean=mean, **options)


@cache
def boosted():
    return calibrated("boosting")


@pytest.mark.parametrize("mean", ["boosting", LinearRegression()])
def test_a_stacked_model_can_be_pickled_and_repeats(mean):
    model = boosted() if mean == "boosting" else calibrated(mean)
    assert {base.family for base in model.calibration_.bases} == {"stacked"}
    found = model.predict_interval(X_NEW, [0.5, 0.9])
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.predict_interval(X_NEW, [0.5, 0.9]), found)
    assert_array_equal(calibrated(mean).predict_interval(X_NEW, [0.5, 0.9]), found)


def test_a_boosted_mean_goes_into_the_model_file(tmp_path):
    model = boosted()
    model.save(tmp_path / "m.hdi")
    loaded = HDIForestRegressor.load(tmp_path / "m.hdi")
    assert_array_equal(loaded.predict_interval(X_NEW, 0.9), model.predict_interval(X_NEW, 0.9))
    assert loaded.calibration_ == model.calibration_


@pytest.mark.parametrize("method", [OutOfBag(), CVPlus(2)], ids=lambda each: each.name)
def test_so_does_another_regressor(tmp_path, method):
    pytest.importorskip("skops")
    model = fitted().calibrate(coverage=0.8, method=method, mean=LinearRegression(), random_state=0)
    model.save(tmp_path / "m.hdi")
    loaded = HDIForestRegressor.load(tmp_path / "m.hdi")
    assert_array_equal(loaded.predict_interval(X_NEW, 0.8), model.predict_interval(X_NEW, 0.8))


class Broken(RegressorMixin, BaseEstimator):
    """Predicts NaN."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return np.full(len(X), np.nan)


class Failing(Broken):
    """A regressor of another library, whose exceptions are its own."""

    def fit(self, X, y):
        raise RuntimeError("no rows to stop by")


@pytest.mark.parametrize(
    ("mean", "options", "message"),
    [
        ("boost", {}, "mean must be None, 'boosting' or a regressor, got 'boost'"),
        (LinearRegression, {}, "mean must be None, 'boosting' or a regressor"),
        ("boosting", {"weights": "inbag"}, "mean must be None with weights='inbag'"),
        (Broken(), {}, "must predict one finite number for each row"),
        (
            KNeighborsRegressor(0),
            {},
            "given as mean cannot be fitted, .* of numbers: .*n_neighbors",
        ),
        (Failing(), {}, r"clone\(mean\).fit\(X, y\) fits on arrays of numbers: no rows to stop by"),
        (
            HistGradientBoostingRegressor(loss="quantile", quantile=0.9),
            {},
            "a regressor of the mean, got HistGradientBoostingRegressor with loss='quantile'",
        ),
    ],
)
def test_refused_means(mean, options, message):
    model = fitted(**options)
    with pytest.raises(ValueError, match=message):
        model.calibrate(coverage=0.9, mean=mean)
    with pytest.raises(AttributeError):
        _ = model.calibration_


def test_a_weighted_forest_needs_a_mean_that_takes_weights():
    model = HDIForestRegressor(FOREST, calibration=False).fit(X[:40], Y[:40], np.ones(40))
    with pytest.raises(ValueError, match="mean must be a regressor whose fit takes sample_weight"):
        model.calibrate(coverage=0.9, mean=KNeighborsRegressor())


class Counting(LinearRegression):
    """Counts its fits."""

    n_fits = 0

    def fit(self, X, y, sample_weight=None):
        Counting.n_fits += 1
        return super().fit(X, y, sample_weight)


X_KNOWN, Y_KNOWN = make_friedman1(400, 6, noise=1, random_state=2)


@pytest.mark.parametrize("method", ["oob", "cv+", "split"])
def test_a_frozen_model_is_fitted_nowhere(method):
    linear = Counting().fit(X_KNOWN, Y_KNOWN)
    n_fits, coefficients = Counting.n_fits, linear.coef_.copy()
    rows = make_friedman1(100, 6, noise=1, random_state=3) if method == "split" else ()
    how = {"method": CVPlus(2)} if method == "cv+" else {}
    model = fitted().calibrate(*rows, coverage=0.8, mean=FrozenEstimator(linear), **how)
    assert Counting.n_fits == n_fits
    assert_array_equal(linear.coef_, coefficients)
    parts = [part.calibrated for part in model._fitted.calibrated.folds or (model._fitted,)]
    for mean in (part.centred.mean for part in parts if part.centred is not None):
        assert mean.regressor.estimator is linear


def test_predictions_of_a_frozen_model_are_out_of_fold_as_they_are():
    linear = LinearRegression().fit(X_KNOWN, Y_KNOWN)
    stacking = stacked_source(FrozenEstimator(linear)).stacking
    expected = linear.predict(X.astype(np.float32).astype(np.float64))
    assert_array_equal(stacking.out_of_fold, expected)
    assert_allclose(stacking.mean.predict(X_NEW, 1), linear.predict(X_NEW.astype(np.float64)))


def test_a_frozen_model_takes_a_forest_with_weights():
    knows_no_weights = KNeighborsRegressor().fit(X_KNOWN, Y_KNOWN)
    model = HDIForestRegressor(FOREST, calibration=False, n_jobs=1).fit(X, Y, np.ones(len(Y)))
    model.calibrate(coverage=0.9, mean=FrozenEstimator(knows_no_weights), random_state=0)
    assert model._fitted.training_rows.sample_weight is not None
    assert model.calibration_.level(0.9).mean_width > 0


NAMES = ["a b", "c", "d", "e", "f", "g"]


PIPELINE = make_pipeline(
    make_column_transformer((StandardScaler(), ["c", "a b"]), remainder="passthrough"),
    GradientBoostingRegressor(n_estimators=20),
)
TRANSFORMED = TransformedTargetRegressor(LinearRegression(), transformer=StandardScaler())


@pytest.mark.parametrize(
    ("regressor", "of_table"), [(PIPELINE, True), (TRANSFORMED, True), (TRANSFORMED, False)]
)
def test_frozen_models_of_tables_and_arrays(tmp_path, regressor, of_table):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("skops")
    table = pd.DataFrame(X, columns=NAMES)
    known = pd.DataFrame(X_KNOWN, columns=NAMES)
    if not of_table:
        known = known.to_numpy()
    inside = clone(regressor).fit(known, Y_KNOWN)
    expected = None
    named = HDIForestRegressor(FOREST, n_jobs=1, calibration=False).fit(table, Y)
    for model, new in ((named, table[:20]), (fitted(), X[:20])):
        model.calibrate(coverage=0.8, mean=FrozenEstimator(inside), random_state=0)
        ends = model.predict_interval(new, 0.8)
        expected = ends if expected is None else expected
        assert_array_equal(ends, expected)
    model.save(tmp_path / "m.hdi")
    trusted = ["sklearn.tree._tree.Tree"]
    loaded = HDIForestRegressor.load(tmp_path / "m.hdi", trusted=trusted)
    scored = BatchScorer(tmp_path / "m.hdi", 0.8, trusted=trusted)(
        pd.DataFrame(X[:20], columns=NAMES)
    )
    assert_array_equal(loaded.predict_interval(X[:20], 0.8), expected)
    assert_array_equal(scored[["lower_0.8", "upper_0.8"]], expected)


@pytest.fixture(scope="module")
def named():
    pd = pytest.importorskip("pandas")
    model = HDIForestRegressor(FOREST, n_jobs=1, calibration=False)
    return model.fit(pd.DataFrame(X, columns=NAMES), Y)


def frozen(regressor, names=NAMES, rows=X_KNOWN, y=Y_KNOWN):
    pd = pytest.importorskip("pandas")
    return FrozenEstimator(regressor.fit(pd.DataFrame(rows, columns=names), y))


@pytest.mark.parametrize(
    ("mean", "message"),
    [
        (lambda: FrozenEstimator(LinearRegression()), "LinearRegression .* not fitted yet"),
        (lambda: FrozenEstimator(3), "mean must be None, 'boosting' or a regressor, got Frozen"),
        (
            lambda: frozen(LinearRegression(), NAMES[:4], X_KNOWN[:, :4]),
            "of the 6 features of the forest, and the LinearRegression in the .* has 4",
        ),
        (
            lambda: frozen(LinearRegression(), NAMES[::-1]),
            "in their order, and feature 0 of the LinearRegression in .* is 'g', not 'a_b'",
        ),
        (
            lambda: frozen(PIPELINE, ["a b", "c", "d", "x", "f", "g"]),
            "feature 3 of the Pipeline in the FrozenEstimator is 'x', not 'e'",
        ),
        (
            lambda: frozen(DummyClassifier(), y=np.where(Y_KNOWN > 9, "much", "little")),
            "the DummyClassifier in .* does not: could not convert",
        ),
        (
            lambda: frozen(LinearRegression(), y=np.column_stack([Y_KNOWN, Y_KNOWN])),
            "one number for a row of numbers, and the LinearRegression .* does not",
        ),
        (
            lambda: frozen(
                make_pipeline(GradientBoostingRegressor(loss="quantile", n_estimators=2))
            ),
            "got Pipeline with gradientboostingregressor__loss='quantile'",
        ),
    ],
)
def test_refused_frozen_models(named, mean, message):
    with pytest.raises(ValueError, match=message):
        named.calibrate(coverage=0.9, mean=mean())
    with pytest.raises(AttributeError):
        _ = named.calibration_


@pytest.mark.parametrize(
    ("regressor", "noise"),
    [
        (HistGradientBoostingRegressor(max_iter=50), 1.0),
        (RandomForestRegressor(15, random_state=0), 1.0),
        (KNeighborsRegressor(1), 3.0),
    ],
)
def test_a_frozen_model_that_knows_the_rows_is_told_of(regressor, noise):
    rows, y = make_friedman1(900, 6, noise=noise, random_state=5)
    model = HDIForestRegressor(FOREST, n_jobs=1, calibration=False).fit(rows[:400], y[:400])
    new = clone(regressor).fit(rows[400:], y[400:])
    model.calibrate(coverage=0.8, mean=FrozenEstimator(new))
    assert model.calibration_.level(0.8).cross_check.coverage == pytest.approx(0.8, abs=0.06)
    known = clone(regressor).fit(rows[:400], y[:400])
    told = f"^the {type(regressor).__name__} in the FrozenEstimator seems to have been fitted on"
    with pytest.warns(FrozenMeanWarning, match=told) as found:
        model.calibrate(coverage=0.8, mean=FrozenEstimator(known))
    assert [each.filename for each in found] == [__file__]


def test_targets_of_any_unit_share_alike():
    forest = RandomForestRegressor(40, random_state=0)
    shares = [
        stacked_source("boosting", model).stacking.share
        for model in (
            HDIForestRegressor(forest, n_jobs=1, calibration=False).fit(X[:120], Y[:120] * unit)
            for unit in (1, 1e-6, 1e120)
        )
    ]
    assert np.ptp(shares) < 0.05
    assert shares[0] > 0


def test_what_takes_no_frozen_model():
    mean = FrozenEstimator(LinearRegression().fit(X_KNOWN, Y_KNOWN))
    two = HDIForestRegressor(FOREST, calibration=False).fit(X[:40], np.stack([Y, Y], 1)[:40])
    with pytest.raises(ValueError, match="not be a FrozenEstimator for a model of several targets"):
        two.calibrate(coverage=0.9, mean=mean)
    with pytest.raises(ValueError, match=r"mean must be None with method='jackknife\+'"):
        fitted().calibrate(coverage=0.9, method="jackknife+", mean=mean)


def test_targets_far_from_zero_lose_no_digits():
    """Linear models of scikit-learn reduce y to the type of X."""
    y = X @ np.arange(1.0, 7.0)
    model = HDIForestRegressor(FOREST, n_jobs=1, calibration=False).fit(X, y)
    near = model.calibrate(coverage=0.9, mean=LinearRegression(), random_state=0).calibration_
    model.fit(X, y + 1e7)
    far = model.calibrate(coverage=0.9, mean=LinearRegression(), random_state=0).calibration_
    assert near.level(0.9).mean_width < 1e-3
    assert far.level(0.9).mean_width < 1e-3


def test_a_given_regressor_is_not_changed():
    regressor = LinearRegression()
    calibrated(regressor)
    assert not hasattr(regressor, "coef_")
    with pytest.raises(ValueError, match="number"):
        RegressorMean(Broken()).predict(X_NEW, 1)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"range": np.array([1, np.nan, 2.0])}, "low must be at most high, got nan and 2.0"),
        ({"line": np.zeros((2, 3))}, r"line must be float64 of shape \(2, 6\)"),
        ({"line": np.full((2, 6), np.nan)}, "line and baseline must be finite"),
    ],
)
def test_a_pickled_mean_is_checked(arrays, message):
    with pytest.raises(ValueError, match=message):
        restored(boosted(), {f"mean.{name}": array for name, array in arrays.items()})
