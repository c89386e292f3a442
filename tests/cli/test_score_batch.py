"""Score with --batch-coverage: one price for all tables, whichever are scored when."""

import json

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from hdiforest import HDIForestRegressor
from hdiforest._cli import score_batch

from .calls import failure, read, run

pd = pytest.importorskip("pandas")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("safetensors")

RNG = np.random.default_rng(0)
NAMES = ["a", "b"]
COLUMNS = ["prediction", "batch_lower_0.8", "batch_upper_0.8", "mass"]


def frame(n):
    return pd.DataFrame(RNG.normal(size=(n, 2)), columns=NAMES)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    X = frame(500)
    y = X["a"] + np.exp(X["b"]) * RNG.normal(size=len(X))
    path = tmp_path_factory.mktemp("model") / "m.hdi"
    forest = ExtraTreesRegressor(15, bootstrap=True, min_samples_leaf=3, random_state=0)
    HDIForestRegressor(forest, calibration=False).fit(X, y).save(path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables of several sizes: one larger than what a thread takes at once, one without rows."""
    folder = tmp_path_factory.mktemp("in")
    for name, n in {"b.csv": 300, "a.parquet": 9000, "c.parquet": 0, "d.parquet": 40}.items():
        rows = frame(n)
        if name.endswith("csv"):
            rows.to_csv(folder / name, index=False)
        else:
            rows.to_parquet(folder / name)
    return folder


def scored(out):
    return [read(path) for path in sorted(out.iterdir()) if not path.name.startswith(".")]


def test_a_folder_is_one_batch(model, folder, tmp_path):
    out = tmp_path / "out"
    call = ["score", model, folder, "-o", out, "--batch-coverage", 0.8]
    assert run(call) == 0
    tables = scored(out)
    assert [list(table) for table in tables] == [COLUMNS] * 4
    assert [len(table) for table in tables] == [9000, 300, 0, 40]
    whole = pd.concat(tables)
    rows = pd.concat([read(path) for path in sorted(folder.iterdir())])[NAMES]
    expected = HDIForestRegressor.load(model).predict_batch(rows, 0.8)
    widths = whole["batch_upper_0.8"] - whole["batch_lower_0.8"]
    assert whole["mass"].mean() >= 0.8 - 1e-9
    assert whole["mass"].min() >= 0.5 - 1e-9
    assert expected.bound <= widths.sum() + 1e-6
    assert abs(widths.sum() - expected.total_width) <= widths.max()
    # By the lower price or the higher one, each row has the interval that it has in memory.
    same = np.isclose(whole["batch_lower_0.8"], expected.interval[:, 0])
    assert same.mean() > 0.99
    # Neither threads, the size of batches nor parts change a byte.
    other = tmp_path / "other"
    for part in ("1/2", "2/2"):
        more = ["--part", part, "--jobs", 1, "--batch-rows", 700]
        assert run([*call[:4], other, *call[5:], *more]) == 0
    for table, again in zip(tables, scored(other), strict=True):
        pd.testing.assert_frame_equal(table, again)


def test_resumed_while_the_price_is_the_same(model, folder, tmp_path, capsys):
    out, own = tmp_path / "out", tmp_path / "in"
    own.mkdir()
    for path in folder.iterdir():
        (own / path.name).write_bytes(path.read_bytes())
    call = ["score", model, own, "-o", out, "--batch-coverage", 0.8, "--resume"]
    assert run(call) == 0
    (out / "d.parquet").unlink()
    capsys.readouterr()
    assert run(call) == 0
    assert "3 outputs were there and stay as they are" in capsys.readouterr().out
    frame(5000).to_parquet(own / "e.parquet")
    assert run(call) == 0
    assert "the price of the batch is another one" in capsys.readouterr().out
    assert run([*call[:5]]) == 0
    origin = json.loads(pq.read_schema(out / "a.parquet").metadata[b"hdiforest"])
    assert origin["batch"] is None


def test_a_price_is_found_once_for_runs_that_resume(model, folder, tmp_path, monkeypatch):
    out = tmp_path / "out"
    call = ["score", model, folder, "-o", out, "--batch-coverage", 0.8, "--resume"]
    assert run([*call, "--part", "1/2"]) == 0
    first = (out / ".batch.hdiforest.json").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(score_batch, "find_rule", None)
        assert run([*call, "--part", "2/2"]) == 0
    whole = tmp_path / "whole"
    assert run(["score", model, folder, "-o", whole, "--batch-coverage", 0.8]) == 0
    for table, again in zip(scored(out), scored(whole), strict=True):
        pd.testing.assert_frame_equal(table, again)
    # What was recorded for something else, or is damaged, is found anew.
    other = [*call[:-2], 0.7, "--resume"]
    for text in (first, b"{}", b"[", first[:-20] + b'"bad"]]', b"[" * 100_000):
        (out / ".batch.hdiforest.json").write_bytes(text)
        assert run(other) == 0
    assert (out / ".batch.hdiforest.json").read_bytes() != first


def test_one_table_and_no_floor(model, folder, tmp_path):
    out = tmp_path / "out.parquet"
    more = ["--batch-coverage", 0.8, "--min-coverage", 0]
    assert run(["score", model, folder / "b.csv", "-o", out, *more]) == 0
    table = read(out)
    assert list(table) == COLUMNS
    assert table["mass"].min() < 0.5
    assert table["mass"].mean() == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize(
    ("options", "message", "code"),
    [
        (["--min-coverage", 0.3], "--min-coverage needs --batch-coverage", 2),
        (["--batch-coverage", 0.8, "--kind", "hdi"], "--kind must not be given with --batch-", 2),
        (["--batch-coverage", 0.8, "--coverage", 0.8], "--coverage must not be given with", 2),
        (["--batch-coverage", 0.8, "--diagnose"], "--diagnose must not be given with --batch-", 2),
        (["--batch-coverage", 1], "a number above 0 and below 1 is needed, got 1", 2),
        (["--batch-coverage", 0.8, "--min-coverage", 1], "a number above 0 and below 1", 2),
        (["--batch-coverage", 0.8, "--keep", "mass"], "--keep mass must not be the name of", 2),
    ],
)
def test_what_does_not_go_together(model, folder, tmp_path, capsys, options, message, code):
    call = ["score", model, folder, "-o", tmp_path / "out", *options]
    assert message in failure(capsys, call, code)
    assert not (tmp_path / "out").exists()


def test_pipes_are_refused(model, tmp_path, capsys):
    call = ["score", model, "-", "-o", tmp_path / "out.csv", "--batch-coverage", 0.8]
    assert "reads tables several times, which a pipe cannot be" in failure(capsys, call, 2)
