"""Results as tables of pandas, polars and pyarrow: names of columns, indices, every method."""

import pickle
import sys
from functools import cache
from itertools import chain, repeat
from operator import attrgetter

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hdicore
from hdiforest import (
    DistributionDisplay,
    ForestSearchOOB,
    HDIForestRegressor,
    IntervalDisplay,
    LeafModel,
    from_leaves,
)
from hdiforest.allocation import allocate_coverage
from hdiforest.inspection import diagnose, explain
from hdiforest.metrics import make_crps_scorer
from hdiforest.regions import predict_region

from ..oracle import leaf_sizes

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

RNG = np.random.default_rng(3)
X = RNG.normal(size=(250, 3))
Y = X[:, 0] + RNG.normal(size=250)
BOTH = np.column_stack([Y, -Y])
X_NEW = RNG.normal(size=(40, 3))
FOREST = RandomForestRegressor(60, min_samples_leaf=4, random_state=0).fit(X, Y)
OF_BOTH = clone(FOREST).fit(X, BOTH)
SMALL = RandomForestRegressor(40, min_samples_leaf=4, random_state=0)
LEVELS = [0.9, 0.95, 0.999]
KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}


def forest_model(y=Y):
    return HDIForestRegressor.from_forest(FOREST if y is Y else OF_BOTH, X, y)


def leaf_model(y=Y):
    return from_leaves(FOREST.apply, X, y)


MODELS = {
    "forest": forest_model,
    "leaves": leaf_model,
    "calibrated forest": lambda: forest_model().calibrate(coverage=LEVELS[:2]),
    "cross-calibrated forest": lambda: forest_model().calibrate(
        coverage=LEVELS[:2], method="jackknife+"
    ),
    "calibrated leaves": lambda: leaf_model().calibrate(
        X_NEW, X_NEW[:, 0] + 1, coverage=LEVELS[:2]
    ),
}


def calibrated_again(first, second, looks):
    """A model that another thread calibrates when its state has been looked at so many times."""

    class Swapped(HDIForestRegressor):
        def __getattribute__(self, name):
            if name == "_fitted" and self is model:
                vars(self)["_fitted"] = next(turns)
            return super().__getattribute__(name)

    model, turns = None, chain(repeat(first._fitted, looks), repeat(second._fitted))
    model = Swapped()
    vars(model).update(vars(first))
    return model


ASKED = {
    "predict": lambda m: m.predict(X_NEW),
    "intervals": lambda m: m.predict_interval(X_NEW, [0.5, 0.9]),
    "table": lambda m: m.predict_interval(X_NEW, [0.5, 0.9], output="pandas").to_numpy(),
    "bounds": lambda m: m.predict_interval(X_NEW, [0.5, 0.9], kind="lower"),
    "quantiles": lambda m: m.predict_quantiles(X_NEW, [0.1, 0.5]),
    "cdf": lambda m: m.predict_cdf(X_NEW, 0.3),
    "sample": lambda m: m.sample(X_NEW, 3, random_state=0),
    "region": lambda m: np.concatenate([predict_region(m, X_NEW, 0.8).lower]),
    "shares": lambda m: allocate_coverage(m, X_NEW).interval,
    "diagnose": lambda m: diagnose(m, X_NEW)["mass_outside"],
    "explain": lambda m: explain(m, X_NEW[:2], random_state=0).rows["lower_without"],
    "weights": lambda m: m.predict_weights(X_NEW).toarray(),
    "out-of-bag intervals": lambda m: m.oob_.interval(0.9),
    "out-of-bag quantiles": lambda m: m.oob_.quantiles([0.2, 0.7]),
    "out-of-bag cdf": lambda m: m.oob_.cdf(),
    "out-of-bag mean": lambda m: m.oob_prediction_,
    "score": lambda m: make_crps_scorer()(m, X_NEW, X_NEW[:, 0]),
    "picture": lambda m: IntervalDisplay.from_estimator(m, X_NEW, X_NEW[:, 0]).intervals,
    "distribution": lambda m: DistributionDisplay.from_estimator(m, X_NEW).masses,
}


@cache
def calibrated_twice():
    """Of one forest: one of leaves as they grew, the other of pruned trees and other coverages."""
    small, large = (forest_model() for _ in range(2))
    small.calibrate(coverage=[0.5, 0.9])
    with leaf_sizes(15):
        return small, large.calibrate(coverage=[0.5, 0.9])


@pytest.mark.filterwarnings("ignore:targets lie on a lattice")
@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_a_model_that_is_calibrated_meanwhile_is_read_once(ask):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    models = calibrated_twice()
    expected = [ask(model) for model in models]
    for looks in range(7):
        found = ask(calibrated_again(*models, looks))
        pyplot.close("all")
        assert any(np.array_equal(found, own, equal_nan=True) for own in expected)


def test_a_search_is_read_once():
    search = ForestSearchOOB([FOREST], random_state=0).fit(X, Y)
    for ask in ("quantiles", "bounds", "cdf"):
        expected = [ASKED[ask](model) for model in calibrated_twice()]
        for looks in range(7):
            search.best_estimator_ = calibrated_again(*calibrated_twice(), looks)
            assert any(np.array_equal(ASKED[ask](search), own) for own in expected)


@pytest.mark.parametrize("word", ["alpha", "confidence_level", "level"])
@pytest.mark.parametrize("model", [HDIForestRegressor, ForestSearchOOB, LeafModel])
def test_other_words_for_coverage_are_named(model, word):
    called = rf"^{model.__name__}\.predict_interval\(\) got an unexpected keyword argument '{word}'"
    hint = "" if word == "level" else rf"; {word}=0\.[19] is coverage=0\.9 here"
    made = model(FOREST.apply) if model is LeafModel else model()
    with pytest.raises(TypeError, match=f"{called}{hint}$"):
        made.predict_interval(X_NEW, **{word: 0.1})


def test_unknown_arguments_are_those_of_the_class_that_the_caller_has():
    class Ours(HDIForestRegressor):
        pass

    for model, name in ((Ours(), "Ours"), (ForestSearchOOB(), "ForestSearchOOB")):
        for method in ("predict", "predict_interval", "predict_quantiles", "predict_cdf"):
            said = rf"^{name}\.{method}\(\) got an unexpected keyword argument 'rows'$"
            with pytest.raises(TypeError, match=said):
                getattr(model, method)(X_NEW, rows=3)


def test_arguments_of_a_forest_are_those_of_the_estimator():
    said = r"^HDIForestRegressor\(\) got an unexpected .* 'max_depth'; arguments of a forest are"
    with pytest.raises(TypeError, match=said):
        HDIForestRegressor(max_depth=100)
    with pytest.raises(TypeError, match=r"^HDIForestRegressor\.calibrate\(\) got .* coverage=0\.9"):
        HDIForestRegressor().calibrate(alpha=0.1)


def test_one_point_is_that_of_all_rows():
    models = [model_named(name) for name in MODELS]
    several = forest_model(BOTH)
    calibrated = forest_model(BOTH).calibrate(coverage=0.8)
    for model in [*models, several, calibrated, leaf_model(BOTH)]:
        n_outputs = getattr(model, "n_outputs_", 1)
        shape = (40,) if n_outputs == 1 else (40, n_outputs)
        for kind in ("raw", None):
            for point in (0, np.float32(1.5)):
                found = model.predict_cdf(X_NEW, point, kind=kind)
                assert_array_equal(
                    found, model.predict_cdf(X_NEW, np.full(shape, point), kind=kind)
                )
        with pytest.raises(ValueError, match="y must"):
            model.predict_cdf(X_NEW, np.nan)
    assert_array_equal(several.oob_.cdf(0.5), several.oob_.cdf(np.full((250, 2), 0.5)))
    table = pl.DataFrame(X_NEW, ["a", "b", "c"])
    named = HDIForestRegressor.from_forest(FOREST, X, Y)
    assert named.predict_cdf(table.to_numpy(), 1, output="polars").columns == ["cdf"]


@cache
def model_named(name):
    return MODELS[name]()


USUAL = [
    *("prediction", "lower_0.9", "upper_0.9", "lower_0.95", "upper_0.95"),
    *("lower_0.999", "upper_0.999"),
]


def content(table):
    """The names and the numbers of a table."""
    if isinstance(table, pa.Table):
        return table.column_names, np.column_stack([column.to_numpy() for column in table.columns])
    return list(table.columns), table.to_numpy()


# What stands in front of the level in the names of columns, by the place of the end.
ENDS = {
    "calibrated": {"lower": 0, "upper": 1},
    "hdi": {"lower": 0, "upper": 1},
    "raw": {"lower": 0, "upper": 1},
    "equal_tailed": {"equal_tailed_lower": 0, "equal_tailed_upper": 1},
    "lower": {"one_sided_lower": 0},
    "upper": {"one_sided_upper": 1},
}


@pytest.mark.parametrize("kind", [*ENDS, None])
@pytest.mark.parametrize("name", MODELS)
def test_intervals(name, kind):
    model, output = model_named(name), {"hdi": "polars", "lower": "pyarrow"}.get(kind, "pandas")
    calibrated = hasattr(model, "calibration_")
    if kind == "calibrated" and not calibrated:
        with pytest.raises(AttributeError, match="this model has no calibration_"):
            model.predict_interval(X_NEW, kind=kind, output=output)
        return
    if kind in ("lower", "upper") and name == "cross-calibrated forest":
        with pytest.raises(ValueError, match="one-sided bounds are calibrated by method 'oob' or"):
            model.predict_interval(X_NEW, kind=kind, output=output)
        return
    usual = kind or ("calibrated" if calibrated else "hdi")
    levels = LEVELS[:2] if usual == "calibrated" else LEVELS
    asked = {"kind": kind, "coverage": levels}
    table = model.predict_interval(X_NEW, **asked, output=output)
    assert type(table) is KINDS[output]
    columns, values = content(table)
    assert columns == ["prediction", *(f"{end}_{level}" for level in levels for end in ENDS[usual])]
    intervals = model.predict_interval(X_NEW, **asked)
    ends = [ends[:, at] for ends in np.moveaxis(intervals, 2, 0) for at in ENDS[usual].values()]
    assert_array_equal(values, np.column_stack([model.predict(X_NEW), *ends]))
    if kind == "raw":
        assert_array_equal(intervals, model.predict_interval(X_NEW, LEVELS, kind="hdi"))


def test_names_of_intervals():
    model = forest_model()
    assert list(model.predict_interval(X_NEW, LEVELS, output="pandas").columns) == USUAL
    columns = model.predict_interval(X_NEW, 0.5, kind="equal_tailed", output="polars").columns
    assert columns == ["prediction", "equal_tailed_lower_0.5", "equal_tailed_upper_0.5"]
    table = model.predict_interval(X_NEW, [0.5, 1], kind="upper", output="pyarrow")
    assert table.column_names == ["prediction", "one_sided_upper_0.5", "one_sided_upper_1"]


@pytest.mark.parametrize(
    ("levels", "written"),
    [
        (np.float32(0.8), [0.8]),
        ([np.float32(0.95), 0.6], [0.95, 0.6]),
        (np.array([0.7, 0.95], np.float32), [0.7, 0.95]),
        (pd.Series([0.35, 0.7], dtype="float32"), [0.35, 0.7]),
    ],
)
@pytest.mark.parametrize("kind", ["hdi", "quantiles"])
def test_levels_of_fewer_bits_are_those_that_are_written(levels, written, kind):
    model = model_named("forest")

    def ask(levels):
        if kind == "quantiles":
            return model.predict_quantiles(X_NEW, levels, output="pandas")
        return model.predict_interval(X_NEW, levels, kind=kind, output="pandas")

    pd.testing.assert_frame_equal(ask(levels), ask(written), check_exact=True)
    if kind == "hdi":
        calibrated = forest_model().calibrate(coverage=levels)
        assert calibrated.calibration_.coverages == tuple(sorted(written))


@pytest.mark.parametrize("output", KINDS)
@pytest.mark.parametrize("make", [forest_model, leaf_model])
@pytest.mark.parametrize("several", [False, True])
def test_other_predictions(make, output, several):
    model = make(BOTH if several else Y)
    n_outputs = 2 if several else 1
    prefixes = ["y0_", "y1_"] if several else [""]
    points = RNG.normal(size=(40, 2)) if several else RNG.normal(size=40)
    more = np.stack([points, points + 1], axis=-1)
    asked = {
        "predict": ((X_NEW,), ["prediction"]),
        "predict_quantiles": ((X_NEW, LEVELS), [f"quantile_{level}" for level in LEVELS]),
        "predict_cdf": ((X_NEW, points), ["cdf"]),
    }
    if hasattr(model, "sample"):
        asked["sample"] = ((X_NEW, 3, 0), ["sample_0", "sample_1", "sample_2"])
    cases = [(method, *entry) for method, entry in asked.items()]
    cases.append(("predict_quantiles", (X_NEW, 0.5), ["quantile_0.5"]))
    cases.append(("predict_cdf", (X_NEW, more), ["cdf_0", "cdf_1"]))
    for method, arguments, names in cases:
        table = getattr(model, method)(*arguments, output=output)
        assert type(table) is KINDS[output]
        columns, values = content(table)
        assert columns == [prefix + name for prefix in prefixes for name in names]
        arrays = getattr(model, method)(*arguments)
        assert_array_equal(values, arrays.reshape(40, n_outputs * len(names)))


@pytest.mark.parametrize("output", KINDS)
@pytest.mark.parametrize("several", [False, True])
def test_out_of_bag(output, several):
    y = BOTH if several else Y
    model, prefixes = forest_model(y), ["y0_", "y1_"] if several else [""]
    cases = [
        ("oob_.prediction", (), ["prediction"]),
        ("oob_.quantiles", ([0.1, 0.9],), ["quantile_0.1", "quantile_0.9"]),
        ("oob_.cdf", (), ["cdf"]),
        ("oob_.cdf", (np.stack([y, y + 1, y], axis=-1),), ["cdf_0", "cdf_1", "cdf_2"]),
    ]
    for method, arguments, names in cases:
        ask = attrgetter(method)(model)
        columns, values = content(ask(*arguments, output=output))
        assert columns == [prefix + name for prefix in prefixes for name in names]
        assert_array_equal(values, ask(*arguments).reshape(250, -1))
    table = model.oob_.interval([0.5, 0.9], kind="lower", output=output)
    columns, values = content(table)
    names = ["prediction", "one_sided_lower_0.5", "one_sided_lower_0.9"]
    assert columns == [prefix + name for prefix in prefixes for name in names]
    mean, lower = model.oob_.prediction(), model.oob_.interval([0.5, 0.9], kind="lower")
    expected = np.concatenate([mean[..., None], lower[..., 0, :]], axis=-1)
    assert_array_equal(values, expected.reshape(250, -1))


def test_intervals_of_several_targets_have_their_names(tmp_path):
    names = ["height", "weight"]
    model = HDIForestRegressor(SMALL, calibration=False).fit(X, pd.DataFrame(BOTH, columns=names))
    expected = ["height_prediction", "height_lower_0.9", "height_upper_0.9"]
    expected += [name.replace("height", "weight") for name in expected]
    table = model.predict_interval(X_NEW, output="pandas")
    assert list(table.columns) == expected
    assert_array_equal(table["weight_upper_0.9"], model.predict_interval(X_NEW)[:, 1, 1])
    leaves = from_leaves(FOREST.apply, X, pl.DataFrame(BOTH, schema=names))
    assert leaves.predict_interval(X_NEW, output="polars").columns == expected
    assert list(pickle.loads(pickle.dumps(model)).predict(X, output="pandas").columns) == [
        "height_prediction",
        "weight_prediction",
    ]
    model.save(tmp_path / "model.hdi")
    leaves.save(tmp_path / "leaves.hdi")
    for loaded in (
        HDIForestRegressor.load(tmp_path / "model.hdi"),
        LeafModel.load(tmp_path / "leaves.hdi", FOREST.apply),
    ):
        assert list(loaded.predict_interval(X_NEW, output="pandas").columns) == expected
    model.fit(X, BOTH)
    assert model.predict(X_NEW, output="polars").columns == ["y0_prediction", "y1_prediction"]


@pytest.mark.parametrize("steps", [False, True])
def test_targets_of_one_name_are_refused(steps):
    model = HDIForestRegressor(make_pipeline(StandardScaler(), FOREST) if steps else FOREST)
    both = pd.DataFrame(BOTH, columns=["height", "height"])
    with pytest.raises(ValueError, match="distinct names, got 2 columns 'height'"):
        model.fit(X, both)


DATES = RNG.permutation(np.datetime64("2026-01-01", "us") + np.arange(250) * 10**9)
INDICES = {
    "numbers": pd.RangeIndex(250),
    "shuffled": pd.Index(RNG.permutation(250)),
    "texts": pd.Index([f"row {i}" for i in range(250)], name="id"),
    "dates with a zone": pd.DatetimeIndex(DATES, tz="UTC", name="t"),
    "two": pd.MultiIndex.from_product([range(25), list("abcdefghij")], names=["i", None]),
}


@pytest.mark.parametrize("name", INDICES)
def test_the_index_of_pandas_is_kept(name):
    index = INDICES[name]
    frame = pd.DataFrame(X, columns=list("abc"), index=index)
    model = HDIForestRegressor(SMALL, calibration=False).fit(frame, pd.Series(Y, index=index))
    for table in (
        model.predict_interval(frame, output="pandas"),
        model.predict(frame, output="pandas"),
        model.oob_.interval(output="pandas"),
        model.oob_.cdf(output="pandas"),
    ):
        pd.testing.assert_index_equal(table.index, index, exact="equiv")
    of_row = model.oob_.cdf(output="pandas").loc[index[7], "cdf"]
    assert_array_equal(of_row, model.oob_.cdf()[7])
    part = frame.iloc[::-7]
    pd.testing.assert_index_equal(model.predict_interval(part, output="pandas").index, part.index)
    for table in (
        model.predict_interval(pa.table(dict(zip("abc", X.T, strict=True))), output="pandas"),
        pickle.loads(pickle.dumps(model)).oob_.prediction(output="pandas"),
        model.fit(X, Y).oob_.interval(output="pandas"),
    ):
        pd.testing.assert_index_equal(table.index, pd.RangeIndex(250))


def test_no_rows():
    for make in (forest_model, leaf_model):
        model = make()
        empty = X[:0] if make is forest_model else pd.DataFrame(X[:0])
        if make is leaf_model:
            model = from_leaves(lambda rows: np.zeros((len(rows), 3), np.int32), X, Y)
        table = model.predict_interval(empty, LEVELS, output="pandas")
        assert table.shape == (0, 7)
        assert list(table.columns) == USUAL


def test_transformers_around_a_model_give_tables():
    model = HDIForestRegressor(SMALL, calibration=False)
    for whole in (
        make_pipeline(StandardScaler(), model),
        HDIForestRegressor(
            make_pipeline(StandardScaler(), SMALL).set_output(transform="pandas"),
            calibration=False,
        ),
    ):
        with config_context(transform_output="pandas"):
            last = whole.fit(X, Y)[-1] if hasattr(whole, "steps") else whole.fit(X, Y)
            assert isinstance(whole.predict(X_NEW), np.ndarray)
            assert isinstance(last.oob_.interval(), np.ndarray)


def test_a_search_passes_it_on():
    search = ForestSearchOOB([FOREST], coverage=0.8, random_state=0).fit(X, Y)
    found = search.predict_interval(X_NEW, output="polars")
    assert found.columns == ["prediction", "lower_0.8", "upper_0.8"]
    assert search.predict(X_NEW, output="polars").columns == ["prediction"]
    assert search.predict_quantiles(X_NEW, 0.5, output="polars").columns == ["quantile_0.5"]
    assert search.predict_cdf(X_NEW, X_NEW[:, 0], output="polars").columns == ["cdf"]


@pytest.mark.parametrize("make", [forest_model, leaf_model])
def test_refusals_come_before_any_work(make, monkeypatch):
    model = make()
    for engine in (hdicore.Scorer, hdicore.LeafIndex):
        for name in ("mean", "intervals", "quantiles", "cdf"):
            monkeypatch.setattr(engine, name, lambda *_, **__: pytest.fail("rows were scored"))
    with pytest.raises(ValueError, match=r"the output would have two columns 'lower_0.9'"):
        model.predict_interval(X_NEW, [0.9, 0.5, 0.9], output="pandas")
    with pytest.raises(ValueError, match=r"the output would have two columns 'lower_0.3'"):
        model.predict_interval(X_NEW, [0.3, 0.1 + 0.2], output="pandas")
    with pytest.raises(ValueError, match=r"the output would have two columns 'quantile_0.5'"):
        model.predict_quantiles(X_NEW, [0.5, 0.5], output="pandas")
    wrong = "output must be 'numpy', 'pandas', 'polars' or 'pyarrow', got 'frame'"
    for call in (
        lambda: model.predict(X_NEW, output="frame"),
        lambda: model.predict_interval(X_NEW, output="frame"),
        lambda: model.predict_cdf(X_NEW, Y, output="frame"),
    ):
        with pytest.raises(ValueError, match=wrong):
            call()
    monkeypatch.setitem(sys.modules, "polars", None)
    for call in (
        lambda: model.predict_interval(X_NEW, output="polars"),
        lambda: model.predict_quantiles(X_NEW, 0.5, output="polars"),
    ):
        with pytest.raises(ImportError, match="output='polars' needs polars: pip install polars"):
            call()


@pytest.mark.parametrize("make", [forest_model, leaf_model])
@pytest.mark.parametrize("output", ["pandas", "numpy"])
def test_levels_and_kinds_are_refused_alike(make, output):
    model = make()
    for coverage in ("abc", [], [[0.9]], 1.5, [0.5, np.nan], None):
        with pytest.raises(ValueError, match="coverage must"):
            model.predict_interval(X_NEW, coverage, output=output)
    with pytest.raises(ValueError, match=r"kind must be one word, .* got \['hdi', 'lower'\]"):
        model.predict_interval(X[:4], [0.5, 0.9], kind=["hdi", "lower"], output=output)
    with pytest.raises(ValueError, match=r"kind must be .*'upper'.* got 'best'"):
        model.predict_interval(X_NEW, kind="best", output=output)
    with pytest.raises(ValueError, match="quantiles must be"):
        model.predict_quantiles(X_NEW, ["abc"], output=output)


def test_two_targets_of_one_name():
    y = pd.DataFrame(BOTH, columns=["y", "y"])
    model = from_leaves(FOREST.apply, X, y)
    with pytest.raises(ValueError, match="the output would have two columns 'y_prediction'"):
        model.predict(X_NEW, output="pandas")
