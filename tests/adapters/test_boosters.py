"""from_lightgbm, from_xgboost and from_catboost: categories, early stopping, pickles, files."""

import json
import pickle
import re
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from threadpoolctl import threadpool_limits

from hdiforest import HDIForestRegressor, LeafModel, from_catboost, from_lightgbm, from_xgboost
from hdiforest.adapters.boosters import CatBoostLeaves, LightGBMLeaves, XGBoostLeaves

from ..oracle import families

pd = pytest.importorskip("pandas")
lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")
catboost = pytest.importorskip("catboost")
# Of most tests; those of the warnings themselves are below.
pytestmark = pytest.mark.filterwarnings("ignore:.*leaves of boosted trees")
RNG = np.random.default_rng(4)
N = 500
TABLE = pd.DataFrame(
    {
        "size": RNG.normal(size=N),
        "colour": pd.Categorical(RNG.choice(["red", "green", "blue", "grey"], N)),
        "day of week": RNG.integers(0, 7, N),
    }
)
Y = TABLE["size"] + 2.0 * (TABLE["colour"] == "green") + 0.5 * RNG.normal(size=N)
TRAIN, NEW = TABLE[:400], TABLE[400:]
Y_TRAIN, Y_NEW = Y[:400].to_numpy(), Y[400:].to_numpy()
NUMBERS = TABLE[["size", "day of week"]].to_numpy()

FOREST = {"n_estimators": 30, "n_jobs": 1}
LIGHTGBM = FOREST | {
    "boosting_type": "rf",
    "colsample_bytree": 0.7,
    "min_child_samples": 5,
    "verbose": -1,
}
XGBOOST = FOREST | {"max_depth": 6, "colsample_bynode": 0.7, "subsample": 1, "reg_lambda": 0}
CATBOOST = {
    "iterations": 30,
    "verbose": False,
    "allow_writing_files": False,
    "thread_count": 1,
    "random_seed": 0,
}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Their threads spin where the processors are busy."""
    with threadpool_limits(1):
        yield


def lightgbm_forest():
    return lightgbm.LGBMRegressor(**LIGHTGBM).fit(TRAIN, Y_TRAIN)


def lightgbm_booster():
    options = {"verbose": -1, "num_threads": 1}
    data = lightgbm.Dataset(TRAIN, Y_TRAIN, free_raw_data=False)
    return lightgbm.train(options, data, num_boost_round=20)


def xgboost_forest():
    return xgboost.XGBRFRegressor(**XGBOOST, enable_categorical=True).fit(TRAIN, Y_TRAIN)


def xgboost_booster():
    data = xgboost.DMatrix(TRAIN, Y_TRAIN, enable_categorical=True, nthread=1)
    return xgboost.train({"num_parallel_tree": 2, "nthread": 1}, data, 10)


def catboost_boosted():
    model = catboost.CatBoostRegressor(**CATBOOST, cat_features=["colour"])
    return model.fit(TRAIN, Y_TRAIN)


def catboost_lossguide():
    model = catboost.CatBoost(CATBOOST | {"cat_features": ["colour"], "grow_policy": "Lossguide"})
    return model.fit(TRAIN, Y_TRAIN)


FITS = {
    "lightgbm.LGBMRegressor": (lightgbm_forest, from_lightgbm, 30),
    "lightgbm.Booster": (lightgbm_booster, from_lightgbm, 20),
    "xgboost.XGBRFRegressor": (xgboost_forest, from_xgboost, 30),
    "xgboost.Booster": (xgboost_booster, from_xgboost, 20),
    "catboost.CatBoostRegressor": (catboost_boosted, from_catboost, 30),
    "catboost.CatBoost": (catboost_lossguide, from_catboost, 30),
}


@pytest.fixture(scope="module", params=FITS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def booster(name):
    return FITS[name][0]()


@pytest.fixture
def model(name, booster):
    return FITS[name][1](booster, TRAIN, Y_TRAIN, n_jobs=2)


def test_models_with_categories(name, model):
    n_trees = FITS[name][2]
    assert isinstance(model, LeafModel)
    assert model.index_.n_trees == n_trees
    assert str(n_trees // 2) in repr(model) or str(n_trees) in repr(model)
    found = model.predict_interval(NEW, [0.8, 0.9])
    assert found.shape == (100, 2, 2)
    assert np.corrcoef(model.predict(NEW), Y_NEW)[0, 1] > 0.6
    pickled = pickle.dumps(model)
    assert_array_equal(pickle.loads(pickled).predict_interval(NEW, [0.8, 0.9]), found)
    assert_array_equal(clone(model).fit(TRAIN, Y_TRAIN).predict_interval(NEW, [0.8, 0.9]), found)
    table = model.predict_interval(NEW, output="pandas")
    assert_array_equal(table.index, NEW.index)
    assert model.predict_interval(NEW[:0]).shape == (0, 2)


def test_categories_are_those_of_the_fit(name, model):
    expected = model.predict(NEW)
    recoded = NEW.assign(
        colour=NEW["colour"].cat.reorder_categories(["red", "grey", "blue", "green"])
    )
    assert_array_equal(model.predict(recoded), expected)
    only_green = NEW[NEW["colour"] == "green"]
    only_green = only_green.assign(colour=only_green["colour"].cat.remove_unused_categories())
    assert_array_equal(model.predict(only_green), expected[NEW["colour"] == "green"])
    unseen = NEW.assign(colour=NEW["colour"].cat.rename_categories({"red": "violet"}))
    if "xgboost" in name:
        with pytest.raises(xgboost.core.XGBoostError, match="category not in the training set"):
            model.predict(unseen)
    elif "lightgbm" in name:
        missing = NEW.assign(colour=NEW["colour"].cat.remove_categories(["red"]))
        assert_array_equal(model.predict(unseen), model.predict(missing))
    else:
        assert np.isfinite(model.predict(unseen)).all()


def test_columns_in_another_order_are_refused_or_sorted(name, model):
    swapped = NEW[["day of week", "colour", "size"]]
    if "catboost" in name:
        for table in (swapped, NEW.assign(more=1)):
            assert_array_equal(model.predict(table), model.predict(NEW))
        return
    with pytest.raises(ValueError, match=r"X must have the columns|feature_names mismatch"):
        model.predict(swapped)


def test_forests_predict_the_means_of_their_leaves():
    # With one tree, no rows left out and no penalty, both are the mean of the leaf.
    one = LIGHTGBM | {"n_estimators": 1, "boosting_type": "gbdt", "learning_rate": 1.0}
    tree = lightgbm.LGBMRegressor(**one).fit(TRAIN, Y_TRAIN)
    found = from_lightgbm(tree, TRAIN, Y_TRAIN).predict(NEW)
    assert_allclose(found, tree.predict(NEW), atol=1e-5)
    forest = xgboost_forest()
    found = from_xgboost(forest, TRAIN, Y_TRAIN).predict(NEW)
    assert_allclose(found, forest.predict(NEW), atol=1e-4)


def test_early_stopping_of_xgboost(tmp_path):
    model = xgboost.XGBRegressor(
        n_estimators=100,
        n_jobs=1,
        learning_rate=0.5,
        early_stopping_rounds=2,
        enable_categorical=True,
    ).fit(TRAIN, Y_TRAIN, eval_set=[(NEW, Y_NEW)], verbose=False)
    best = model.best_iteration
    assert best + 1 < model.get_booster().num_boosted_rounds()
    found = from_xgboost(model, TRAIN, Y_TRAIN)
    assert found.index_.n_trees == best + 1
    assert_array_equal(found.apply(NEW), model.apply(NEW))
    model.save_model(tmp_path / "forest.json")
    loaded = xgboost.XGBRegressor()
    loaded.load_model(tmp_path / "forest.json")
    assert_array_equal(XGBoostLeaves(loaded)(NEW), model.apply(NEW))


def test_trees_after_early_stopping_are_those_of_the_own_predict():
    data = xgboost.DMatrix(NUMBERS[:400], Y_TRAIN, nthread=1)
    other = xgboost.DMatrix(NUMBERS[400:], Y_NEW, nthread=1)
    stop = {"evals": [(other, "other")], "early_stopping_rounds": 2, "verbose_eval": False}
    options = {"nthread": 1, "learning_rate": 0.7}
    stopped = xgboost.train(options, data, 60, **stop)
    longer = xgboost.train(options, data, 9, xgb_model=stopped)
    for booster in (stopped, longer):
        n_trees = booster.num_boosted_rounds()
        assert n_trees > booster.best_iteration + 1
        leaves = XGBoostLeaves(booster)(NUMBERS[400:])
        assert leaves.shape == (100, n_trees)
        margin = booster.predict(other, output_margin=True)
        assert_allclose(_sum_of_leaves(booster, leaves), margin, rtol=1e-4, atol=1e-4)
    data = lightgbm.Dataset(NUMBERS[:400], Y_TRAIN, free_raw_data=False)
    other = data.create_valid(NUMBERS[400:], Y_NEW)
    options = {"verbose": -1, "num_threads": 1, "learning_rate": 0.7, "metric": "l2"}
    callbacks = [lightgbm.early_stopping(2, verbose=False)]
    booster = lightgbm.train(options, data, 60, valid_sets=[other], callbacks=callbacks)
    longer = lightgbm.train(options, data, 9, init_model=booster)
    assert from_lightgbm(booster, NUMBERS[:400], Y_TRAIN).index_.n_trees == booster.best_iteration
    for each in (booster, longer):
        leaves = LightGBMLeaves(each)(NUMBERS[400:])
        values = [
            [each.get_leaf_output(tree, leaf) for tree, leaf in enumerate(row)] for row in leaves
        ]
        assert_allclose(np.sum(values, axis=1), each.predict(NUMBERS[400:]), atol=1e-6)


def _sum_of_leaves(booster, leaves):
    table = booster.trees_to_dataframe().query("Feature == 'Leaf'")
    values = table.set_index(["Tree", "Node"])["Gain"]
    sums = [sum(values[tree, leaf] for tree, leaf in enumerate(row)) for row in leaves]
    return np.array(sums) + _base_score(booster)


def _base_score(booster):
    base = json.loads(booster.save_config())["learner"]["learner_model_param"]["base_score"]
    return float(str(base).strip("[]"))


def test_early_stopping_of_catboost():
    model = catboost.CatBoostRegressor(**CATBOOST | {"iterations": 100, "learning_rate": 0.5})
    X, X_new = NUMBERS[:400], NUMBERS[400:]
    model.fit(X, Y_TRAIN, eval_set=(X_new, Y_NEW), early_stopping_rounds=2)
    assert model.tree_count_ == model.best_iteration_ + 1 < 100
    found = from_catboost(model, X, Y_TRAIN)
    assert found.index_.n_trees == model.tree_count_
    assert_array_equal(found.apply.n_leaves, model.get_tree_leaf_counts())


def save_lightgbm(model, path):
    getattr(model, "booster_", model).save_model(path)
    return LightGBMLeaves(lightgbm.Booster(model_file=path))


def save_xgboost(model, path):
    path = path.with_suffix(".ubj")
    (model.get_booster() if hasattr(model, "get_booster") else model).save_model(path)
    return XGBoostLeaves(xgboost.Booster(model_file=path))


def save_catboost(model, path):
    model.save_model(path)
    return CatBoostLeaves(catboost.CatBoost().load_model(path))


SAVES = {"lightgbm": save_lightgbm, "xgboost": save_xgboost, "catboost": save_catboost}


def test_files_beside_those_of_the_library(name, booster, model, tmp_path):
    pytest.importorskip("safetensors")
    model.calibrate(NEW, Y_NEW, coverage=0.8)
    apply = SAVES[name.partition(".")[0]](booster, tmp_path / "forest")
    model.save(tmp_path / "index")
    loaded = LeafModel.load(tmp_path / "index", apply)
    assert_array_equal(loaded.predict_interval(NEW, 0.8), model.predict_interval(NEW, 0.8))
    assert_array_equal(loaded.predict(NEW), model.predict(NEW))


OF_NUMBERS = [
    (lightgbm.LGBMRegressor(**LIGHTGBM), from_lightgbm),
    (xgboost.XGBRFRegressor(**XGBOOST), from_xgboost),
    (catboost.CatBoostRegressor(**CATBOOST), from_catboost),
]


def test_rows_without_names():
    X, X_new = NUMBERS[:400], NUMBERS[400:]
    for booster, function in OF_NUMBERS:
        model = function(booster.fit(X, Y_TRAIN), X, Y_TRAIN)
        assert model.predict_interval(X_new).shape == (100, 2)
    xgb = xgboost.XGBRFRegressor(**XGBOOST, missing=-1.0).fit(X, Y_TRAIN)
    assert_array_equal(XGBoostLeaves(xgb)(X_new), xgb.apply(X_new))
    codes = TRAIN.assign(colour=TRAIN["colour"].cat.codes).to_numpy(float)
    data = xgboost.DMatrix(codes, Y_TRAIN, feature_types=["q", "c", "q"], nthread=1)
    booster = xgboost.train({"nthread": 1}, data, 5)
    expected = booster.predict(data, pred_leaf=True)
    assert_array_equal(XGBoostLeaves(booster)(codes), expected)
    assert_array_equal(XGBoostLeaves(booster)(data), expected)


def test_columns_of_polars_and_pyarrow_are_not_read_by_position():
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    table = {"a": NUMBERS[:, 0], "b": NUMBERS[:, 1]}
    forest = lightgbm.LGBMRegressor(**LIGHTGBM).fit(pd.DataFrame(table), Y)
    model = from_lightgbm(forest, pd.DataFrame(table), Y)
    for kind in (polars.DataFrame, pyarrow.table):
        assert_array_equal(model.predict(kind(table)), model.predict(pd.DataFrame(table)))
        with pytest.raises(ValueError, match=r"their order, \['a', 'b'\], got \['b', 'a'\]"):
            model.predict(kind({"b": table["b"], "a": table["a"]}))


def test_warnings_name_the_way_for_boosters():
    X, y = NUMBERS[:400], Y_TRAIN
    rounds = {"n_estimators": 3, "n_jobs": 1}
    quiet = {"iterations": 3, "verbose": False, "allow_writing_files": False, "thread_count": 1}
    boosted = [
        (from_lightgbm, lightgbm.LGBMRegressor(**rounds, verbose=-1)),
        (from_lightgbm, lightgbm.LGBMRegressor(**rounds, boosting_type="dart", verbose=-1)),
        (from_xgboost, xgboost.XGBRegressor(**rounds)),
        (from_xgboost, xgboost.XGBRegressor(**rounds, num_parallel_tree=4, subsample=0.5)),
        (from_catboost, catboost.CatBoostRegressor(**quiet)),
    ]
    for function, booster in boosted:
        with pytest.warns(UserWarning, match=r"twice as wide .*calibrate\(mean=booster\)") as found:
            function(booster.fit(X, y), X, y)
        assert len(found) == 1
        assert found[0].filename == __file__


@pytest.mark.filterwarnings("error")
def test_forests_and_single_trees_are_no_boosters(tmp_path):
    from_xgboost(xgboost_forest(), TRAIN, Y_TRAIN)
    forest = lightgbm_forest()
    from_lightgbm(forest, TRAIN, Y_TRAIN)
    forest.booster_.save_model(tmp_path / "forest.txt")
    from_lightgbm(lightgbm.Booster(model_file=tmp_path / "forest.txt"), TRAIN, Y_TRAIN)
    tree = catboost.CatBoostRegressor(**CATBOOST | {"iterations": 1}).fit(NUMBERS, Y)
    from_catboost(tree, NUMBERS, Y)


def test_boosters_without_trees_are_refused():
    linear = xgboost.XGBRegressor(n_estimators=3, booster="gblinear", n_jobs=1)
    linear.fit(NUMBERS[:400], Y_TRAIN)
    with pytest.raises(ValueError, match="booster must have trees, got one of booster='gblinear'"):
        from_xgboost(linear, NUMBERS[:400], Y_TRAIN)


@pytest.mark.parametrize(("booster", "function"), OF_NUMBERS)
def test_rows_of_other_widths_are_refused(booster, function):
    X, X_new = np.c_[NUMBERS, NUMBERS[:, 0] ** 2][:400], NUMBERS[400:]
    model = function(booster.fit(X, Y_TRAIN), X, Y_TRAIN)
    for other in (X_new, X_new[:, :1], np.c_[X_new, X_new], X_new.tolist()):
        with pytest.raises(
            (ValueError, lightgbm.basic.LightGBMError), match=r"have 3 col|features"
        ):
            model.predict(other)
    for kind, matrix in ((from_xgboost, xgboost.DMatrix), (from_catboost, catboost.Pool)):
        if kind is function:
            with pytest.raises(ValueError, match=r"X must have 3 columns, as .* fit had, got 4"):
                model.predict(matrix(np.c_[X_new, X_new]))


CITIES = TABLE.assign(zone=pd.Categorical(RNG.integers(10, 14, N)))


@pytest.mark.parametrize(
    ("fit", "function"),
    [
        (lightgbm.LGBMRegressor(**LIGHTGBM), from_lightgbm),
        (xgboost.XGBRFRegressor(**XGBOOST, enable_categorical=True), from_xgboost),
    ],
)
def test_cells_in_place_of_categories_are_refused(fit, function):
    model = function(fit.fit(CITIES, Y), CITIES, Y)
    new = CITIES[400:]
    codes = new.assign(**{name: new[name].cat.codes for name in ("colour", "zone")})
    zone, colour = new["zone"], new["colour"]
    others = [
        (codes.to_numpy(float), "with 2 columns of categories, .* got ndarray with 0"),
        (new.assign(zone=zone.astype(int)).to_numpy(), "with 2 .* got ndarray with 0"),
        (codes.to_numpy(float).tolist(), "with 2 columns of categories, .* got list with 0"),
        (codes, "with 2 columns of categories, .* got DataFrame with 0"),
        (new.assign(zone=zone.astype(int)), "with 2 .* got DataFrame with 1"),
        (new.assign(colour=colour.astype(str)), "with 2 .* got DataFrame with 1"),
        (new.assign(zone=zone.astype(str).astype("category")), "as 10, .* such as '10'"),
        (new.assign(colour=codes["colour"].astype("category")), "'blue', .* such as 0"),
        (new.assign(size=new["size"].round().astype("category")), "with 2 .* with 3"),
    ]
    for other, told in others:
        told = told if function is from_lightgbm else None  # some are refused by XGBoost itself
        with pytest.raises((ValueError, TypeError), match=told):
            model.predict(other)
    numbers = new.assign(colour=codes["colour"], zone=codes["zone"])
    model = function(clone(fit).fit(numbers.to_numpy(), Y[400:]), numbers.to_numpy(), Y[400:])
    told = r"table with 0 columns of categories|categories in the columns \[\]"
    with pytest.raises(ValueError, match=told):
        model.predict(new)


def small_forest():
    forest = RandomForestRegressor(60, min_samples_leaf=5, random_state=0)
    return HDIForestRegressor(forest, calibration=False, random_state=0)


def test_boosters_where_forests_and_means_are_taken():
    X, y = NUMBERS[:400], Y_TRAIN
    light = lightgbm.LGBMRegressor(n_estimators=3, n_jobs=1, verbose=-1).fit(X, y)
    extreme = xgboost.XGBRegressor(n_estimators=3, n_jobs=1).fit(X, y)
    cat = catboost_boosted()
    boosters = [light, light.booster_, extreme, extreme.get_booster(), cat]
    for booster in boosters:
        told = rf"got the booster {type(booster).__name__}; call .*calibrate\(mean=booster\)"
        with pytest.raises(ValueError, match=told):
            HDIForestRegressor.from_forest(booster, X, y)
        with pytest.raises(ValueError, match=told):
            HDIForestRegressor(booster).fit(X, y)
    for booster in (light, extreme):
        found = small_forest().fit(X, y)
        found.calibrate(mean=booster, coverage=0.8)
        assert found.predict_interval(NUMBERS[400:], 0.8).shape == (100, 2)
    refused = [
        (light.booster_, "so give LGBMRegressor"),
        (extreme.get_booster(), "so give LGBMRegressor"),
        (cat, "mean cannot be fitted, .* Cannot clone"),
        (lightgbm.LGBMRegressor(objective="quantile"), "got LGBMRegressor with objective="),
        (xgboost.XGBRegressor(objective="reg:quantileerror"), "got XGBRegressor with objective="),
    ]
    for mean, message in refused:
        with pytest.raises(ValueError, match=message):
            found.calibrate(mean=mean, coverage=0.8)
    leaves = from_lightgbm(light, X, y)
    with pytest.raises(ValueError, match="mean must be None for a LeafModel"):
        leaves.calibrate(X, y, mean=light)


@pytest.mark.parametrize(
    ("kind", "of_table"),
    [
        (lightgbm.LGBMRegressor, True),
        (xgboost.XGBRegressor, True),
        (catboost.CatBoostRegressor, False),
    ],
)
def test_frozen_boosters_are_means_as_they_are(kind, of_table, tmp_path):
    pytest.importorskip("skops")
    options = CATBOOST if kind is catboost.CatBoostRegressor else FOREST
    names = ["size", "day of week"]
    rows = TABLE[names] if of_table else NUMBERS
    booster = kind(**options).fit(rows[:200], Y[:200])
    before = pickle.dumps(booster)
    model = small_forest().fit(TABLE[names][200:], Y[200:])
    with families("stacked"):
        model.calibrate(mean=FrozenEstimator(booster), coverage=0.8)
    ends = model.predict_interval(TABLE[names][:20], 0.8)
    assert pickle.dumps(booster) == before
    assert_allclose(
        model._fitted.calibrated.centred.mean.predict(NUMBERS[:20].astype(np.float32), 1),
        booster.predict(rows[:20].astype(np.float32).astype(np.float64)),
    )
    model.save(tmp_path / "m.hdi")
    with pytest.raises(ValueError, match=kind.__name__) as refused:
        HDIForestRegressor.load(tmp_path / "m.hdi")
    trusted = re.findall(r"'([\w.]+)'", str(refused.value).partition("trusted=")[2])
    loaded = HDIForestRegressor.load(tmp_path / "m.hdi", trusted=trusted)
    assert_array_equal(loaded.predict_interval(TABLE[names][:20], 0.8), ends)
    if of_table:
        other_order = kind(**options).fit(rows[names[::-1]], Y)
        with pytest.raises(ValueError, match=r"feature 0 .* is 'day_of_week', not 'size'"):
            model.calibrate(mean=FrozenEstimator(other_order), coverage=0.8)


def test_a_frozen_booster_without_an_estimator_is_taken_if_it_predicts_arrays():
    light = lightgbm.LGBMRegressor(n_estimators=3, n_jobs=1, verbose=-1).fit(NUMBERS[:200], Y[:200])
    model = small_forest().fit(NUMBERS[200:], Y[200:])
    model.calibrate(mean=FrozenEstimator(light.booster_), coverage=0.8)
    extreme = xgboost.XGBRegressor(n_estimators=3, n_jobs=1).fit(NUMBERS[:200], Y[:200])
    categories = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1).fit(
        TABLE[["size", "colour"]][:200], Y[:200]
    )
    for mean, said in ((extreme.get_booster(), "DMatrix"), (categories, "categorical_feature")):
        with pytest.raises(ValueError, match=f"one number for a row of numbers, .*{said}"):
            model.calibrate(mean=FrozenEstimator(mean), coverage=0.8)


def test_unseen_cells_are_counted():
    model = from_lightgbm(lightgbm_forest(), TRAIN, Y_TRAIN)
    assert model.counts_.n_rows == 0
    unseen = NEW.assign(colour=NEW["colour"].cat.rename_categories({"red": "violet"}))
    n_red = int((NEW["colour"] == "red").sum())
    model.predict_interval(unseen)
    model.predict(NEW)
    assert model.counts_.n_rows == 2 * len(NEW)
    assert model.counts_.unseen == {"colour": n_red}
    assert f"{n_red} of 'colour'" in str(model.counts_)
    assert pickle.loads(pickle.dumps(model)).counts_.n_rows == 0
    assert model.calibrate(NEW, Y_NEW, coverage=0.8).counts_.n_rows == 0
    with_missing = NEW.assign(colour=NEW["colour"].cat.remove_categories(["red"]))
    model.predict(with_missing)
    assert model.counts_.unseen.total() == 0


def test_unseen_cells_of_catboost_are_counted():
    model = from_catboost(catboost_boosted(), TRAIN, Y_TRAIN)
    codes = NEW.assign(colour=NEW["colour"].cat.codes.astype(int))
    for other in (codes, codes[["day of week", "colour", "size"]], codes.to_numpy(object)):
        model.predict(other)
        model.predict(NEW)
        assert model.counts_.unseen == {"colour": len(NEW)}
        assert model.counts_.n_rows == 2 * len(NEW)
        model = pickle.loads(pickle.dumps(model))
    violet = NEW.assign(colour=NEW["colour"].cat.rename_categories({"grey": "violet"}))
    model.predict(violet)
    assert model.counts_.unseen == {"colour": (NEW["colour"] == "grey").sum()}
    pool = catboost.Pool(violet, cat_features=["colour"])
    model = LeafModel(model.apply, n_leaves=model.apply.n_leaves).fit(TRAIN, Y_TRAIN)
    model.predict(pool)  # whose cells cannot be read
    assert model.counts_.unseen.total() == 0


@pytest.mark.parametrize(
    ("function", "other", "unfitted"),
    [
        (from_lightgbm, "a lightgbm.Booster or LGBMModel", lightgbm.LGBMRegressor()),
        (from_xgboost, "an xgboost.Booster or XGBModel", xgboost.XGBRegressor()),
        (from_catboost, "a catboost.CatBoost", catboost.CatBoostRegressor()),
    ],
)
def test_other_models_are_refused(function, other, unfitted, monkeypatch):
    with pytest.raises(ValueError, match=f"booster must be {other}, got 'forest'"):
        function("forest", TRAIN, Y_TRAIN)
    with pytest.raises(ValueError, match="booster must be fitted"):
        function(unfitted, TRAIN, Y_TRAIN)
    name = function.__name__.removeprefix("from_")
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=f"hdiforest.from_{name} needs {name}: pip install"):
        function("forest", TRAIN, Y_TRAIN)


def test_leaf_ids_that_float32_does_not_hold(monkeypatch):
    leaves = XGBoostLeaves(xgboost_booster())
    ids = np.full((2, 10, 1, 2), 2.0**24, dtype=np.float32)
    monkeypatch.setattr(xgboost.Booster, "predict", lambda *_, **__: ids)
    with pytest.raises(ValueError, match=r"exact below 2\*\*24; this model has the leaf 16777216"):
        leaves(NEW)


def test_an_xgboost_that_does_not_keep_categories(monkeypatch):
    leaves = XGBoostLeaves(xgboost_booster())
    monkeypatch.delattr(xgboost.Booster, "get_categories", raising=False)
    with pytest.raises(ValueError, match=r"columns of categories need xgboost 3\.1 or later"):
        leaves(NEW)


def test_several_targets():
    both = np.column_stack([Y_TRAIN, -Y_TRAIN])
    model = xgboost.XGBRegressor(
        n_estimators=5, n_jobs=1, multi_strategy="multi_output_tree", tree_method="hist"
    ).fit(NUMBERS[:400], both)
    found = from_xgboost(model, NUMBERS[:400], both)
    assert found.predict_interval(NUMBERS[400:]).shape == (100, 2, 2)
