"""The warning that X holds the rows of the fit: when, how often, and what it names.

And where all warnings point to.
"""

import copy
import hashlib
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hdiforest import (
    CalibrationDisplay,
    DistributionDisplay,
    ForestSearchOOB,
    HDIForestRegressor,
    IntervalDisplay,
    WidthDisplay,
    fit_table,
    from_leaves,
    quantile_views,
)
from hdiforest.adapters.quantile_forest import RandomForestQuantileRegressor
from hdiforest.exceptions import TrainingRowsWarning
from hdiforest.inspection import explain
from hdiforest.metrics import make_interval_scorer
from hdiforest.serving import BatchScorer

from ..cli.calls import run
from ..model_files import arrays_of, rewritten, with_text
from ..oracle import blocks_of

X, Y = make_friedman1(150, 5, noise=1, random_state=0)
COLUMNS = list("abcde")


@pytest.fixture(scope="module")
def model():
    forest = ExtraTreesRegressor(60, min_samples_leaf=3, bootstrap=True, random_state=0)
    return HDIForestRegressor(forest, calibration=False).fit(X, Y).calibrate(coverage=0.8)


@contextmanager
def warned(n):
    """What is inside warns n times that X holds the rows of the fit, of a place in this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    assert [each.category for each in caught] == [TrainingRowsWarning] * n, list(map(str, caught))
    for each in caught:
        assert each.filename == __file__
        assert str(each.message) == (
            "X holds the rows of the fit: intervals cover more of their targets than of those of "
            "new rows; use rows that took no part in the fit, or in Python oob_.interval, which "
            "asks for each row the trees that did not draw it"
        )


@pytest.fixture
def fresh(model):
    """A copy of the model, which has not warned yet."""
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize("shape", [(20, 2), (3000, 200)])  # more than is copied at once
def test_the_digest_is_of_the_rows_as_the_engine_reads_them(shape, tmp_path):
    rows = np.random.default_rng(0).normal(size=shape)
    rows[0, 1] = np.nan
    forest = RandomForestRegressor(3, max_depth=2, max_features=1, random_state=0)
    model = HDIForestRegressor(forest, calibration=False).fit(rows, np.arange(len(rows)))
    model.save(tmp_path / "m.hdi")
    expected = hashlib.blake2b(rows.astype("<f4").tobytes(), digest_size=16).hexdigest()
    assert arrays_of(tmp_path / "m.hdi")["training_digest"].tobytes().decode() == expected
    nan = rows.astype(np.float32)
    nan.view(np.uint32)[0, 1] = 0xFFC00001  # a NaN of another pattern
    for given in (rows, nan, np.asfortranarray(rows), rows.astype(">f8"), rows.astype(">f4")):
        with warned(1):
            pickle.loads(pickle.dumps(model)).predict_interval(given)


@pytest.mark.parametrize("kind", [None, "calibrated", "hdi", "lower"])
@pytest.mark.parametrize("output", ["numpy", "pandas"])
def test_intervals_of_the_rows_of_the_fit_warn_once_a_model(fresh, kind, output):
    shuffled, nearly = X[::-1], X.copy()
    nearly[70, 2] += 1e-3
    with warned(0):
        for rows in (X[:-1], np.vstack([X, X]), X[:1], shuffled, nearly):
            fresh.predict_interval(rows, 0.8, kind=kind, output=output)
        fresh.predict(X)
        fresh.predict_quantiles(X, 0.5)
        fresh.predict_cdf(X, Y)
        fresh.oob_.interval(0.8)
    with warned(1):
        for _ in range(9):
            fresh.predict_interval(X, 0.8, kind=kind, output=output)
    with warned(0):  # not of the same model with another calibration either
        fresh.calibrate(coverage=0.7).predict_interval(X, 0.7)
    with warned(1):  # another fit is another model
        HDIForestRegressor(RandomForestRegressor(9), calibration=False).fit(X, Y).predict_interval(
            X
        )


def test_threads_warn_once_together(fresh):
    started = Barrier(8)

    def ask(_):
        started.wait()
        fresh.predict_interval(X, 0.8)

    with warned(1), ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))


def test_every_form_of_the_rows_is_known(fresh):
    pd, pl, pa = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    named = HDIForestRegressor(RandomForestRegressor(20, random_state=0), calibration=False)
    frame = pd.DataFrame(X, columns=COLUMNS)
    named.fit(frame, Y)
    arrays = X.astype(np.float32), np.asfortranarray(X), X.tolist(), np.repeat(X, 2, axis=1)[:, ::2]
    tables = frame, pl.DataFrame(frame), pa.table(frame), frame.astype(np.float32)
    for model, forms in ((fresh, arrays), (named, tables)):
        for rows in forms:
            with warned(1):
                pickle.loads(pickle.dumps(model)).predict_interval(rows, 0.8)


def test_copies_and_files_warn_anew(fresh, tmp_path):
    before, load = pickle.dumps(fresh), HDIForestRegressor.load
    with warned(1):
        fresh.predict_interval(X, 0.8)
    assert pickle.dumps(fresh) == before
    assert copy.deepcopy(explain(fresh, X[:2], 0.8)).rows  # which holds the forest
    fresh.save(tmp_path / "with.hdi")
    fresh.save(tmp_path / "without.hdi", training_rows=False)
    for name in ("with.hdi", "without.hdi"):
        loaded = load(tmp_path / name)
        for each in (loaded, pickle.loads(pickle.dumps(loaded))):
            with warned(1):
                each.predict_interval(X, 0.8)
    with warned(1):
        pickle.loads(pickle.dumps(fresh)).predict_interval(X, 0.8)


def test_tables_that_are_encoded_in_blocks_are_known(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    columns = dict(zip(COLUMNS, X.T, strict=True)) | {"town": ["Lyon", "Nice", None] * 50}
    frame = pd.DataFrame(columns).assign(y=Y)
    forest = RandomForestRegressor(20, random_state=0)
    model = fit_table(frame, "y", estimator=forest, calibration=False)
    pipeline = make_pipeline(StandardScaler(), forest)
    piped = HDIForestRegressor(pipeline, calibration=False).fit(frame[COLUMNS], Y)
    for cells in (2**22, 100):
        for one, table in ((model, frame), (piped, frame[COLUMNS])):
            one.save(tmp_path / "model.hdi")
            for again in (pickle.loads(pickle.dumps(one)), one.load(tmp_path / "model.hdi")):
                with blocks_of(cells), warned(0):
                    again.predict_interval(table[::-1])
                with blocks_of(cells), warned(1):
                    again.predict_interval(table)
                    again.predict_interval(table)


def test_wrapped_models_warn():
    search = ForestSearchOOB([ExtraTreesRegressor(60, bootstrap=True)], random_state=0)
    search.fit(X, Y)
    pipeline = make_pipeline(
        StandardScaler(), HDIForestRegressor(RandomForestRegressor(20), calibration=False)
    )
    pipeline.fit(X, Y)
    score = make_interval_scorer(0.9)
    both = HDIForestRegressor(RandomForestRegressor(20), calibration=False)
    both.fit(X, np.column_stack([Y, -Y]))
    for call in (
        lambda: search.predict_interval(X),
        lambda: score(pipeline, X, Y),
        lambda: both.predict_interval(X, [0.5, 0.9]),
    ):
        with warned(1):
            call()
            call()


def test_views_of_a_model_warn_once_together(fresh):
    for kind in ("hdi", "equal_tailed"):
        with warned(kind == "hdi"):
            for view in quantile_views(fresh, 0.8, kind=kind):
                view.predict(X)
    pair = pickle.loads(pickle.dumps(quantile_views(fresh, 0.8)[:2]))
    with warned(1):
        pair[0].predict(X)
        pair[1].predict(X)


def test_displays_warn_once_of_a_model(model):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    for display in (IntervalDisplay, CalibrationDisplay, WidthDisplay):
        options = {} if display is CalibrationDisplay else {"coverage": 0.8}
        fresh = pickle.loads(pickle.dumps(model))
        with warned(0):
            display.from_out_of_bag(fresh, **options)
            DistributionDisplay.from_estimator(fresh, X, Y, row=3, coverage=0.8)
        with warned(1):
            display.from_estimator(fresh, X, Y, **options)
            fresh.predict_interval(X, 0.8)
    pyplot.close("all")


def test_check_says_so_in_one_line(capsys, tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("safetensors")
    table = pa.table([*X.T, Y, ["Lyon", "Nice", None] * 50], [*COLUMNS, "y", "town"])
    pq.write_table(table, tmp_path / "train.parquet")
    pq.write_table(table.slice(1), tmp_path / "other.parquet")
    model = tmp_path / "model.hdi"
    call = ["--target", "y", "-o", model, "--trees", 60]
    assert run(["fit", tmp_path / "train.parquet", *call]) == 0
    for name, n in (("train", 1), ("other", 0)):
        capsys.readouterr()
        call = ["check", model, tmp_path / f"{name}.parquet", "--target", "y"]
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            assert run(call) == 0
        said = capsys.readouterr().err
        assert said.count("\n") == n
        assert said.startswith("hdiforest: warning: X holds the rows of the fit") == bool(n)


def test_a_wrong_digest_in_a_file_is_refused(model, tmp_path):
    path = tmp_path / "model.hdi"
    for wrong in ("", "z" * 32, "0" * 31):
        model.save(path)
        rewritten(path, with_text("training_digest", wrong))
        with pytest.raises(ValueError, match="training_digest must be 32 hexadecimal"):
            HDIForestRegressor.load(path)


def test_all_warnings_point_to_the_call(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    forest = RandomForestRegressor(60, random_state=0)
    model, column = (
        HDIForestRegressor(forest, calibration=False).fit(X[:60], Y[:60]),
        Y[:, np.newaxis],
    )
    leaf_model = from_leaves(model.scorer_.forest.leaves, X[:60], Y[:60])
    large = pd.DataFrame({"a": 2.0**25 + np.arange(150), "town": ["Lyon", "Nice", "Metz"] * 50})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        coded = fit_table(large.assign(y=Y), "y", estimator=forest)
        few_trees = RandomForestQuantileRegressor(2, random_state=0).fit(X, Y)
    coded.save(tmp_path / "coded.hdi")
    batches = BatchScorer(tmp_path / "coded.hdi")
    levels, new = [0.5, 0.999], {"X": X[60:], "y": Y[60:]}
    for call in (
        lambda: fit_table(large.assign(y=Y), "y", estimator=forest),
        lambda: coded.predict(large),
        lambda: batches(large),
        lambda: model.calibrate(coverage=levels),
        lambda: model.calibrate(coverage=levels, method="cv+"),
        lambda: model.calibrate(coverage=levels, method="jackknife+"),
        lambda: model.calibrate(coverage=levels, **new),
        lambda: leaf_model.calibrate(*new.values(), coverage=levels),
        lambda: HDIForestRegressor(forest, calibration=False).fit(X, column),
        lambda: HDIForestRegressor.from_forest(forest.fit(X, Y), X, column),
        lambda: HDIForestRegressor(make_pipeline(forest), calibration=False).fit(
            pd.DataFrame(X), column
        ),
        lambda: ForestSearchOOB([forest]).fit(X, column),
        lambda: few_trees.predict(X, oob_score=True),
        lambda: (
            HDIForestRegressor(RandomForestRegressor(2), calibration=False)
            .fit(X, Y)
            .oob_.prediction()
        ),
    ):
        with pytest.warns() as caught:
            call()
        assert {each.filename for each in caught} == {__file__}, [str(c.message) for c in caught]
