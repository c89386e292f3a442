"""Forests in pipelines, searches and target transforms: as if all was done by hand."""

import pickle
import sys
from typing import ClassVar
from zipfile import ZIP_DEFLATED

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    cross_val_score,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.tree import DecisionTreeRegressor

from hdiforest import ForestSearchOOB, HDIForestRegressor
from hdiforest.calibration import CVPlus
from hdiforest.inspection import preprocessing_steps
from hdiforest.serving import BatchScorer

from ..model_files import arrays_of, rewritten, with_facts, with_number, with_text
from ..oracle import blocks_of

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

pytest.importorskip("safetensors.numpy")
skops_io = pytest.importorskip("skops.io")

pytestmark = pytest.mark.filterwarnings("ignore:.*training rows have no out-of-bag")

RNG = np.random.default_rng(3)
N, M = 240, 60


def table(n):
    return pd.DataFrame(
        {
            "city": RNG.choice(["Paris", "Rome", "Oslo", None], n),
            "kind": RNG.choice(["a", "b"], n),
            "size": np.where(RNG.random(n) < 0.1, np.nan, RNG.random(n)),
            "age": RNG.integers(0, 50, n),
        }
    )


X, X_NEW = table(N), table(M)
Y = np.exp(X["age"].to_numpy() / 25 + (X["city"] == "Rome") + 0.3 * RNG.normal(size=N))


def encoder(one_hot=OneHotEncoder):
    return make_column_transformer(
        (one_hot(handle_unknown="ignore"), ["city"]),
        (OrdinalEncoder(), ["kind"]),
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["size"]),
        remainder="passthrough",
    )


def forest(n=10, **options):
    return RandomForestRegressor(n, min_samples_leaf=3, random_state=0, **options)


def pipeline(**options):
    return Pipeline([("table", encoder()), ("forest", forest(**options))])


def by_hand(fitted, **options):
    """The model of the forest alone, and the rows to score as the steps make them."""
    made, new = (
        rows.toarray() if issparse(rows := fitted[:-1].transform(each)) else rows
        for each in (X, X_NEW)
    )
    return HDIForestRegressor.from_forest(fitted[-1], made, Y, **options), new


def check_equal(model, hand, raw, made):
    for found, expected in (
        (model.predict(raw), hand.predict(made)),
        (model.predict_interval(raw, [0.5, 0.9]), hand.predict_interval(made, [0.5, 0.9])),
        (model.predict_quantiles(raw, [0.1, 0.7]), hand.predict_quantiles(made, [0.1, 0.7])),
        (model.predict_cdf(raw, Y[:M]), hand.predict_cdf(made, Y[:M])),
        (model.sample(raw, 3, random_state=0), hand.sample(made, 3, random_state=0)),
        (model.predict_weights(raw).toarray(), hand.predict_weights(made).toarray()),
        (model.oob_.interval(), hand.oob_.interval()),
    ):
        assert_array_equal(found, expected)


@pytest.mark.parametrize("block_cells", [2**22, 200])
def test_a_fitted_pipeline_reads_the_table(block_cells):
    fitted = pipeline().fit(X, Y)
    model = HDIForestRegressor.from_forest(fitted, X, Y)
    hand, made = by_hand(fitted)
    with blocks_of(block_cells):
        check_equal(model, hand, X_NEW, made)
    assert_array_equal(model.feature_names_in_, X.columns)
    assert model.n_features_in_ == 4
    assert model.scorer_.forest.n_features == 8
    assert list(preprocessing_steps(model).named_steps) == ["table"]
    assert model.estimator_ is fitted
    assert model.predict_interval(X_NEW[:0]).shape == (0, 2)


def test_the_whole_pipeline_is_fitted():
    model = HDIForestRegressor(pipeline(), calibration=False).fit(X, Y)
    fitted = pipeline().fit(X, Y)
    hand, made = by_hand(fitted)
    check_equal(model, hand, X_NEW, made)
    assert [name for name, _ in model.estimator_.steps] == ["table", "forest"]
    assert_array_equal(model.estimator_.predict(X_NEW), fitted.predict(X_NEW))


@pytest.mark.parametrize("calibration", ["oob", "split", "jackknife+"])
def test_calibrated_as_by_hand(calibration):
    fitted = pipeline(n=60).fit(X, Y)
    model = HDIForestRegressor.from_forest(fitted, X, Y)
    hand, made = by_hand(fitted)
    y_new = np.resize(Y, M)
    options = {"method": calibration}
    split = calibration == "split"
    model.calibrate(coverage=0.8, **options, **{"X": X_NEW, "y": y_new} if split else {})
    hand.calibrate(coverage=0.8, **options, **{"X": made, "y": y_new} if split else {})
    expected = hand.predict_interval(made, 0.8)
    with blocks_of(200):
        assert_array_equal(model.predict_interval(X_NEW, 0.8), expected)


class Counted(TransformerMixin, BaseEstimator):
    """Tells how many rows each of its fits had."""

    rows: ClassVar[list] = []

    def fit(self, X, y=None):
        self.rows.append(len(X))
        return self

    def transform(self, X):
        return X


def test_cross_validation_fits_all_steps_in_each_fold():
    steps = make_column_transformer((TargetEncoder(), ["city"]), ("passthrough", ["age"]))
    model = HDIForestRegressor(
        make_pipeline(Counted(), steps, forest()), weights="inbag", calibration=False
    ).fit(X, Y)
    Counted.rows.clear()
    model.calibrate(coverage=0.8, method=CVPlus(3), random_state=0)
    assert Counted.rows == [2 * N // 3] * 3
    found = model.predict_interval(X_NEW, 0.8)
    assert ((found[:, 1] - found[:, 0]) > 0).all()
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_interval(X_NEW, 0.8), found)
    with pytest.raises(ValueError, match="calibrate before pickling"):
        again.calibrate(coverage=0.8, method="cv+")
    assert model.calibrate(X_NEW, np.resize(Y, M), coverage=0.8).calibration_.method == "split"


SEARCHES = {
    "grid": lambda inner, grid: GridSearchCV(inner, grid, cv=2),
    "halving": lambda inner, grid: HalvingGridSearchCV(inner, grid, cv=2, random_state=0),
}


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_search_of_pipelines(kind):
    search = SEARCHES[kind](pipeline(n=5), {"forest__min_samples_leaf": [2, 9]})
    search.fit(X, Y)
    hand, made = by_hand(search.best_estimator_)
    model = HDIForestRegressor.from_forest(search, X, Y)
    check_equal(model, hand, X_NEW, made)
    fitted = HDIForestRegressor(clone(search), calibration=False).fit(X, Y)
    check_equal(fitted, hand, X_NEW, made)
    assert [name for name, _ in fitted.estimator_.estimator.steps] == ["table", "forest"]
    assert [name for name, _ in fitted.estimator_.best_estimator_.steps] == ["table", "forest"]


def test_searches_over_the_model():
    model = HDIForestRegressor(pipeline(n=5), calibration=False)
    search = GridSearchCV(model, {"estimator__forest__min_samples_leaf": [1, 20]}, cv=2).fit(X, Y)
    assert search.best_estimator_.predict_interval(X_NEW).shape == (M, 2)
    assert np.isfinite(cross_val_score(model, X, Y, cv=2)).all()
    model.set_params(estimator__forest__min_samples_leaf=7)
    assert clone(model).get_params()["estimator__forest__min_samples_leaf"] == 7


@pytest.mark.parametrize("frozen", [False, True])
def test_transformed_targets_stay_in_their_unit(frozen):
    inner = forest()
    numbers, numbers_new = X[["age"]], X_NEW[["age"]]
    whole = TransformedTargetRegressor(inner, func=np.log, inverse_func=np.exp)
    whole.fit(numbers, Y)
    given = FrozenEstimator(whole) if frozen else whole
    model = HDIForestRegressor(given, calibration=False).fit(numbers, Y)
    # The same trees, and the same rows in their leaves, with other targets.
    logs = HDIForestRegressor.from_forest(whole.regressor_, numbers, np.log(Y))
    for level in (0.1, 0.5, 0.9):
        quantile = np.exp(logs.predict_quantiles(numbers_new, level))
        np.testing.assert_allclose(model.predict_quantiles(numbers_new, level), quantile)
    weights = model.predict_weights(numbers_new).toarray()
    np.testing.assert_allclose(model.predict(numbers_new), weights @ Y, rtol=1e-6)
    ends = model.predict_interval(numbers_new, 0.8)
    through_logs = np.exp(logs.predict_interval(numbers_new, 0.8))
    assert (np.diff(ends) <= np.diff(through_logs) * (1 + 1e-12)).all()
    assert not np.array_equal(ends, through_logs)


@pytest.mark.parametrize(
    "nested",
    [
        lambda: TransformedTargetRegressor(pipeline(), func=np.log, inverse_func=np.exp),
        lambda: make_pipeline(
            encoder(), TransformedTargetRegressor(forest(), func=np.log, inverse_func=np.exp)
        ),
        lambda: make_pipeline(encoder(), GridSearchCV(forest(), {"max_depth": [3]}, cv=2)),
        lambda: GridSearchCV(
            TransformedTargetRegressor(pipeline(), transformer=StandardScaler()),
            {"regressor__forest__max_depth": [2, 4]},
            cv=2,
        ),
        lambda: make_pipeline(encoder(), make_pipeline(StandardScaler(), forest())),
    ],
)
def test_nested_in_any_order(nested):
    given = nested().fit(X, Y)
    model = HDIForestRegressor.from_forest(given, X, Y)
    fitted = HDIForestRegressor(nested(), calibration=False).fit(X, Y)
    frozen = HDIForestRegressor(FrozenEstimator(FrozenEstimator(given)), calibration=False).fit(
        X, Y
    )
    for each in (fitted, frozen):
        assert_array_equal(model.predict_interval(X_NEW), each.predict_interval(X_NEW))
        assert_array_equal(model.oob_.prediction(), each.oob_.prediction())


def test_a_frozen_pipeline_within_a_pipeline():
    scaled = X[["age"]] * 2
    inner = make_pipeline(StandardScaler(), forest()).fit(scaled, Y)
    outer = make_pipeline(FunctionTransformer(lambda rows: rows * 2), FrozenEstimator(inner))
    model = HDIForestRegressor(outer, calibration=False).fit(X[["age"]], Y)
    expected = HDIForestRegressor.from_forest(inner, scaled, Y)
    assert_array_equal(
        model.predict_interval(X_NEW[["age"]]), expected.predict_interval(X_NEW[["age"]] * 2)
    )


@pytest.mark.parametrize("routing", [False, True])
def test_sample_weight_goes_to_the_forest(routing):
    weight = RNG.integers(1, 4, N).astype(float)
    steps = make_column_transformer((OneHotEncoder(), ["city"]), remainder="drop")
    given = Pipeline([("table", steps), ("forest", forest())])
    fitted = clone(given).fit(X, Y, forest__sample_weight=weight)
    hand, made = by_hand(fitted, sample_weight=weight)
    imported = HDIForestRegressor.from_forest(fitted, X, Y, sample_weight=weight)
    check_equal(imported, hand, X_NEW, made)
    with sklearn.config_context(enable_metadata_routing=routing):
        if routing:
            given.steps[-1][1].set_fit_request(sample_weight=True)
        model = HDIForestRegressor(given, calibration=False).fit(X, Y, sample_weight=weight)
        check_equal(model, hand, X_NEW, made)


class NoisyMeans(TransformerMixin, BaseEstimator):
    """Encodes training rows otherwise at its fit than later, like TargetEncoder."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        self.means_ = {kind: y[X["kind"] == kind].mean() for kind in ("a", "b")}
        return self

    def transform(self, X):
        return X["kind"].map(self.means_).to_numpy(float)[:, None]

    def fit_transform(self, X, y):
        made = self.fit(X, y).transform(X)
        return made + np.random.RandomState(self.random_state).normal(size=made.shape)


def training_rows(model, tmp_path):
    model.save(tmp_path / "model")
    return arrays_of(tmp_path / "model")["training.X"]


def test_steps_that_make_other_rows_at_their_fit(tmp_path):
    model = HDIForestRegressor(make_pipeline(NoisyMeans(), forest()), calibration=False).fit(X, Y)
    made = preprocessing_steps(model).transform(X)
    assert not np.array_equal(training_rows(model, tmp_path), made.astype(np.float32))
    model = HDIForestRegressor.from_forest(make_pipeline(NoisyMeans(0), forest()).fit(X, Y), X, Y)
    expected = NoisyMeans(0).fit_transform(X, Y)
    assert_array_equal(training_rows(model, tmp_path), expected.astype(np.float32))
    for at_random in (NoisyMeans(), make_column_transformer((TargetEncoder(), ["city", "kind"]))):
        fitted = make_pipeline(at_random, forest()).fit(X, Y)
        refused(fitted, "drew at random.* give them a random_state, or fit the whole by HDIForest")


def test_tables_of_other_libraries():
    pa = pytest.importorskip("pyarrow")
    raw, new = pl.from_pandas(X), pl.from_pandas(X_NEW)
    fitted = pipeline().fit(raw, Y)
    model = HDIForestRegressor.from_forest(fitted, raw, Y)
    expected = HDIForestRegressor.from_forest(fitted[-1], fitted[:-1].transform(raw), Y)
    made = fitted[:-1].transform(new)
    arrow = pa.Table.from_pandas(X_NEW)
    for same in (new, X_NEW, arrow, arrow.to_reader(), arrow.to_pydict()):
        assert_array_equal(model.predict_interval(same), expected.predict_interval(made))
    assert_array_equal(
        HDIForestRegressor(pipeline(), calibration=False).fit(raw, Y).predict(new),
        model.predict(new),
    )


def held(cells, kind):
    """A column of text, with missing cells as `kind` has them."""
    if kind in ("None", "NaN", "NA"):
        missing = {"None": None, "NaN": np.nan, "NA": pd.NA}[kind]
        texts = [missing if cell is None else cell for cell in cells]
        return pd.DataFrame({"t": pd.Series(texts, dtype=object)})
    if kind in ("str", "string", "category"):
        return pd.DataFrame({"t": pd.Series(cells, dtype=object).astype(kind)})
    if kind == "polars":
        return pl.DataFrame({"t": cells})
    pa = pytest.importorskip("pyarrow")
    return pa.table({"t": cells}) if kind == "arrow" else {"t": cells}


ENCODERS = {
    "ordinal": OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    "one hot": OneHotEncoder(handle_unknown="ignore"),
    "imputed": make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
    "targets": TargetEncoder(),
}


@pytest.mark.parametrize("steps", ENCODERS)
@pytest.mark.parametrize(
    ("kind", "with_missing"),
    [(kind, True) for kind in ("None", "NaN", "category", "polars")] + [("None", False)],
)
def test_missing_text_of_all_kinds_is_the_same(kind, steps, with_missing, tmp_path):
    """In tables of all libraries, to the model in memory and to its file."""
    rng = np.random.default_rng(0)
    cells = rng.choice(["a", "b", "c"], 200).tolist()
    y = rng.normal(size=200) + 5 * (np.array(cells) == "a")
    if with_missing:
        cells = [cell if cell != "b" or i % 2 else None for i, cell in enumerate(cells)]
        y += np.where(np.equal(cells, None), -50, 0)
    encoder = make_column_transformer((clone(ENCODERS[steps]), ["t"]))
    model = HDIForestRegressor(make_pipeline(encoder, forest(n=10)), calibration=False)
    model.fit(held(cells, kind), y)
    model.save(tmp_path / "model.hdi")
    loaded = HDIForestRegressor.load(tmp_path / "model.hdi")
    new = [None, "a", "b", "c"]
    if steps == "imputed" and kind == "polars":  # SimpleImputer takes None for a value
        assert_array_equal(loaded.predict(held(new[1:], kind)), model.predict(held(new[1:], kind)))
        return
    expected = loaded.predict(held(new, "arrow"))
    assert not with_missing or steps == "imputed" or expected[0] < -20 < expected[1:].min()
    for other in ("None", "NaN", "NA", "str", "string", "category", "polars", "arrow", "dict"):
        for each in (model, loaded):
            assert_array_equal(each.predict(held(new, other)), expected, err_msg=other)
            assert_array_equal(each.predict(held(new[1:], other)), expected[1:], err_msg=other)


def test_text_that_misses_none_and_nan_stays_as_it_is(tmp_path):
    """Steps that were fitted on both tell them apart."""
    table = held(["a", "b", None, "a", "b", "c"] * 20, "None")
    table.loc[::12, "t"] = np.nan
    made = make_column_transformer((OrdinalEncoder(), ["t"])).fit_transform(table)
    model = HDIForestRegressor(
        make_pipeline(make_column_transformer((OrdinalEncoder(), ["t"])), forest(n=10)),
        calibration=False,
    ).fit(table, Y[:120])
    assert len(np.unique(made[~np.isnan(made)])) == 4
    assert_array_equal(training_rows(model, tmp_path), made.astype(np.float32))


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler()])
def test_numbers_that_only_scaling_brings_into_float32(scaler, tmp_path):
    """A model in memory and its file take the same ones."""
    numbers = pd.DataFrame({"x": 1e39 * np.arange(100.0) + 1e38})
    model = HDIForestRegressor(make_pipeline(scaler, forest(n=10)), calibration=False).fit(
        numbers, Y[:100]
    )
    model.save(tmp_path / "model.hdi")
    loaded = HDIForestRegressor.load(tmp_path / "model.hdi")
    assert_array_equal(loaded.predict(numbers), model.predict(numbers))
    for refused in (1e300, -1e300, np.inf):
        for each in (model, loaded):
            with pytest.raises(ValueError, match="infinity"):
                each.predict(pd.DataFrame({"x": [1.0, refused]}))


@pytest.mark.parametrize("kind", ["str", "category", "polars", "pyarrow"])
@pytest.mark.parametrize("frozen", [False, True])
def test_a_column_of_text_as_rows(kind, frozen):
    from sklearn.feature_extraction.text import CountVectorizer

    pa = pytest.importorskip("pyarrow")
    texts = (X["city"].fillna("none") + " " + X["kind"] + "x").to_numpy(object)
    makers = {"polars": pl.Series, "pyarrow": pa.array}

    def column(kind, cells):
        return makers[kind](cells) if kind in makers else pd.Series(cells, dtype=kind)

    def unfitted():
        return make_pipeline(CountVectorizer(), forest())

    rows = column(kind, texts)
    expected = HDIForestRegressor(unfitted(), calibration=False).fit(texts.tolist(), Y)
    if frozen and kind != "pyarrow":  # whose cells CountVectorizer itself does not read
        model = HDIForestRegressor.from_forest(unfitted().fit(rows, Y), rows, Y)
    else:
        model = HDIForestRegressor(unfitted(), calibration=False).fit(rows, Y)
    for each in ("str", "polars", "pyarrow"):
        new = column(each, texts[:9])
        assert_array_equal(model.predict_interval(new), expected.predict_interval(texts[:9]))
        assert_array_equal(expected.predict_interval(new), expected.predict_interval(texts[:9]))


def test_nullable_booleans_of_pandas_are_those_of_arrow():
    pa = pytest.importorskip("pyarrow")
    X_flag, new = (
        rows[["age"]].assign(flag=pd.Series(np.resize([True, None, False, True], len(rows))))
        for rows in (X, X_NEW)
    )
    X_flag, new = (rows.astype({"flag": "boolean"}) for rows in (X_flag, new))
    steps = make_column_transformer((OneHotEncoder(), ["flag"]), remainder="passthrough")
    model = HDIForestRegressor(make_pipeline(steps, forest()), calibration=False).fit(X_flag, Y)
    for table in (pa.Table.from_pandas(new), pa.table(new.to_dict("list"))):
        assert_array_equal(model.predict(table), model.predict(new))


@pytest.mark.parametrize("index", [["size"], ["kind", "age"]])
def test_tables_of_arrow_with_an_index_of_pandas(index, tmp_path):
    pa = pytest.importorskip("pyarrow")
    table, new = (pa.Table.from_pandas(rows.set_index(index)) for rows in (X, X_NEW))
    model = HDIForestRegressor(pipeline(), calibration=False).fit(table, Y)
    assert set(model.feature_names_in_) == set(X.columns)
    model.save(tmp_path / "steps.hdi")
    scored = BatchScorer(tmp_path / "steps.hdi")(new)
    expected = model.predict(X_NEW[list(model.feature_names_in_)])
    assert_array_equal(scored["prediction"], expected)
    before = HDIForestRegressor.from_forest(pipeline().fit(X, Y), X, Y)
    assert_array_equal(before.predict_interval(new), before.predict_interval(X_NEW))


def test_stored_by_skops():
    model = HDIForestRegressor(pipeline(n=5), calibration=False).fit(X, Y)
    stored = skops_io.dumps(model)
    again = skops_io.loads(stored, trusted=skops_io.get_untrusted_types(data=stored))
    assert_array_equal(again.predict_interval(X_NEW), model.predict_interval(X_NEW))
    assert_array_equal(again.feature_names_in_, X.columns)
    assert_array_equal(again.oob_.interval(), model.oob_.interval())


def test_searches_out_of_bag_take_pipelines():
    candidates = [pipeline(n=60), make_pipeline(encoder(), ExtraTreesRegressor(60, bootstrap=True))]
    search = ForestSearchOOB(candidates, random_state=0).fit(X, Y)
    assert search.predict_interval(X_NEW).shape == (M, 2)
    of_polars = ForestSearchOOB(candidates[:1], random_state=0).fit(pl.from_pandas(X), Y)
    assert of_polars.best_estimator_.feature_names_in_.tolist() == list(X.columns)
    seeds = {each[-1].random_state for each in search.results_["forest"]}
    assert 0 in seeds
    assert None not in seeds
    no_bags = make_pipeline(encoder(), ExtraTreesRegressor())
    with pytest.raises(ValueError, match=r"forests\[0\] must have bootstrap=True"):
        ForestSearchOOB([no_bags]).fit(X, Y)
    with pytest.raises(ValueError, match=r"forests\[0\] must be a RandomForestRegressor"):
        ForestSearchOOB([make_pipeline(encoder(), Ridge())]).fit(X, Y)


@pytest.mark.peers
@pytest.mark.parametrize("name", ["RandomForestQuantileRegressor", "ExtraTreesQuantileRegressor"])
def test_subclasses_of_other_libraries(name):
    kind = getattr(pytest.importorskip("quantile_forest"), name)
    numbers, new = X[["age"]].to_numpy(float), X_NEW[["age"]].to_numpy(float)
    given = kind(20, min_samples_leaf=3, bootstrap=True, random_state=0)
    model = HDIForestRegressor.from_forest(given.fit(numbers, Y), numbers, Y)
    plain = HDIForestRegressor(
        (RandomForestRegressor if name.startswith("Random") else ExtraTreesRegressor)(
            20, min_samples_leaf=3, bootstrap=True, random_state=0, max_features=given.max_features
        ),
        calibration=False,
    ).fit(numbers, Y)
    assert_array_equal(model.predict_interval(new), plain.predict_interval(new))
    fitted = HDIForestRegressor(make_pipeline(encoder(), clone(given)), calibration=False).fit(X, Y)
    assert fitted.predict_interval(X_NEW).shape == (M, 2)


class ForestOfResiduals(RandomForestRegressor):
    def fit(self, X, y, sample_weight=None):
        self.line_ = Ridge().fit(X, y)
        return super().fit(X, y - self.line_.predict(X), sample_weight)


def test_a_subclass_whose_trees_mean_something_else():
    numbers = X[["age"]]
    with pytest.raises(ValueError, match="ForestOfResiduals is not scikit-learn's own") as refusal:
        HDIForestRegressor.from_forest(ForestOfResiduals(5).fit(numbers, Y), numbers, Y)
    assert "y is not the target" in str(refusal.value)
    assert "hdiforest.from_leaves" in str(refusal.value)


class RowDropper(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X[: len(X) // 2]


def refused(estimator, match, error=ValueError, X=X, y=Y):
    with pytest.raises(error, match=match):
        HDIForestRegressor.from_forest(estimator, X, y)


def test_refused():
    fitted = pipeline(n=5).fit(X, Y)
    refused(fitted, "X has 239 rows, but the forest was fitted on 240", X=X[1:], y=Y[1:])
    refused(fitted, "y is not the target this forest was fitted on", y=Y[::-1])
    refused(fitted, "are not the rows this forest was fitted on", X=X[::-1])
    refused(fitted, "inconsistent numbers of samples", y=Y[1:])
    refused(fitted, "the target y is None", y=None)
    refused(pipeline(), "not fitted", NotFittedError)
    refused(make_pipeline(encoder(), Ridge()).fit(X, Y), "got Ridge; .*hdiforest.from_leaves")
    search = GridSearchCV(pipeline(n=2), {}, cv=2, refit=False).fit(X, Y)
    refused(search, "GridSearchCV has no best_estimator_, because of refit=False; use refit=True")
    refused(GridSearchCV(pipeline(n=2), {}), "not fitted", NotFittedError)
    refused(TransformedTargetRegressor(forest()), "not fitted", NotFittedError)
    bagged = BaggingRegressor(make_pipeline(StandardScaler(), DecisionTreeRegressor()), 2)
    refused(bagged.fit(X[["age"]], Y), "BaggingRegressor of pipelines", X=X[["age"]])
    dropped = make_pipeline(StandardScaler(), RowDropper(), forest(2))
    dropped.steps[1] = ("dropper", "passthrough")
    dropped.fit(X[["age"]], Y).steps[1] = ("dropper", RowDropper())
    refused(dropped, "made 120 rows of 240; steps that add rows or leave some out", X=X[["age"]])


def test_refused_before_the_fit(monkeypatch):
    monkeypatch.setattr(Pipeline, "fit", None)
    for bad in (make_pipeline(encoder(), Ridge()), TransformedTargetRegressor()):
        with pytest.raises(ValueError, match="estimator must be a fitted RandomForestRegressor"):
            HDIForestRegressor(bad, calibration=False).fit(X, Y)
    bagging = BaggingRegressor(make_pipeline(encoder(), DecisionTreeRegressor()))
    with pytest.raises(ValueError, match="BaggingRegressor of pipelines, each with steps of its o"):
        HDIForestRegressor(bagging, calibration=False).fit(X, Y)


def test_bagged_trees_after_steps():
    fitted = make_pipeline(encoder(), BaggingRegressor(DecisionTreeRegressor(), random_state=0))
    model = HDIForestRegressor(fitted, calibration=False).fit(X, Y)
    hand, made = by_hand(clone(fitted).fit(X, Y))
    check_equal(model, hand, X_NEW, made)


def test_other_tables_are_refused_by_the_steps():
    model = HDIForestRegressor.from_forest(pipeline().fit(X, Y), X, Y)
    with pytest.raises(ValueError, match=r"columns are missing: \{'age'\}"):
        model.predict_interval(X_NEW.drop(columns="age"))
    with pytest.raises(ValueError, match="unknown categories"):
        model.predict_interval(X_NEW.assign(kind="c"))
    with pytest.raises(ValueError, match="y must have 60 rows, as many as X, got shape"):
        model.predict_cdf(X_NEW, Y)
    with pytest.raises(ValueError, match="cannot be read as a table"):
        model.predict({"age": [1], "size": [1, 2]})


def test_sparse_rows_beyond_a_bound():
    """Of 16 GB as dense rows, which few cells of each make."""
    fitted = make_pipeline("passthrough", forest(2)).fit(X[["age"]], Y)
    many = FunctionTransformer(lambda rows: csr_array((len(rows), 2**24)))
    fitted.steps[0] = ("many", many.fit(X[["age"]]))
    refused(fitted, "240 sparse rows of 16777216 columns.*make fewer columns", X=X[["age"]])


def test_a_refit_without_steps_forgets_them():
    model = HDIForestRegressor(pipeline(), calibration=False).fit(X, Y)
    model.set_params(estimator=forest()).fit(X[["age"]], Y)
    assert preprocessing_steps(model) is None
    assert model.predict(X_NEW[["age"]]).shape == (M,)


def saved_and_loaded(model, tmp_path):
    model.save(tmp_path / "model")
    return HDIForestRegressor.load(tmp_path / "model")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_model_file_holds_the_steps(library, tmp_path):
    steps = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["city"]),
        (OrdinalEncoder(), ["kind", "city"]),
        (TargetEncoder(), ["city"]),
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["size"]),
        (RobustScaler(), [3]),
        ("drop", ["kind"]),
        remainder="passthrough",
    )
    raw, new = (pl.from_pandas(each) if library == "polars" else each for each in (X, X_NEW))
    squares = FunctionTransformer(np.square)
    model = HDIForestRegressor(make_pipeline(steps, squares, forest(n=60)), calibration=False)
    model.fit(raw, Y).calibrate(coverage=0.9)
    expected, outside = model.predict_interval(new), model.oob_.prediction()
    for given in (model, pickle.loads(pickle.dumps(model))):
        loaded = saved_and_loaded(given, tmp_path)
        assert_array_equal(loaded.feature_names_in_, X.columns)
        assert loaded.n_features_in_ == 4
        assert [name for name, _ in preprocessing_steps(loaded).steps][1] == "functiontransformer"
        again = saved_and_loaded(loaded, tmp_path)
        for each in (loaded, pickle.loads(pickle.dumps(loaded)), again):
            assert_array_equal(each.predict_interval(new), expected)
            assert_array_equal(each.oob_.prediction(), outside)
    with pytest.raises(ValueError, match="unknown categories"):
        loaded.predict(X_NEW.assign(kind="c"))


def test_a_model_file_holds_the_steps_of_folds(tmp_path):
    steps = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["age"]), ("passthrough", ["age"])
    )
    model = HDIForestRegressor(make_pipeline(steps, forest()), calibration=False).fit(X, Y)
    model.calibrate(coverage=0.8, method=CVPlus(3), random_state=0)
    loaded = saved_and_loaded(model, tmp_path)
    assert_array_equal(loaded.predict_interval(X_NEW, 0.8), model.predict_interval(X_NEW, 0.8))
    scorer = BatchScorer(tmp_path / "model", 0.8)
    found = scorer(X_NEW)[["lower_0.8", "upper_0.8"]]
    assert_array_equal(found, model.predict_interval(X_NEW, 0.8))


class Halves(TransformerMixin, BaseEstimator):
    """A step of one's own."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.asarray(X) / 2


def test_steps_of_types_that_are_not_trusted_are_refused(tmp_path):
    model = HDIForestRegressor(
        make_pipeline(StandardScaler(), Halves(), forest(n=5)), calibration=False
    )
    model.fit(X[["age"]], Y).save(tmp_path / "model")
    own = f"{__name__}.Halves"
    message = (
        rf"model is not a valid model: it holds objects of types that are not trusted: {own}; if "
        rf"you know them, open it by HDIForestRegressor.load\(path, trusted=\['{own}'\]\)"
    )
    for ask in (HDIForestRegressor.load, BatchScorer):
        with pytest.raises(ValueError, match=message):
            ask(tmp_path / "model")
    for trusted in ([own], [Halves]):
        loaded = HDIForestRegressor.load(tmp_path / "model", trusted=trusted)
        assert_array_equal(loaded.predict(X_NEW[["age"]]), model.predict(X_NEW[["age"]]))
    scorer = BatchScorer(tmp_path / "model", 0.8, trusted=[Halves])
    found = pickle.loads(pickle.dumps(scorer))(X_NEW[["age"]])["prediction"]
    assert_array_equal(found, model.predict(X_NEW[["age"]]))


@pytest.mark.parametrize("trusted", [True, None, "sklearn.pipeline.Pipeline", [3]])
def test_trusted_types_are_a_list(trusted, tmp_path):
    with pytest.raises(ValueError, match="trusted must be a list of names or types, got "):
        HDIForestRegressor.load(tmp_path / "model", trusted=trusted)


def test_steps_that_skops_cannot_store(tmp_path):
    halves = FunctionTransformer(lambda x: x / 2)
    model = HDIForestRegressor(make_pipeline(halves, forest(n=5)), calibration=False).fit(
        X[["age"]], Y
    )
    with pytest.raises(ValueError, match="skops cannot store steps, fitted with the model"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_steps_on_rows_without_names(tmp_path):
    numbers, new = X[["age"]].to_numpy(), X_NEW[["age"]].to_numpy()
    model = HDIForestRegressor(make_pipeline(StandardScaler(), forest()), calibration=False).fit(
        numbers, Y
    )
    loaded = saved_and_loaded(model, tmp_path)
    assert_array_equal(loaded.predict(new), model.predict(new))
    assert not hasattr(loaded, "feature_names_in_")
    with pytest.raises(ValueError, match="were fitted on rows without names"):
        BatchScorer(tmp_path / "model")({"age": [3]})


@pytest.mark.parametrize("missing", ["skops", "safetensors"])
def test_what_is_not_installed_is_named(missing, monkeypatch, tmp_path):
    model = HDIForestRegressor(make_pipeline(StandardScaler(), forest()), calibration=False).fit(
        X[["age"]], Y
    )
    model.save(tmp_path / "model")
    for name in (missing, f"{missing}.io", f"{missing}.numpy"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf"{missing}: pip install 'hdicore\[io\]'"):
        model.save(tmp_path / "again")
    if missing == "skops":
        with pytest.raises(ImportError, match=r"steps of .* needs skops: pip install"):
            HDIForestRegressor.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda arrays: arrays.pop("steps"),
            "it has the object 'steps', which",
        ),
        (
            lambda arrays: arrays.pop("objects"),
            "the object steps is missing",
        ),
        (
            with_facts("steps", lambda facts: facts.update(library="os")),
            "library must be null, 'pandas' or 'polars', got 'os'",
        ),
        (with_facts("steps", lambda facts: facts.update(more=1)), "steps must have the entries"),
        (with_facts("steps", lambda facts: facts.update(texts=3)), "its facts are not"),
        (with_number("n_features", 9), r"feature_range must be float32 of shape \(2, 9\)"),
        (with_text("encoder", '{"columns": [], "ids": []}'), "it has the tensor 'encoder', which"),
        (
            lambda arrays: arrays.update(objects=np.zeros(9, np.uint8)),
            "its objects are not what skops stores: BadZipFile",
        ),
        (
            lambda arrays: arrays.update(objects=np.zeros(9, np.float32)),
            r"objects must be uint8 of shape \(any\), got float32",
        ),
        (
            lambda arrays: arrays.update(objects=blob({"steps": 3})),
            "the steps before the forest must be a Pipeline",
        ),
        (lambda arrays: arrays.update(objects=blob([3])), "objects are not those of a mode"),
        (
            lambda arrays: arrays.update(objects=blob({}, compression=ZIP_DEFLATED)),
            "it is compressed",
        ),
    ],
)
def test_hostile_steps(tmp_path, change, message):
    path = tmp_path / "model"
    model = HDIForestRegressor(make_pipeline(StandardScaler(), forest(n=3)), calibration=False).fit(
        X[["age"]], Y
    )
    model.save(path)
    rewritten(path, change)
    with pytest.raises(ValueError, match=f"is not a valid model: .*{message}") as error:
        HDIForestRegressor.load(path)
    assert str(error.value).isprintable()


def blob(objects, **options):
    return np.frombuffer(skops_io.dumps(objects, **options), np.uint8)
