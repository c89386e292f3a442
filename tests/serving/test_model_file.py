"""A model file holds the whole model, is read without copying, and is never trusted."""

import copy
import gc
import hashlib
import json
import os
import pickle
import re
import shutil
import struct
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor

from hdicore import _core
from hdiforest import HDIForestRegressor, HDISurvivalForest, LeafModel, from_leaves
from hdiforest.calibration import CVPlus
from hdiforest.exceptions import ModelReplacedError

from ..cli.calls import output_of, run
from ..model_files import (
    NUMBER_NAMES,
    headed,
    rewritten,
    with_array,
    with_change,
    with_facts,
    with_metadata,
    with_number,
    with_text,
    with_value,
    without,
)
from ..oracle import families, run_python

safetensors = pytest.importorskip("safetensors")
safetensors_numpy = pytest.importorskip("safetensors.numpy")
load_file, save_file = safetensors_numpy.load_file, safetensors_numpy.save_file

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4)).astype(np.float32)
Y = (X[:, 0] + RNG.normal(size=150)).round(1)
LEVELS = [0.5, 0.9]


@pytest.fixture(scope="module")
def model():
    return HDIForestRegressor(RandomForestRegressor(7, random_state=0), calibration=False).fit(X, Y)


@pytest.fixture
def path(model, tmp_path):
    path = tmp_path / "a.model"
    model.save(path)
    return path


def contents(model):
    """Everything a model can be asked, as arrays."""
    found = {
        "mean": model.predict(X),
        "interval": model.predict_interval(X, LEVELS),
        "quantiles": model.predict_quantiles(X, LEVELS),
        "weights": model.predict_weights(X).toarray(),
        "draws": model.sample(X, 3, random_state=0),
    }
    with suppress(ValueError):  # of trees that saw all rows
        found["oob"] = model.oob_.interval(LEVELS)
    return found


@pytest.mark.filterwarnings("ignore:.*no out-of-bag interval")
@pytest.mark.parametrize(
    ("weights", "bootstrap", "n_outputs", "weighted"),
    [
        ("all", True, None, True),
        ("inbag", True, 2, True),
        ("oob", True, 2, False),
        ("all", False, 2, True),
        ("inbag", False, None, False),
    ],
)
def test_round_trip(weights, bootstrap, n_outputs, weighted, tmp_path):
    targets = Y if n_outputs is None else np.asfortranarray(np.column_stack([Y, -(Y**2)]))
    sample_weight = RNG.random(150) if weighted else None
    forest = RandomForestRegressor(25, bootstrap=bootstrap, random_state=0)
    model = HDIForestRegressor(forest, weights=weights, calibration=False).fit(
        X, targets, sample_weight
    )
    model.save(tmp_path / "model")
    loaded = HDIForestRegressor.load(tmp_path / "model")
    assert not hasattr(loaded, "estimator_")
    assert loaded.weights == weights
    expected = contents(model)
    assert ("oob" in expected) == bootstrap
    for name, values in expected.items():
        np.testing.assert_array_equal(contents(loaded)[name], values, err_msg=name)


def test_file_is_mapped_not_copied(path):
    loaded = HDIForestRegressor.load(path)
    arrays = loaded.scorer_.index.arrays() | loaded.scorer_.forest.arrays()
    # A copy would be writeable memory of its own; a view of the file is not.
    with open("/proc/self/maps") as maps:
        ranges = [line.split()[0] for line in maps if str(path) in line]
    bounds = [[int(end, 16) for end in span.split("-")] for span in ranges]
    for name in ("ranks", "leaf_begin", "nodes"):
        address = arrays[name].__array_interface__["data"][0]
        assert any(low <= address < high for low, high in bounds), name


def test_file_without_training_rows(model, tmp_path):
    model.save(tmp_path / "lean", training_rows=False)
    loaded = HDIForestRegressor.load(tmp_path / "lean")
    np.testing.assert_array_equal(loaded.predict_interval(X, 0.9), model.predict_interval(X, 0.9))
    for ask in (lambda: loaded.predict_weights(X), loaded.oob_.interval):
        with pytest.raises(ValueError, match="saved without its training rows"):
            ask()
    with pytest.raises(ValueError, match="pass training_rows=False"):
        loaded.save(tmp_path / "again")
    loaded.save(tmp_path / "again", training_rows=False)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "lean").read_bytes()
    assert not any(name.startswith("training.") for name in load_file(tmp_path / "lean"))


def test_equal_models_are_equal_files(model, path, tmp_path):
    model.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_permissions_and_links_are_kept(model, tmp_path):
    (tmp_path / "new").touch()
    model.save(tmp_path / "file")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "new").stat().st_mode
    (tmp_path / "file").chmod(0o640)
    (tmp_path / "link").symlink_to(tmp_path / "file")
    model.save(tmp_path / "link", training_rows=False)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


def test_paths_where_no_model_is_or_can_be(model, tmp_path):
    for missing in (tmp_path / "nothing", tmp_path):
        with pytest.raises(FileNotFoundError, match="there is no model file"):
            HDIForestRegressor.load(missing)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        model.save(tmp_path / "missing" / "model")
    with pytest.raises(OSError, match="it is a folder"):
        model.save(tmp_path)


DAMAGED, TABLE = ", or is damaged", ": it looks like a table"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        *((data, DAMAGED) for data in (b"", b"x", struct.pack("<Q", 2**62) + b"{}")),
        *((headed(data), DAMAGED) for data in (b"3", b"[]", b"[" * 99999)),
        *((data, TABLE) for data in (b"a,b\n1,2\n", "größe\tort\n1\tKöln\n".encode("latin-1"))),
        *((data, TABLE) for data in (b"PAR1\x15\x04\x15 ", b"ARROW1\0\0")),
    ],
)
def test_files_that_are_no_models(data, reason, tmp_path):
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(ValueError, match=f"is not a model file{reason}"):
        HDIForestRegressor.load(tmp_path / "file")
    save_file({"a": np.zeros(3)}, tmp_path / "file")
    with pytest.raises(ValueError, match="is not a model file: it holds other tensors"):
        HDIForestRegressor.load(tmp_path / "file")


@pytest.mark.parametrize(
    "change",
    [
        {"a": None},
        {"a": {"dtype": "F64", "shape": [2], "data_offsets": [0, 16, 16]}},
        {"a": {"dtype": "F64", "shape": [2.0], "data_offsets": [0, 16]}},
        {"a": {"dtype": "F64", "shape": [-1], "data_offsets": [0, 16]}},
        {"a": {"dtype": "F64", "shape": [3], "data_offsets": [0, 16]}},
        {"a": {"dtype": "F64", "shape": [2], "data_offsets": [True, 16]}},
        {"a": {"dtype": "F64", "shape": [1], "data_offsets": [8, 16]}},
        {"a": {"dtype": "F64", "shape": [0, 2**70], "data_offsets": [0, 0]}},
        {"b": {"dtype": "U8", "shape": [0], "data_offsets": [16, 8]}},
        {"b": {"dtype": "U8", "shape": [8], "data_offsets": [8, 16]}},
        {"b": {"dtype": "U8", "shape": [1], "data_offsets": [16, 17]}},
        {"b": {"dtype": "I16", "shape": [0], "data_offsets": [16, 16]}},
        {"b\ud800": {"dtype": "U8", "shape": [0], "data_offsets": [16, 16]}},
        {"b c": {"dtype": "U8", "shape": [0], "data_offsets": [16, 16]}},
    ],
)
def test_headers_whose_ranges_do_not_tile_the_file(change, tmp_path):
    header = {"__metadata__": {"hdicore_model": "3 0.1 1.5"}}
    header["a"] = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}
    sound, other = "file is damaged: its checksums", r"file is not a model file, or is damaged: "
    for entries, message in ((header, sound), (header | change, other)):
        text = json.dumps(entries, separators=(",", ":"))
        (tmp_path / "file").write_bytes(headed(text.encode()) + bytes(16))
        with pytest.raises(ValueError, match=message) as error:
            HDIForestRegressor.load(tmp_path / "file")
        assert str(error.value).isprintable()


@pytest.mark.parametrize(
    "respelled",
    [
        lambda text: text.replace('","shape"', '", "shape"', 1),
        lambda text: text.replace('"numbers"', '"number\\u0073"', 1),
        lambda text: text.replace('"data_offsets":[0,', '"data_offsets":[00,', 1),
        lambda text: text.replace("}}", "}},", 1),
        lambda text: text.rstrip() + "\n",
    ],
)
def test_headers_that_safetensors_does_not_write(path, respelled):
    whole = path.read_bytes()
    start = 8 + struct.unpack("<Q", whole[:8])[0]
    text = whole[8:start].decode()
    assert respelled(text) != text
    path.write_bytes(headed(respelled(text).encode()) + whole[start:])
    with pytest.raises(ValueError, match="is not a model file, or is damaged: "):
        HDIForestRegressor.load(path)


def test_truncated_files(path):
    whole = path.read_bytes()
    for length in RNG.integers(0, len(whole), 50):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="is not a model file, or is damaged"):
            HDIForestRegressor.load(path)


def test_changed_bytes(path):
    whole = path.read_bytes()
    header = 8 + struct.unpack("<Q", whole[:8])[0]
    for place in (*range(1, header, 2), *RNG.integers(header, len(whole), 200)):
        changed = bytearray(whole)
        changed[place] ^= 1 << RNG.integers(8)
        path.write_bytes(changed)
        is_mapped = place % 4 == 1
        with pytest.raises(ValueError):  # a copy is checked whole
            HDIForestRegressor.load(path, verify=is_mapped, mapped=is_mapped)
    path.write_bytes(whole)
    with_metadata(path, "3 9.9 9.9")  # a header that might be one
    with pytest.raises(ValueError, match="damaged: its checksum does not match its contents"):
        HDIForestRegressor.load(path)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder of models with another mean, with folds, with calibrated outputs and with tails."""
    folder = tmp_path_factory.mktemp("saved")
    rng = np.random.default_rng(0)
    rows, noise = rng.random((120, 2)), rng.normal(size=120)
    forest = RandomForestRegressor(60, min_samples_leaf=3, random_state=0)
    model = HDIForestRegressor(forest, calibration=False).fit(rows, 9 * rows[:, 0] + noise)
    with families("stacked"):
        model.calibrate(coverage=0.8, mean="boosting", random_state=0).save(folder / "mean")
    forest = RandomForestRegressor(5, min_samples_leaf=9, random_state=0)
    model = HDIForestRegressor(forest, calibration=False).fit(X, Y)
    model.calibrate(coverage=0.8, method=CVPlus(2), random_state=0).save(folder / "folds")
    model = HDIForestRegressor(RandomForestRegressor(60, random_state=0), calibration=[0.8])
    model.fit(X, np.column_stack([Y, -(Y**2)])).save(folder / "outputs")
    lives = np.empty(150, [("event", bool), ("time", float)])
    lives["event"], lives["time"] = rng.random(150) < 0.9, rng.exponential(size=150)
    forest = RandomForestRegressor(60, min_samples_leaf=10, random_state=0)
    model = HDISurvivalForest(forest, random_state=0).fit(X, lives)
    model.calibrate(coverage=[0.5, 0.8]).save(folder / "tails")
    return folder


NUMBERS, FACTS = "calibration.numbers", "calibration.facts"
# Places among the numbers of a calibration of one level without a lattice and groups.
N_KNOWN, LEVELS_AT = 9, 15


def without_output(tensors):
    for name in [name for name in tensors if name.startswith("output1.calibration.")]:
        del tensors[name]


HOSTILE = {
    "mean": [
        (with_value("mean.share", 0, 1.5), r"share must be in \[0, 1\]"),
        (with_array("mean.share", [[0.5]]), r"share must be float64 of shape \(1\), got"),
        (with_value("mean.range", slice(1, None), [2.0, 1.0]), "low must be at most high"),
        (with_value("mean.range", 0, np.nan), "must be finite"),
        (without("mean.range"), "the tensor mean.range is missing"),
        (without("mean.share"), "the tensor mean.share is missing"),
        (without("mean.values"), "values is missing"),
        (without("mean.line"), "line is missing"),
        (without("centred.leaf_means"), "leaf_means is missing"),
        (without("mean.forest.nodes"), "nodes"),
        (with_array("mean.values", np.full(3, np.nan)), "leaf_values must be"),
        (with_array("mean.more", np.zeros(1)), "tensor 'mean.more', which"),
    ],
    "calibration": [
        (with_value(NUMBERS, 0, 2), "of another version; upgrade hdicore"),
        (with_value(NUMBERS, 1, 4), "method must be a whole number from 0 to 3"),
        (with_value(NUMBERS, 2, 0.5), "family must be a whole number from 0 to 2"),
        (with_value(NUMBERS, 3, 1e300), "the number of levels must be a whole number"),
        (with_value(NUMBERS, 3, 0), "coverages must be one or more and ascend"),
        (with_value(NUMBERS, 4, 2), "clip must be a whole number"),
        (with_value(NUMBERS, N_KNOWN, 3), "it is longer than it says"),
        (with_value(NUMBERS, 10, np.nan), "low and high must be finite"),
        (with_value(NUMBERS, LEVELS_AT, 1), r"coverage must be in \(0, 1\)"),
        (with_value(NUMBERS, LEVELS_AT + 1, 3), "kind must be one with two ends"),
        (with_value(NUMBERS, LEVELS_AT + 2, 0), r"level must be in \(0, 1\)"),
        (with_value(NUMBERS, LEVELS_AT + 3, np.nan), "q_hat must be a number or infinite"),
        (with_value(NUMBERS, LEVELS_AT + 4, 0), "must ascend between 0 and 1"),
        (with_value(NUMBERS, -1, np.nan), "must be numbers and ascend"),
        (lambda tensors: tensors.update({NUMBERS: tensors[NUMBERS][:-1]}), "it ends too early"),
        (with_array(NUMBERS, []), "it ends too early"),
        (with_array(NUMBERS, [[1.0]]), "numbers must be float64 of shape"),
        (without(NUMBERS), "the tensor calibration.numbers is missing"),
        (without(FACTS), "facts must be"),
        (with_text(FACTS, "[" * 99999), "facts must be JSON"),
        (with_text(FACTS, "[]"), "facts must be an object"),
        (with_text(FACTS, "{}"), "its facts are not what this version writes"),
        (with_facts(FACTS, lambda facts: facts.update(n=0)), "n must be a whole number"),
        (with_facts(FACTS, lambda facts: facts.update(levels=[])), "zip"),
        (with_facts(FACTS, lambda facts: facts["levels"][0].update(more=1)), "more"),
        (with_facts(FACTS, lambda facts: facts["levels"][0].update(realised=2)), "realised must"),
        (with_facts(FACTS, lambda facts: facts["levels"][0].update(cross_check=3)), "its facts"),
        (with_facts(FACTS, lambda facts: facts.update(min_samples_leaf=0)), "min_samples_leaf"),
    ],
    "folds": [
        (with_number("n_folds", 1), "fit the folds|'fold1"),
        (with_number("n_folds", 0), "'fold|fit the folds"),
        (with_number("n_folds", 3), "the tensor numbers is missing"),
        (with_number("fold0.weights", 7), "numbers of a model must be in range"),
        (with_number("fold0.n_folds", 1), "fold0 must be a forest without folds and outputs"),
        (with_number("fold0.n_outputs", 1), "fold0 must be a forest without folds and outputs"),
        (without("fold1.forest.nodes"), "must contain 'nodes'"),
        (with_array("fold01.x", np.zeros(1)), "'fold01.x', which"),
        (with_array("fold1.x.y", np.zeros(1)), "tensor 'fold1.x.y', which"),
        (without("calibration.scores"), "calibration: the tensor calibration.scores is missing"),
        (without("calibration.sizes"), "calibration: the tensor calibration.sizes is missing"),
        (with_array("calibration.sizes", np.array([7])), "scores must be"),
        (with_array("calibration.sizes", np.array([-7, 7])), "sizes of folds must not be negative"),
        (with_value(NUMBERS, 18, 3.0), "its numbers are not those of its scores"),
        (with_value(NUMBERS, 17, 0.5), "its numbers are not those of its scores"),
    ],
    "outputs": [
        (with_number("n_outputs", 1), "outputs must be as many as the targets, 2"),
        (with_number("n_outputs", 0), "has the tensor '.*', which"),
        (without("boxes.facts"), "facts must be"),
        (
            with_facts("boxes.facts", lambda facts: facts["levels"].pop()),
            "coverages of boxes must be those",
        ),
        (without_output, "each of several outputs must have a cal"),
        (with_number("output0.n_outputs", 1), "output0 must be a forest without folds and outp"),
        (without("boxes.q_hat"), "the tensor boxes.q_hat is missing"),
        (with_value("boxes.q_hat", 0, np.nan), "the quantiles of boxes must be"),
        (without("output1.forest.nodes"), "must contain 'nodes'"),
    ],
    "tails": [
        (with_value("tails.levels", slice(None), 2.0), "levels must lie in"),
        (with_change("tails.levels", lambda levels: np.delete(levels, 5, 1)), "levels must"),
        (with_change("tails.levels", lambda levels: levels[::-1]), "ascend"),
        (
            with_change("tails.levels", lambda levels: np.insert(levels[:, :5], 5, 2, 1)),
            "levels must lie in",
        ),
        (with_array("tails.numbers", [0, np.nan, 3.0]), "numbers must be those"),
        (with_value("tails.numbers", 0, 2), "numbers must be those"),
        (without("training.event"), r"training\.event must be there"),
        (without("censoring0.index.events"), "tails must be those of forests of events"),
        (without("index.events", "training.event"), "tails must be those of forests of events"),
    ],
}


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [(part, *case) for part, cases in HOSTILE.items() for case in cases],
)
def test_hostile_parts_of_calibrated_models(saved, tmp_path, part, change, message):
    name = "mean" if part == "calibration" else part
    path = rewritten(saved / name, change, to=tmp_path / "model.hdi")
    message = f"calibration.*{message}" if part == "calibration" else message
    kind = HDISurvivalForest if part == "tails" else HDIForestRegressor
    with pytest.raises(ValueError, match=message) as error:
        kind.load(path)
    assert str(error.value).isprintable()


def test_what_nothing_reads_does_no_harm(saved, tmp_path):
    change = with_facts(FACTS, lambda facts: facts.update(groups=3))
    HDIForestRegressor.load(rewritten(saved / "mean", change, to=tmp_path / "one"))
    change = with_array("output0.training.X", np.zeros((3, 1), np.float32))
    two = HDIForestRegressor.load(rewritten(saved / "outputs", change, to=tmp_path / "two"))
    assert two.oob_.interval(0.8).shape == (len(X), 2, 2)


@pytest.mark.parametrize("version", [1, 2])
def test_older_formats_name_their_version(path, version):
    facts = {"format_version": version, "hdicore": "0.0.9", "weights": "all"}
    with_metadata(path, json.dumps({"facts": facts, "sha256": "0"}))
    with pytest.raises(ValueError, match=rf"format {version}, written by hdicore 0\.0\.9; .* make"):
        HDIForestRegressor.load(path)


@pytest.mark.parametrize(
    "value", ["", "3", "3 0.1 ", "3  1.5", "3 0.1 1.5 x", "x", "{", "-3 0.1 1.5", "99 9.9 2.0"]
)
def test_other_versions(path, value):
    with_metadata(path, value)
    told = "format 99, written by hdicore 9.9;" if value.startswith("99") else "format .* hdicore "
    with pytest.raises(ValueError, match=f"has {told}.* reads format 3 of "):
        HDIForestRegressor.load(path)


@pytest.mark.parametrize(
    "change",
    [
        *(with_number(name, -1) for name in NUMBER_NAMES),
        *(with_number(name, 2) for name in NUMBER_NAMES[3:7]),
        with_number("weights", 4),
        with_number("n_features", 3),
        with_number("n_features", 0),
        with_number("n_features", 2**40),
        with_number("n_training_rows", 10**9),
        with_number("scalar_output", 0),
        without("numbers"),
        with_array("numbers", np.zeros(3, np.int64)),
        with_array("numbers", np.zeros(9)),
        with_array("unheard_of", np.zeros(3)),
        with_text("feature_names", "a\0b\0c\0"),
        with_text("feature_names", "a\0b\0c\0d"),
        with_array("feature_names", np.full(4, 0xFF, np.uint8)),
        with_text("target_names", "a\0b\0"),
        with_text("training_digest", "00"),
        without("training_digest"),
        without("feature_range"),
        with_array("feature_range", np.zeros((2, 3), np.float32)),
        with_text("encoder", "[]"),
        with_text("encoder", "{}"),
        with_text("encoder", '{"columns": [], "ids": []}'),
        # The model has no names.
        with_text(
            "encoder",
            json.dumps({"columns": [{"name": n, "kind": "number"} for n in "abcd"], "ids": []}),
        ),
        with_text("steps", '{"library": null}'),
    ],
)
def test_what_does_not_fit(path, change):
    rewritten(path, change)
    for verify in (False, True):
        with pytest.raises(
            ValueError, match=f"^{re.escape(str(path))} is not a valid model: ."
        ) as e:
            HDIForestRegressor.load(path, verify=verify)
        assert len(str(e.value)) < len(str(path)) + 200


def test_names_with_a_zero_are_refused_at_save(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b\0c", "d", "e"])
    model = HDIForestRegressor(RandomForestRegressor(3), calibration=False).fit(frame, Y)
    with pytest.raises(ValueError, match=r"names of features must be without .*, got 'b\\x00c'"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_more_targets_than_training_rows(model, path):
    model.save(path, training_rows=False)
    rewritten(path, with_number("n_training_rows", 3))
    with pytest.raises(ValueError, match="more distinct targets than there were training rows"):
        HDIForestRegressor.load(path)


NAMES = ["\x1b[31mred", "two\nlines\r", "\u202eright to left \ud800", "plain é"]


def test_what_a_terminal_obeys_is_escaped(path, capsys):
    rewritten(path, with_text("feature_names", "".join(f"{name}\0" for name in NAMES)))
    text = output_of(capsys, ["inspect", path])
    assert all(line.isprintable() for line in text.split("\n"))
    assert r"4: \x1b[31mred, two\nlines\r, \u202eright to left \ud800, plain é" in text


def test_errors_that_quote_a_file_are_escaped_and_short(path):
    for value in ("99 \x1b[2J" + "long" * 100 + " 1", "\x1b[2J" * 100, "9" * 1000):
        with_metadata(path, value)
        with pytest.raises(ValueError, match="model") as error:
            HDIForestRegressor.load(path)
        assert str(error.value).isprintable()
        assert len(str(error.value)) < len(str(path)) + 400


def test_names_of_tensors_are_escaped(path):
    rewritten(path, with_array("a" * 500, np.zeros(3)))
    with pytest.raises(ValueError, match="which this version does not know") as error:
        HDIForestRegressor.load(path)
    assert len(str(error.value)) < len(str(path)) + 300
    header = b'{"\\u001b[2J":{"dtype":"\\u001b[2J","shape":[1],"data_offsets":[0,1]}}'
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"x")
    with pytest.raises(ValueError, match="is not a model file") as error:
        HDIForestRegressor.load(path)
    assert str(error.value).isprintable()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_value("training.X", 0, -np.inf), "training.X must be finite"),
        (with_value("training.y", 3, np.inf), "training.y must be finite"),
        (with_value("training.y", slice(None), 1e9), "training.y lacks targets"),
        (with_value("training.sample_weight", 5, -1), "training.sample_weight must be finite"),
        (with_value("training.sample_weight", slice(None), 0), "not all zero"),
        (with_value("training.counts", (slice(None), 2), 0), "with a row for every tree"),
        (
            with_change("training.counts", lambda n: np.full(n.shape, 2**31, np.uint32)),
            r"training.counts must be below 2\*\*31",
        ),
        (without("training.X"), "the tensor training.X is missing"),
        (without("training.y"), "the tensor training.y is missing"),
        (without("forest.nodes"), "forest: arrays must contain 'nodes'"),
        (with_array("forest.nodes", np.zeros((9, 3), np.uint32)), "nodes"),
    ],
)
def test_tensors_that_do_not_fit(model, path, change, message):
    clone(model).fit(X, Y, np.linspace(0.5, 2, len(Y))).save(path)
    rewritten(path, change)
    with pytest.raises(ValueError, match=f"is not a valid model: .*{message}"):
        HDIForestRegressor.load(path, verify=True)


def test_missing_values_where_none_are_allowed(path):
    change = with_value("training.X", 0, np.nan)
    rewritten(path, change)
    HDIForestRegressor.load(path, verify=True)
    rewritten(path, with_number("allow_nan", 0))
    with pytest.raises(ValueError, match=r"training\.X must be finite"):
        HDIForestRegressor.load(path, verify=True)


@pytest.mark.parametrize(
    "name",
    [
        *("forest.nodes", "forest.tree_offsets", "forest.leaf_nodes"),
        *("index.leaf_offsets", "index.atoms", "index.tree_begin", "index.leaf_begin"),
        *("index.ranks", "index.units"),
    ],
)
def test_hostile_tensors(model, path, name):
    if name == "index.units":  # stored where rows do not weigh alike
        weighted = clone(model).fit(X, Y, np.linspace(0.5, 2, len(Y)))
        weighted.save(path)
    whole = path.read_bytes()
    for _ in range(20):
        path.write_bytes(whole)

        def change(tensors):
            values = tensors[name].copy()
            flat = values.reshape(-1).view(np.uint8)
            flat[RNG.integers(flat.size, size=2)] = RNG.integers(256, size=2)
            tensors[name] = values

        rewritten(path, change)
        try:
            loaded = HDIForestRegressor.load(path, verify=True)
        except ValueError:
            continue
        # What the engine accepts, it can score.
        assert loaded.predict_interval(X, LEVELS).shape == (150, 2, 2)


@pytest.fixture(params=[0, 1 << 40], ids=["checked whole", "checked by query"])
def unchecked_rows(request):
    """Rows that are scored before a model is checked whole."""
    _core._set_unchecked_rows(request.param)
    yield request.param
    _core._set_unchecked_rows(-1)


@pytest.mark.filterwarnings("ignore:.*no out-of-bag interval")
def test_models_are_the_same_however_they_are_checked(model, path, unchecked_rows):
    opened = HDIForestRegressor.load(path)
    expected = contents(model)
    for _ in range(2):
        for name, values in contents(opened).items():
            np.testing.assert_array_equal(values, expected[name], err_msg=name)


# In which part of a file, and in which words, damage is told.
DAMAGED = {
    "forest.nodes": (with_value("forest.nodes", slice(None), 2**32 - 1), "forest: tree . is dam"),
    "index.ranks": (
        with_value("index.ranks", slice(None), 2**16 - 1),
        "index: leaf .* of tree . is dam",
    ),
    "index.leaf_begin": (
        with_value("index.leaf_begin", slice(1, None), 2**31),
        "index: leaf_begin of tree .",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("n_threads", [1, 3])
def test_damage_that_queries_find_is_told_with_the_file_and_the_part(
    path, name, n_threads, unchecked_rows
):
    change, message = DAMAGED[name]
    rewritten(path, change)
    message = f"^{re.escape(str(path))} is not a valid model: {message}"
    opened = HDIForestRegressor.load(path, n_jobs=n_threads)
    rows = np.tile(X, (100, 1))
    scorer = opened.scorer_
    for ask in (
        lambda: opened.predict_interval(X[:1]),
        lambda: opened.predict_interval(rows),
        lambda: opened.predict(rows),
        lambda: opened.predict_quantiles(rows, 0.5, interpolation="linear"),
        lambda: opened.predict_cdf(X, Y),
        lambda: scorer.weights(X),
        lambda: scorer.proximities(X),
        lambda: scorer.n_samples(X),
        lambda: pickle.dumps(opened),
        lambda: opened.save(path.with_name("again")),
    ):
        for _ in range(2):
            with pytest.raises(ValueError, match=message) as error:
                ask()
            assert str(error.value).isprintable()
    with pytest.raises(ValueError, match=r"a\.model is not a valid model: .*damaged"):
        HDIForestRegressor.load(path, verify=True)
    assert run(["inspect", path]) == 1
    assert not path.with_name("again").exists()


def test_damaged_training_rows_are_told_when_they_are_needed(model, path):
    rewritten(path, with_value("training.X", 0, np.inf))
    opened = HDIForestRegressor.load(path)
    assert "HDIForestRegressor" in opened._repr_html_()
    np.testing.assert_array_equal(opened.predict(X), model.predict(X))
    message = f"^{re.escape(str(path))} is not a valid model: training.X must be finite"
    for ask in (
        lambda: opened.predict_weights(X),
        lambda: opened.oob_.interval(0.9),
        lambda: opened.save(path.with_name("again")),
        lambda: pickle.dumps(opened),
        lambda: opened.calibrate(coverage=0.8),
    ):
        with pytest.raises(ValueError, match=message):
            ask()


def test_damaged_leaf_means_are_told_when_they_are_needed(tmp_path, saved):
    change = with_value("centred.leaf_means", slice(None), np.nan)
    path = rewritten(saved / "mean", change, to=tmp_path / "stacked.hdi")
    opened = HDIForestRegressor.load(path)
    with pytest.raises(
        ValueError,
        match=r"valid model: centred\.leaf_means: leaf_means must be finite numbers, but that of "
        "leaf 0 of tree 0 is nan",
    ):
        opened.predict_interval(np.zeros((1, 2)), 0.8)
    with pytest.raises(ValueError, match="finite"):
        HDIForestRegressor.load(path, verify=True)


def test_checksums_of_small_arrays_are_checked_at_load_and_of_large_ones_on_demand(tmp_path):
    path = tmp_path / "large"
    rows = np.tile(X, (15, 1))
    forest = RandomForestRegressor(30, random_state=0).fit(rows, rows[:, 0])
    HDIForestRegressor.from_forest(forest, rows, rows[:, 0]).save(path)
    whole = path.read_bytes()
    start = 8 + struct.unpack("<Q", whole[:8])[0]
    header = json.loads(whole[8:start])
    for name in ("index.atoms", "index.tree_begin", "training.counts"):
        begin, end = header[name]["data_offsets"]
        is_large = end - begin > 1 << 16
        changed = bytearray(whole)
        changed[start + begin] ^= 1
        path.write_bytes(changed)
        if is_large:
            HDIForestRegressor.load(path).predict(X)
        with pytest.raises(ValueError, match=f"the checksum of {name} does not match"):
            HDIForestRegressor.load(path, verify=is_large)
    assert is_large


@pytest.mark.parametrize("change", [lambda a: a[:-1], lambda a: a[None], lambda a: a.astype("f4")])
@pytest.mark.parametrize("group", ["forest.", "index.", "training."])
def test_tensors_of_other_shape_or_type(path, change, group):
    whole = path.read_bytes()
    for name in load_file(path):
        if not name.startswith(group):
            continue
        path.write_bytes(whole)
        before = load_file(path)[name]
        after = change(before)
        if after.shape == before.shape and after.dtype == before.dtype:
            continue
        rewritten(path, with_array(name, after))
        with pytest.raises(ValueError, match="is not a valid model"):
            HDIForestRegressor.load(path)


IN_USE = """
import copy, os, pickle, sys, time
import numpy as np
from sklearn.ensemble import RandomForestRegressor
from hdiforest import HDIForestRegressor, LeafModel, from_leaves

folder = sys.argv[1]
rng = np.random.default_rng(0)
X, rows = rng.random((200, 4)), rng.random((50, 4))
forest = RandomForestRegressor(60, min_samples_leaf=3, random_state=0)
one = HDIForestRegressor(forest, calibration=[0.9]).fit(X, 5 * X[:, 0] + rng.normal(size=200))
apply = one.estimator_.apply
other = HDIForestRegressor(RandomForestRegressor(9), calibration=False).fit(X, X[:, 0])

def check(how, warm):
    one.save(folder + "/model")
    other.save(folder + "/new")
    from_leaves(apply, X, X[:, 0]).save(folder + "/leaves")
    time.sleep(0.05)  # times of files have a resolution

    model = HDIForestRegressor.load(folder + "/model")
    leaves = LeafModel.load(folder + "/leaves", apply)
    asks = {
        "predict": lambda: model.predict(rows),
        "interval": lambda: model.predict_interval(rows),
        "table": lambda: model.predict_interval(rows, output="pandas"),
        "quantiles": lambda: model.predict_quantiles(rows, 0.5),
        "cdf": lambda: model.predict_cdf(rows, rows[:, 0]),
        "weights": lambda: model.predict_weights(rows),
        "sample": lambda: model.sample(rows),
        "oob": lambda: model.oob_.interval(),
        "save": lambda: model.save(folder + "/again"),
        "pickle": lambda: pickle.dumps(model),
        "copy": lambda: copy.copy(model),
        "calibrate": lambda: model.calibrate(coverage=0.9),
        "calibrated": lambda: model.predict_interval(rows, 0.9),
        "leaves": lambda: leaves.predict_interval(rows),
        "leaves' save": lambda: leaves.save(folder + "/again"),
        "leaves' pickle": lambda: pickle.dumps(leaves),
    }
    if warm:
        for ask in asks.values():
            ask()
    copies = {"copied": copy.copy(model), "pickled": pickle.loads(pickle.dumps(model))}
    expected = {n: (c.predict_interval(rows), c.sample(rows, 2, 0)) for n, c in copies.items()}
    for name in ("model", "leaves"):
        size = os.path.getsize(folder + "/" + name)
        if how == "truncated":
            os.truncate(folder + "/" + name, 4096)
        else:
            new = open(folder + "/new", "rb").read()
            with open(folder + "/" + name, "r+b") as file:
                file.write((new * 9)[:size])
    for name, ask in asks.items():
        try:
            ask()
        except OSError as error:
            assert "was written to in place while it was in use: load it again" in str(error), name
            assert str(error).startswith(folder) and str(error).isprintable(), name
        else:
            raise AssertionError(name + " went on")
    assert "scorer_" in dir(model) and "index_" in dir(leaves) and model._repr_html_()
    assert repr(model) and repr(leaves) and (model.n_outputs_, leaves.n_outputs_) == (1, 1)
    for name, c in copies.items():
        np.testing.assert_array_equal(c.predict_interval(rows), expected[name][0])
        np.testing.assert_array_equal(c.sample(rows, 2, 0), expected[name][1])
        c.predict_weights(rows)

check("overwritten", warm=True)
check("truncated", warm=False)
"""


def test_a_file_that_is_written_to_in_place_is_refused_by_whatever_reads_it(tmp_path):
    run_python(IN_USE, tmp_path)


def in_place(path):
    path.write_bytes(b"something else" * 1000)


def by_renaming(path):
    in_place(path.with_name("new"))
    path.with_name("new").replace(path)


def by_truncating(path):
    os.truncate(path, 100)


def used(model):
    """Everything a model of some kind can be asked, as arrays."""
    if isinstance(model, LeafModel):
        return {"interval": model.predict_interval(X), "mean": model.predict(X)}
    if getattr(getattr(model, "calibration_", None), "method", None) == "cv+":
        return {"interval": model.predict_interval(X, 0.8), "scores": model.calibration_.scores[0]}
    return contents(model)


@pytest.mark.filterwarnings("ignore:.*no out-of-bag interval")
@pytest.mark.parametrize("kind", ["model", "folds", "leaves"])
@pytest.mark.parametrize(
    ("mapped", "replace_file"),
    [
        *((True, change) for change in (by_renaming, os.unlink)),
        *((False, change) for change in (in_place, by_truncating)),
    ],
)
def test_what_does_not_harm_a_loaded_model(model, saved, kind, mapped, replace_file, tmp_path):
    path = tmp_path / "model"
    if kind == "leaves":
        from_leaves(model.estimator_.apply, X, Y).save(path)
        loaded = LeafModel.load(path, model.estimator_.apply, mapped=mapped)
        expected = used(LeafModel.load(path, model.estimator_.apply))
    else:
        shutil.copy(saved / kind, path) if kind == "folds" else model.save(path)
        loaded = HDIForestRegressor.load(path, mapped=mapped)
        expected = used(HDIForestRegressor.load(path))
    replace_file(path)
    for name, values in used(loaded).items():
        np.testing.assert_array_equal(values, expected[name], err_msg=name)
    again = pickle.loads(pickle.dumps(loaded))
    np.testing.assert_array_equal(used(again)["interval"], expected["interval"])


def test_a_file_that_changes_while_it_is_read_is_refused(path, monkeypatch):
    def slow(*arguments, digest=hashlib.sha256, **options):
        in_place(path)
        return digest(*arguments, **options)

    monkeypatch.setattr(hashlib, "sha256", slow)
    with pytest.raises(ModelReplacedError, match="was written to in place while it was in use"):
        HDIForestRegressor.load(path, mapped=False)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no /proc on this platform")
def test_descriptors_go_with_the_models(path):
    def n_descriptors():
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    damaged = path.with_name("damaged")
    damaged.write_bytes(path.read_bytes()[:-1])
    before = n_descriptors()
    for _ in range(20):
        loaded = HDIForestRegressor.load(path)
        copies = [copy.copy(loaded), copy.deepcopy(loaded), pickle.loads(pickle.dumps(loaded))]
        HDIForestRegressor.load(path, mapped=False)
        with pytest.raises(ValueError, match="damaged"):
            HDIForestRegressor.load(damaged)
    assert n_descriptors() <= before + 2  # of the last one: its own, and that of numpy's memmap
    del loaded
    assert n_descriptors() == before
    assert len({one.predict(X).tobytes() for one in copies}) == 1


DESCRIPTORS = """
import gc, os, shutil, sys
import numpy as np
from hdiforest import HDIForestRegressor

path, rows = shutil.copy(sys.argv[1], sys.argv[1] + ".copy"), np.zeros((3, 4))
model = HDIForestRegressor.load(path)
expected = model.predict(rows)

def refused():
    try:
        model.predict(rows)
    except OSError as error:
        return "in place" in str(error)

def child(work):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if work() else 1)
    assert os.waitpid(pid, 0)[1] == 0

def use_and_close():
    global model
    same = (model.predict(rows) == expected).all()
    del model
    gc.collect()
    return same

child(use_and_close)
assert (model.predict(rows) == expected).all()  # its descriptor is still open
os.truncate(path, 100)
child(refused)
assert refused()

loaded = HDIForestRegressor.load(sys.argv[1])
for name in os.listdir("/proc/self/fd"):
    link = "/proc/self/fd/" + name
    if os.path.islink(link) and os.readlink(link) == sys.argv[1]:
        os.close(int(name))
try:
    loaded.predict(rows)
except OSError as error:
    print(error, flush=True)
os._exit(0)
"""


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no /proc on this platform")
def test_forked_processes_look_for_themselves_and_closed_descriptors_are_told(path):
    said = run_python(DESCRIPTORS, path)
    assert re.match("cannot see whether .*model has changed: Bad file desc", said)
