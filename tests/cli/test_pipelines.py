"""The command on models of pipelines: saved ones are scored and checked."""

import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from hdiforest import HDIForestRegressor
from hdiforest.calibration import CVPlus

from .calls import failure, output_of, read, run

pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pytest.importorskip("safetensors")
pytest.importorskip("skops")

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "town": RNG.choice(["Nice", "Lyon", "Paris"], 200),
        "floor": RNG.integers(0, 3, 200),
        "size": RNG.random(200).round(3),
    }
)
FRAME.loc[::17, "size"] = np.nan
TARGET = (FRAME["town"] == "Nice") * 2.0 + FRAME["floor"] + FRAME["size"].fillna(0.5)


def pipeline():
    steps = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["town", "floor"]),
        (make_pipeline(SimpleImputer(), StandardScaler()), ["size"]),
    )
    forest = RandomForestRegressor(20, min_samples_leaf=3, random_state=0)
    return make_pipeline(steps, forest).fit(FRAME, TARGET)


@pytest.fixture(scope="module")
def fitted():
    return HDIForestRegressor.from_forest(pipeline(), FRAME, TARGET)


@pytest.fixture
def files(fitted, tmp_path):
    """Folder with the model, and the labelled rows as CSV and as Parquet."""
    fitted.save(tmp_path / "m.hdi")
    labelled = FRAME.assign(y=TARGET)
    labelled.to_csv(tmp_path / "rows.csv", index=False)
    labelled.to_parquet(tmp_path / "rows.parquet")
    return tmp_path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_saved_pipelines_score_and_check_tables(fitted, files, ending, capsys):
    call = ["score", files / "m.hdi", files / f"rows.{ending}", "-o", files / "out.parquet"]
    assert run([*call, "--keep", "town"]) == 0
    found = read(files / "out.parquet")
    assert list(found["town"]) == list(FRAME["town"])
    np.testing.assert_array_equal(found["prediction"], fitted.predict(FRAME))
    np.testing.assert_array_equal(found[["lower_0.9", "upper_0.9"]], fitted.predict_interval(FRAME))
    assert run(["check", files / "m.hdi", files / f"rows.{ending}", "--target", "y"]) == 0
    assert "on 200 rows" in capsys.readouterr().out


def test_a_missing_column_is_named_as_the_table_has_it(files, capsys):
    FRAME.drop(columns="town").to_csv(files / "less.csv", index=False)
    found = failure(capsys, ["score", files / "m.hdi", files / "less.csv", "-o", files / "o.csv"])
    assert "less.csv has no column 'town'" in found


def test_folds_with_steps_of_their_own_score_tables(fitted, files):
    model = HDIForestRegressor(clone(fitted.estimator_), calibration=False).fit(FRAME, TARGET)
    model.calibrate(coverage=[0.8, 0.9], method=CVPlus(3), random_state=0)
    model.save(files / "folds.hdi")
    rows = files / "rows.csv"
    assert run(["score", files / "folds.hdi", rows, "-o", files / "out.parquet"]) == 0
    found = read(files / "out.parquet")[["lower_0.9", "upper_0.9"]]
    np.testing.assert_array_equal(found, model.predict_interval(FRAME, 0.9))


def test_inspect_names_the_steps(files, capsys):
    shown = output_of(capsys, ["inspect", files / "m.hdi"])
    assert "town, floor, size (through " in shown
    assert run(["inspect", files / "m.hdi", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["encoder"]["numbers"] == ["floor", "size"]


def test_what_the_steps_refuse_is_one_sentence(files, capsys):
    steps = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    forest = RandomForestRegressor(5, random_state=0)
    model = HDIForestRegressor(make_pipeline(steps, forest), calibration=False)
    model.fit(FRAME, TARGET).save(files / "m.hdi")
    FRAME.assign(town="Oslo").to_csv(files / "new.csv", index=False)
    found = failure(capsys, ["score", files / "m.hdi", files / "new.csv", "-o", files / "o.csv"])
    assert "new.csv: the steps before the forest refuse one of the rows 1 to " in found
    assert "Found unknown categories ['Oslo'] in column 0" in found


def test_rounded_whole_numbers_are_told_in_one_line(tmp_path):
    rows = pd.DataFrame({"account": 2**24 + np.arange(60), "y": RNG.random(60)})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    model = HDIForestRegressor(RandomForestRegressor(5, random_state=0), calibration=False)
    model.fit(rows[["account"]].to_numpy() % 7, rows["y"]).save(tmp_path / "m.hdi")
    call = ["score", "m.hdi", "rows.csv", "-o", "out.csv", "--keep", "y"]
    done = subprocess.run(
        [sys.executable, "-m", "hdiforest", *call], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert done.stderr == (
        "hdiforest: warning: whole numbers beyond 2^24 are rounded to float32 in the column "
        "'account'\n"
    )
