"""The command on calibrated models: fit, score, calibrate, check and inspect."""

import json
import os
import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import binom
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor
from hdiforest.calibration import OutOfBag, Split
from hdiforest.metrics import coverage_by_width, coverage_score, interval_score, mean_width_score
from hdiforest.monitoring import recalibrate

from .calls import failure, output_of, read, run

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("safetensors")

FEATURES = [f"f{i}" for i in range(5)]
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)


def frame(seed, n_rows=300):
    X, y = make_friedman1(n_rows, 5, noise=1, random_state=seed)
    return pd.DataFrame(X, columns=FEATURES).assign(target=y)


TRAIN, NEW = frame(0, 510), frame(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables, a calibrated model with training rows, and what its fit printed."""
    path = tmp_path_factory.mktemp("calibrated")
    TRAIN.to_csv(path / "train.csv", index=False)
    NEW.to_csv(path / "new.csv", index=False)
    fit(path / "train.csv", path / "model", "--training-rows")
    return path


def folds_of(method, n):
    return ["--folds", n] if method == "cv+" else []


def fit(train, model, *more):
    call = ["fit", train, "--target", "target", "-o", model, "--trees", 60, *more]
    assert run(call) == 0


@pytest.fixture(scope="module")
def model(folder):
    return HDIForestRegressor.load(folder / "model")


@pytest.fixture(scope="module")
def raw(folder):
    path = folder / "raw"
    fit(folder / "train.csv", path, "--calibrate", "none", "--training-rows")
    return path


@pytest.fixture(scope="module")
def only_two(folder):
    """A model that is calibrated at 0.6 and 0.8 alone."""
    path = folder / "two"
    HDIForestRegressor.load(folder / "model").calibrate(coverage=(0.8, 0.6)).save(path)
    return path


def test_fit_calibrates_saves_and_prints_it(folder, tmp_path, capsys):
    fit(folder / "train.csv", tmp_path / "m")
    printed = capsys.readouterr().out
    forest = RandomForestRegressor(60, min_samples_leaf=5, random_state=0)
    expected = HDIForestRegressor(forest, calibration=False).fit(TRAIN[FEATURES], TRAIN["target"])
    hdi = expected.oob_.interval(LEVELS, kind="hdi")
    expected.calibrate(coverage=LEVELS)
    loaded = HDIForestRegressor.load(tmp_path / "m")
    assert loaded.calibration_ == expected.calibration_
    calibration, _, record = printed.partition("Out-of-bag record of 510 training rows:\n")
    assert f"\n{expected.calibration_!r}\n" in calibration
    for j, level in enumerate(LEVELS):
        line = next(line for line in record.splitlines() if line.startswith(f"{level:g} "))
        assert line.split()[1:] == [
            f"{coverage_score(TRAIN['target'], hdi[..., j]):.3f}",
            f"{mean_width_score(hdi[..., j]):.3g}",
        ]
    assert "Not calibrated" not in printed


@pytest.mark.parametrize(
    ("more", "n_rows", "reason", "known"),
    [
        (["--trees", 20], 510, ": --calibrate oob needs at least 20 trees that did not draw", ()),
        (["--trees", 70], 15, " at 0.95, 0.99: 14 calibration rows are too few", (0.5, 0.8, 0.9)),
        (["--calibrate", "split", "--trees", 9], 60, " at 0.95, 0.99: 12 calib", (0.5, 0.8, 0.9)),
        (["--calibrate", "cv+", "--folds", 2, "--trees", 9], 30, " at 0.99: 30 calib", LEVELS[:-1]),
    ],
)
def test_a_fit_says_at_which_levels_it_is_not_calibrated(
    tmp_path, capsys, more, n_rows, reason, known
):
    TRAIN.head(n_rows).to_csv(tmp_path / "train.csv", index=False)
    fit(tmp_path / "train.csv", tmp_path / "m", *more)
    captured = capsys.readouterr()
    [line] = [line for line in captured.out.splitlines() if "Not calibrated" in line]
    assert line.startswith(f"Not calibrated{reason}")
    assert captured.err == ""
    loaded = HDIForestRegressor.load(tmp_path / "m")
    assert getattr(getattr(loaded, "calibration_", None), "coverages", ()) == known


@pytest.mark.parametrize("method", ["oob", "split", "cv+"])
def test_coverages_of_a_fit(folder, tmp_path, capsys, monkeypatch, method):
    more = ["--calibrate", method, *folds_of(method, 2), "--coverage", 0.85, 0.6]
    fit(folder / "train.csv", tmp_path / "m", *more)
    printed = capsys.readouterr().out
    assert re.search(r"\n0\.6 .*\n0\.85 ", printed)
    assert "Not calibrated" not in printed
    loaded = HDIForestRegressor.load(tmp_path / "m")
    assert loaded.calibration_.coverages == (0.6, 0.85)
    call = ["score", tmp_path / "m", folder / "new.csv", "-o", tmp_path / "o.csv"]
    assert run([*call, "--coverage", 0.85]) == 0
    expected = loaded.predict_interval(NEW[FEATURES], 0.85)
    assert_array_equal(read(tmp_path / "o.csv")[["lower_0.85", "upper_0.85"]], expected)
    told = failure(capsys, [*call, "--coverage", 0.7], code=2)
    assert "'hdiforest calibrate' --coverage 0.6 0.7 0.85, or use --kind hdi" in told
    if method == "cv+":
        told = failure(capsys, [*call, "--kind", "lower"], code=2)
        assert told.endswith("the model was by 'cv+'; calibrate it so, or use another --kind")

    def refuse(*_, **__):
        raise AssertionError("too few rows must be told before the fit")

    monkeypatch.setattr(HDIForestRegressor, "fit", refuse)
    call = ["fit", folder / "train.csv", "--target", "target", "-o", tmp_path / "m"]
    n_rows = 102 if method == "split" else 510
    assert failure(capsys, [*call, "--calibrate", method, "--coverage", 0.5, 0.999], code=2) == (
        f"--coverage 0.999 needs 999 calibration rows, and there are {n_rows}"
    )
    call += ["--calibrate", "none", "--coverage", 0.5]
    assert "--coverage must not be given with --calibrate none" in failure(capsys, call, code=2)


def test_too_few_rows_for_a_coverage_are_told_before_calibrating(folder, raw, capsys):
    call = ["calibrate", raw, folder / "new.csv", "--target", "target", "--coverage"]
    assert failure(capsys, [*call, 0.999], code=2).startswith("--coverage 0.999 needs 999 calibr")
    call += [0.99, "--confidence", 0.99]
    needs = "--coverage 0.99 needs 459 calibration rows, and there are 300"
    assert failure(capsys, call, code=2) == needs


def test_none_calibrates_nothing_and_says_nothing(folder, tmp_path, capsys):
    fit(folder / "train.csv", tmp_path / "m", "--calibrate", "none", "--trees", 5)
    assert "alibrated" not in capsys.readouterr().out
    assert not hasattr(HDIForestRegressor.load(tmp_path / "m"), "calibration_")


def test_score_by_default_and_by_other_kinds(folder, model, only_two, tmp_path):
    out = tmp_path / "out.parquet"
    ends = ["lower_0.9", "upper_0.9"]
    for more, kind in ([], "calibrated"), (["--kind", "hdi"], "hdi"):
        assert run(["score", folder / "model", folder / "new.csv", "-o", out, *more]) == 0
        assert_array_equal(read(out)[ends], model.predict_interval(NEW[FEATURES], kind=kind))
    assert run(["score", only_two, folder / "new.csv", "-o", out]) == 0
    assert list(read(out)) == ["prediction", "lower_0.6", "upper_0.6"]
    call = ["score", only_two, folder / "new.csv", "-o", out, "--kind", "hdi"]
    assert run([*call, "--coverage", 0.7]) == 0
    assert list(read(out)) == ["prediction", "lower_0.7", "upper_0.7"]


def test_a_calibrated_model_without_names(folder, tmp_path):
    forest = RandomForestRegressor(9, random_state=0)
    nameless = HDIForestRegressor(forest, calibration=False)
    nameless.fit(TRAIN[FEATURES].to_numpy(), TRAIN["target"])
    nameless.calibrate(NEW[FEATURES].to_numpy(), NEW["target"], coverage=0.8).save(tmp_path / "m")
    for name in ("calibrate", "check"):
        assert run([name, tmp_path / "m", folder / "new.csv", "--target", "target"]) == 0


@pytest.mark.parametrize("name", ["score", "check"])
def test_what_was_not_calibrated_is_told_before_anything_is_written(
    folder, raw, tmp_path, capsys, name
):
    options = {"score": ["-o", tmp_path / "out.csv"], "check": ["--target", "target"]}[name]
    bare = folder / f"bare_{name}"
    HDIForestRegressor.load(folder / "model").save(bare, training_rows=False)
    call = [name, bare, folder / "none.csv", *options, "--coverage", "0.9", "0.7"]
    assert failure(capsys, call, code=2) == (
        "--coverage must be one that was calibrated: 0.5, 0.8, 0.9, 0.95, 0.99; got 0.7; give "
        "'hdiforest fit' or 'hdiforest calibrate' --coverage 0.5 0.7 0.8 0.9 0.95 0.99, or use "
        "--kind hdi, which is not calibrated"
    )
    for level, sentence in (
        (0.999, r"--coverage 0\.999 needs 999 calibration rows, and there are \d+; ask for a "
         "lower one, or for --kind hdi, which is not calibrated"),
        (1, ".*--coverage.* must be above 0 and below 1, got 1.*"),
    ):  # fmt: skip
        assert re.fullmatch(sentence, failure(capsys, [*call[:-1], level], code=2))
    call = [name, raw, folder / "none.csv", *options, "--kind", "calibrated"]
    assert "the model has no calibration" in failure(capsys, call, code=2)
    assert os.listdir(tmp_path) == []


def test_calibrate_on_new_rows_replaces_the_model_or_writes_another(folder, raw, tmp_path, capsys):
    path, other = tmp_path / "m", tmp_path / "m2"
    path.write_bytes(raw.read_bytes())
    call = ["calibrate", path, folder / "new.csv", "--target", "target"]
    assert run([*call, "-o", other]) == 0
    assert path.read_bytes() == raw.read_bytes()
    expected = HDIForestRegressor.load(raw)
    X, y = NEW[FEATURES], NEW["target"]
    expected.calibrate(X, y, coverage=LEVELS)
    assert HDIForestRegressor.load(other).calibration_ == expected.calibration_
    assert repr(expected.calibration_) in capsys.readouterr().out
    assert run([*call, "--coverage", 0.8, 0.6, "--confidence", 0.9]) == 0
    expected.calibrate(X, y, coverage=(0.6, 0.8), method=Split(0.9))
    assert HDIForestRegressor.load(path).calibration_ == expected.calibration_
    assert run(call) == 0  # at the coverages that it has
    assert HDIForestRegressor.load(path).calibration_.coverages == (0.6, 0.8)
    assert sorted(os.listdir(tmp_path)) == ["m", "m2"]


def test_what_calibrate_refuses_leaves_the_model(folder, raw, tmp_path, capsys):
    before = raw.read_bytes()
    NEW.head(30).to_csv(tmp_path / "few.csv", index=False)
    NEW.assign(target=np.nan).to_csv(tmp_path / "nan.csv", index=False)
    own = "train.csv must hold rows that took no part in the fit; 510"
    for table, target, sentence in (
        (folder / "train.csv", "target", own),
        (tmp_path / "few.csv", "target", "30 calibration rows are too few"),
        (tmp_path / "nan.csv", "target", "target 'target' must be finite in every row"),
        (folder / "new.csv", "price", "has no column 'price'"),
    ):
        call = ["calibrate", raw, table, "--target", target]
        assert sentence in failure(capsys, call, code=2 if table.name == "train.csv" else 1)
    fit(folder / "train.csv", tmp_path / "without", "--calibrate", "none", "--trees", 5)
    call = ["calibrate", tmp_path / "without", folder / "new.csv", "--target", "target"]
    assert failure(capsys, call).endswith(
        "without must hold the training rows to be calibrated; fit it again with --training-rows"
    )
    call = ["calibrate", raw, folder / "new.csv", "--target", "target", "-o", folder / "new.csv"]
    assert "must not be one of the inputs" in failure(capsys, call, code=2)
    call = ["calibrate", raw, folder / "new.csv", "--target", "target", "--coverage", "90"]
    assert "got 90 (did you mean 0.9?)" in failure(capsys, call, code=2)
    assert raw.read_bytes() == before


@pytest.mark.parametrize(
    ("more", "kind", "levels"),
    [
        ([], "calibrated", LEVELS),
        (["--kind", "hdi"], "hdi", (0.9,)),
        (["--kind", "equal_tailed", "--coverage", 0.6, 0.9], "equal_tailed", (0.6, 0.9)),
    ],
)
def test_check_measures_intervals(folder, model, capsys, more, kind, levels):
    call = ["check", folder / "model", folder / "new.csv", "--target", "target", *more]
    found = json.loads(output_of(capsys, [*call, "--json"]))
    assert (found["kind"], found["rows"], found["rows_without_interval"]) == (kind, 300, 0)
    intervals = model.predict_interval(NEW[FEATURES], levels, kind=kind)
    for j, (level, measured) in enumerate(zip(levels, found["levels"], strict=True)):
        ends, y = intervals[..., j], NEW["target"]
        share = coverage_score(y, ends)
        assert measured == {
            "nominal": level,
            "coverage": share,
            "standard_error": pytest.approx(np.sqrt(share * (1 - share) / 300)),
            "mean_width": mean_width_score(ends),
            "interval_score": interval_score(y, ends, level),
            "coverage_by_width": list(coverage_by_width(y, ends, 3).coverage[1:]),
        }
    printed = output_of(capsys, call)
    assert f"kind {kind} on 300 rows" in printed
    for measured in found["levels"]:
        numbers = f"{measured['coverage']:.3f} ± {measured['standard_error']:.3f}"
        line = rf"^{measured['nominal']:g} +{numbers} +{measured['mean_width']:.3g} "
        assert re.search(line, printed, re.MULTILINE)


def test_check_tells_what_is_not_finite_or_absent(tmp_path, capsys):
    few = HDIForestRegressor(RandomForestRegressor(60, random_state=0), calibration=False)
    few.fit(TRAIN[FEATURES].head(60), TRAIN["target"].head(60))
    with pytest.warns(UserWarning, match="infinite"):
        few.calibrate(coverage=0.99)
    few.save(tmp_path / "m")
    NEW.to_csv(tmp_path / "new.csv", index=False)
    call = ["check", tmp_path / "m", tmp_path / "new.csv", "--target", "target"]
    [level] = json.loads(output_of(capsys, [*call, "--json"]))["levels"]
    assert level["coverage"] == 1
    assert level["mean_width"] is level["interval_score"] is None
    assert " inf " in output_of(capsys, call)


def test_check_leaves_out_rows_without_an_interval(folder, tmp_path, capsys):
    model = HDIForestRegressor(
        RandomForestRegressor(2, random_state=0), weights="oob", calibration=False
    )
    model.fit(TRAIN[FEATURES], TRAIN["target"]).save(tmp_path / "m")
    intervals = model.predict_interval(NEW[FEATURES], 0.9)
    absent = int(np.isnan(intervals).any(axis=1).sum())
    assert 0 < absent < 300
    call = ["check", tmp_path / "m", folder / "new.csv", "--target", "target"]
    printed = output_of(capsys, call)
    assert f"on {300 - absent} rows; {absent} rows without an interval are left out" in printed


def test_inspect_shows_the_calibration(folder, model, capsys):
    printed = output_of(capsys, ["inspect", folder / "model"])
    assert re.search(r"^calibration +at 0.5, 0.8, 0.9, 0.95, 0.99$", printed, re.MULTILINE)
    assert printed.endswith(f"\n\n{model.calibration_!r}\n")


def persons_table(path):
    """Ten rows of each of 100 persons, named by text."""
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(100), 10)
    trait = rng.normal(size=100)[person]
    table = pd.DataFrame({"trait": trait, "noise": rng.normal(size=1000)})
    table["target"] = 2 * rng.normal(size=100)[person] + 0.1 * rng.normal(size=1000)
    table["person"] = [f"p{i}" for i in person]
    table.to_csv(path, index=False)
    return table


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_fit_keeps_groups_together(tmp_path, capsys, method):
    persons_table(tmp_path / "train.csv")
    how = ["--calibrate", method, "--groups", "person", *folds_of(method, 3), "--trees", 10]
    assert run([*FIT, tmp_path / "train.csv", "-o", tmp_path / "m", *how]) == 0
    model = HDIForestRegressor.load(tmp_path / "m")
    assert list(model.feature_names_in_) == ["trait", "noise"]
    assert model.calibration_.method == method
    # A person of the training rows tells his target within 0.1; a new one does not.
    assert model.calibration_.level(0.9).mean_width > 4
    printed = capsys.readouterr().out
    if method == "split":
        assert model.n_training_rows_ == 800
        assert "from 800 rows" in printed
        assert "Calibration, method split, 200 rows" in printed
    else:
        assert [len(own) for own in model.calibration_.scores] == [340, 330, 330]
        assert "Calibration, method cv+, 1000 rows" in printed


FIT = ["fit", "--target", "target", "--trees", 40]


def test_fit_by_groups_and_in_order(tmp_path, capsys):
    table = persons_table(tmp_path / "train.csv").head(300)
    table["site"] = np.repeat(["a", "b"], 150)
    table.drop(columns="person").to_csv(tmp_path / "train.csv", index=False)
    how = ["--by", "site", "--order", "noise", "--coverage", 0.5, 0.9, "--trees", 90]
    printed = output_of(capsys, [*FIT, tmp_path / "train.csv", "-o", tmp_path / "m", *how])
    assert "later rows" in printed
    assert "2 groups with quantiles of their own" in printed
    calibration = HDIForestRegressor.load(tmp_path / "m").calibration_
    assert min(calibration.groups.counts) > 147  # rows that enough trees left out
    assert calibration.level(0.9).later.coverage == pytest.approx(0.9, abs=0.1)
    call = ["score", tmp_path / "m", tmp_path / "train.csv", "-o", tmp_path / "out.csv"]
    assert run([*call, "--coverage", 0.9]) == 0
    assert len(read(tmp_path / "out.csv")) == 300


def test_fit_and_calibrate_boost_by_the_interval_score(tmp_path):
    for name, table in (("train", TRAIN), ("new", NEW)):
        table.head(80).to_csv(tmp_path / f"{name}.csv", index=False)
    how = ["--mean", "boosting", "--objective", "interval_score", "--coverage", 0.8]
    fit(tmp_path / "train.csv", tmp_path / "m", *how, "--training-rows")
    model, again = (HDIForestRegressor.load(tmp_path / "m") for _ in range(2))
    options = {"coverage": 0.8, "mean": "boosting", "random_state": 0}
    again.calibrate(method=OutOfBag(objective="interval_score"), **options)
    assert again.calibration_ == model.calibration_
    call = ["calibrate", tmp_path / "m", tmp_path / "new.csv", "--target", "target"]
    assert run([*call, *how, "--confidence", 0.9, "-o", tmp_path / "m2"]) == 0
    assert HDIForestRegressor.load(tmp_path / "m2").calibration_.method == "split"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--by", "site"], "--by must be a column that the forest is fitted on, got 'site'; they"),
        (["--objective", "interval_score", "--calibrate", "none"],
         r"--objective needs --calibrate oob or split or cv\+, got --calibrate none"),
        (["--mean", "boosting", "--weights", "inbag"], "--mean needs --weights all, got --weights"),
        (["--calibrate", "cv+", "--folds", "1"], "a whole number from 2 to"),
        (["--calibrate", "cv+", "--folds", 1001],
         r"--folds must be at most the number of rows of \S+, 1,000, got 1,001"),
        (["--calibrate", "cv+", "--folds", 101, "--groups", "person"],
         r"--folds must be at most the number of groups of \S+, 100, got 101"),
        (["--trees", 5, "--coverage", 0.9],
         r"--calibrate oob needs at least 20 trees .*, or --calibrate split or cv\+"),
        (["--calibrate", "cv+", "--groups", "x"], "no column 'x'"),
        (["--calibrate", "cv+", "--groups", "gaps"], "groups 'gaps' .* row 3 has none"),
    ],
)  # fmt: skip
def test_refused_ways_to_calibrate(tmp_path, capsys, more, message):
    table = persons_table(tmp_path / "train.csv")
    if "gaps" in more:
        table = table.rename(columns={"person": "gaps"})
        table.loc[2, "gaps"] = None
    table.to_parquet(tmp_path / "train.parquet")
    call = [*FIT, tmp_path / "train.parquet", "-o", tmp_path / "m", *more]
    assert run(call) != 0
    assert re.search(message, capsys.readouterr().err.splitlines()[-1])
    assert not (tmp_path / "m").exists()


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """A model calibrated by sites, two of them unknown to it in the table with targets."""
    path = tmp_path_factory.mktemp("sites")
    table = frame(2, 1000).assign(site=np.arange(1000) % 4)
    table["target"] += (table.site == 3) * np.random.default_rng(0).normal(0, 9, 1000)
    table.iloc[:600].to_csv(path / "train.csv", index=False)
    new = table.iloc[600:].assign(day=pd.date_range("2024-01-01", periods=400).strftime("%F"))
    new.iloc[300:, new.columns.get_loc("target")] += 20
    new.iloc[:7, new.columns.get_loc("site")] = 8
    new.sample(frac=1, random_state=0).to_csv(path / "new.csv", index=False)
    assert run([*FIT, path / "train.csv", "-o", path / "m", "--by", "site", "--trees", 60]) == 0
    return path


def test_check_by_groups_and_over_periods(sites, capsys):
    table, path = pd.read_csv(sites / "new.csv"), sites / "new.csv"
    call = ["check", sites / "m", path, "--target", "target", "--by", "site", "--order", "day"]
    found = json.loads(output_of(capsys, [*call, "--json"]))
    periods, own = found["groupings"]
    model = HDIForestRegressor.load(sites / "m")
    with pytest.warns(UserWarning, match="7 of 400 rows are of groups that the calibration"):
        lower, upper = model.predict_interval(table[[*FEATURES, "site"]], 0.9).T
    inside = ((lower <= table.target) & (table.target <= upper)).to_numpy()
    assert (own["column"], own["nominal"]) == ("site", 0.9)
    assert [group["name"] for group in own["groups"]] == ["0", "1", "2", "3", "8"]
    for group in own["groups"]:
        rows = (table.site == int(group["name"])).to_numpy()
        assert group["rows"] == rows.sum()
        assert group["coverage"] == pytest.approx(inside[rows].mean())
        assert group["mean_width"] == pytest.approx((upper - lower)[rows].mean())
        assert group["chance"] == pytest.approx(binom.interval(0.95, rows.sum(), 0.9) / rows.sum())
    in_order = table.sort_values("day").day.tolist()
    names = [f"{in_order[40 * i]} to {in_order[40 * i + 39]}" for i in range(10)]
    assert [group["name"] for group in periods["groups"]] == names
    assert [group["rows"] for group in periods["groups"]] == [40] * 10
    assert periods["groups"][-1]["coverage"] < 0.7 < periods["groups"][0]["coverage"]
    assert found["rows_of_new_groups"] == 7
    assert run(call) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "Coverage at 0.9 by site (*: beyond" in shown.out
    last = shown.out.partition(f"\n{names[-1]} ")[2].split()
    assert last[:2] == ["40", f"{periods['groups'][-1]['coverage']:.3f}*"]
    assert shown.out.endswith(
        "\nRows of groups that the calibration had no rows of: 7 of 400; their calibrated "
        "intervals take the conformal quantile of all rows\n"
    )
    assert run(["score", sites / "m", path, "-o", sites / "scored.csv"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "had no rows of: 7 of 400; their" in shown.out


def test_groups_of_texts_numbers_and_missing_cells(sites, tmp_path, capsys):
    table = pd.read_csv(sites / "new.csv")
    codes = np.arange(400) % 40
    table["code"], table["text"] = codes + 0.5, [["", "b", "ä"][code % 3] for code in codes]
    table.to_csv(tmp_path / "new.csv", index=False)
    call = ["check", sites / "m", tmp_path / "new.csv", "--target", "target"]

    def groupings(*more):
        found = json.loads(output_of(capsys, [*call, "--json", *more]))["groupings"]
        return [[group["name"] for group in each["groups"]] for each in found]

    assert groupings("--by", "text") == [["(missing)", "b", "ä"]]
    assert groupings("--by", "code") == [[f"{code}.5" for code in range(40)]]
    assert groupings("--order", "site") == [["0", "1", "2", "3", "8"]]  # no value is divided
    assert groupings("--order", "site", "--by", "site") == [["0", "1", "2", "3", "8"]] * 2
    by_target, _ = groupings("--order", "target", "--by", "site")
    ends = [tuple(map(float, name.split(" to "))) for name in by_target]
    assert np.ravel(ends).tolist() == sorted(np.ravel(ends))
    assert len(ends) == 10
    message = failure(capsys, [*call, "--order", "text"], 2)
    assert message == "--order must have a value in each row, and row 1 has none"
    assert "has no column 'no'" in failure(capsys, [*call, "--by", "no"])
    assert "has no column 'no'" in failure(capsys, [*call, "--order", "no"])


def test_periods_and_orders_of_texts(sites, tmp_path, capsys):
    table = pd.read_csv(sites / "new.csv")
    days = pd.Timestamp("2023-11-20") + pd.to_timedelta(np.arange(400) // 4, "D")
    table["day"], table["early"] = (
        days.strftime("%d/%m/%Y"),
        [f"0{i % 9 + 1}/02/2024" for i in range(400)],
    )
    table["week"] = [f"W{i % 40}" for i in range(400)]
    table.to_csv(tmp_path / "new.csv", index=False)
    call = ["check", sites / "m", tmp_path / "new.csv", "--target", "target", "--order"]
    found = json.loads(output_of(capsys, [*call, "day", "--json"]))
    assert found["periods_sorted_as"] == "dates as %d/%m/%Y"
    names = [group["name"] for group in found["groupings"][0]["groups"]]
    assert names[:2] == ["20/11/2023 to 29/11/2023", "30/11/2023 to 09/12/2023"]
    assert "\n\nPeriods are sorted as dates as %d/%m/%Y" in output_of(capsys, [*call, "day"])
    assert "\n\nPeriods are sorted as text" in output_of(capsys, [*call, "week"])
    message = failure(capsys, [*call, "early"], 2)
    assert message.startswith(
        "--order: column 'early' holds dates that can be read in 2 ways, '01/02"
    )
    assert "--date-format 'early=%d/%m/%Y' or 'early=%m/%d/%Y'" in message
    assert run([*call, "early", "--date-format", "early=%m/%d/%Y"]) == 0
    assert "Periods are sorted as dates as %m/%d/%Y" in capsys.readouterr().out
    message = failure(capsys, [*call, "early", "--date-format", "day=%d/%m/%Y"], 2)
    assert message == "--date-format must be of the column of --order, got 'day'"
    fit = [*FIT, tmp_path / "new.csv", "-o", tmp_path / "m", "--drop", "early", "--trees", 9]
    message = failure(capsys, [*fit, "--order", "week"], 2)
    assert message == "--order must be a column of numbers or dates, and 'week' holds categories"


def test_recalibrate_moves_quantiles_and_keeps_the_file_whole(folder, raw, tmp_path, capsys):
    later = frame(2, 200)
    later["target"] += 3
    later.to_csv(tmp_path / "later.csv", index=False)
    call = ["recalibrate", folder / "model", tmp_path / "later.csv", "--target", "target"]
    before = (folder / "model").read_bytes()
    printed = output_of(capsys, [*call, "-o", tmp_path / "model2", "--window", 150])
    assert "recalibrated by 200 rows" in printed
    assert "Covered of 200 rows, each before it was taken in: 0." in printed
    assert (folder / "model").read_bytes() == before
    moved = HDIForestRegressor.load(tmp_path / "model2")
    expected = HDIForestRegressor.load(folder / "model")
    recalibrate(expected, later[FEATURES], later["target"], window=150)
    np.testing.assert_array_equal(
        moved.predict_interval(NEW[FEATURES], LEVELS),
        expected.predict_interval(NEW[FEATURES], LEVELS),
    )
    found = failure(capsys, [*call, "-o", tmp_path / "model3", "--window", 20], 2)
    assert found == "--window must be at least 99 for a coverage of 0.99, got 20"
    assert not (tmp_path / "model3").exists()
    found = failure(capsys, [call[0], raw, *call[2:]])
    assert found.endswith("raw has no calibration; 'hdiforest calibrate' makes one")


def test_diagnosis_of_rows_and_coverage_of_those_flagged(folder, tmp_path, capsys):
    model, far = tmp_path / "model", NEW.assign(f3=NEW["f3"] + 2)
    far.to_csv(tmp_path / "far.csv", index=False)
    fit(folder / "train.csv", model, "--diagnostics")
    out, call = tmp_path / "out.csv", ["score", model, tmp_path / "far.csv", "--diagnose"]
    assert run([*call, "-o", out]) == 0
    scored = read(out)
    assert list(scored.columns)[3:] == [
        *("dissimilarity", "out_of_range", "worst_feature", "tree_spread"),
        *("mass_outside", "interval_se", "n_missing", "flag"),
    ]
    assert (scored["worst_feature"] == "f3").all()
    assert scored["flag"].mean() > 0.9
    check = ["check", model, tmp_path / "far.csv", "--target", "target", "--json"]
    groupings = json.loads(output_of(capsys, check))["groupings"]
    assert groupings[0]["groups"][0]["name"] == "unlike the training rows"
    moved = ["recalibrate", model, folder / "new.csv", "--target", "target"]
    assert run(moved) == 0
    assert run([*call, "-o", out]) == 0  # which still holds what it needs
    bare = tmp_path / "bare"
    fit(folder / "train.csv", bare, "--calibrate", "none", "--trees", 5)
    found = failure(capsys, ["score", bare, *call[2:], "-o", tmp_path / "none.csv"])
    assert "fit it again with --diagnostics" in found
