"""Model files answer in C what they answer in Python, bit for bit, or are refused."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

from hdiforest import HDIForestRegressor, HDISurvivalForest, LeafModel, fit_table
from hdiforest.calibration import CVPlus
from hdiforest.monitoring import recalibrate
from hdiforest.serving._parts import Origin, Parts, as_facts, as_text
from hdiforest.serving._serialization import from_arrays

from ...model_files import (
    arrays_of,
    rewritten,
    with_array,
    with_metadata,
    with_text,
    with_value,
)
from ...oracle import ROOT, families, leaf_sizes, run
from ..fuzz import corpus
from ..fuzz.engine import COMPILER, SANITIZE, SOURCES

pytest.importorskip("safetensors.numpy")
C_COMPILER = shutil.which("cc")
pytestmark = [
    pytest.mark.skipif(None in (COMPILER, C_COMPILER), reason="no compilers (cc and c++) found"),
    pytest.mark.skipif(sys.platform == "win32", reason="the flags are those of GCC and Clang"),
    pytest.mark.filterwarnings("ignore"),  # of few rows and trees
]
C99 = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{ROOT}/src_cpp/include")
MAPPED, COPIED = 0, 1
USUAL, CALIBRATED = -1, -2
KINDS = {"hdi": 0, "equal_tailed": 1}
INVALID, FAILED = 1, 3

RNG = np.random.default_rng(0)
N = 320
X = RNG.normal(size=(N, 4)).astype(np.float32)
X[:, 3] = RNG.integers(0, 3, N)
Y = X[:, 0] + RNG.normal(size=N) * (1 + (X[:, 1] > 0))
NEW = RNG.normal(size=(60, 4))
NEW[:, 3] = RNG.integers(0, 4, 60)
HOLES = np.where(RNG.random(NEW.shape) < 0.1, np.nan, NEW)
LEVELS = [0.5, 0.8, 0.9]


class Answer(NamedTuple):
    """What the program says of one file."""

    status: int
    message: str
    intervals: np.ndarray | None = None
    means: np.ndarray | None = None
    by_leaves: np.ndarray | None = None


@pytest.fixture(scope="module")
def program(sanitized_engine, tmp_path_factory):
    """The program that asks models, with the engine in it, under sanitizers."""
    folder = tmp_path_factory.mktemp("ask_models")
    made, source = folder / "ask_models.o", Path(__file__).parent / "ask_models.c"
    run(C_COMPILER, *C99, *SANITIZE, "-c", source, "-o", made)
    run(COMPILER, *SANITIZE, "-pthread", made, sanitized_engine, "-o", folder / "ask_models")
    return folder / "ask_models"


@pytest.fixture
def ask(program, tmp_path):
    """Ask files for intervals of rows; each gives an `Answer`."""

    def asked(
        paths, rows, levels, *, opening=MAPPED, kind=USUAL, n_threads=1, by=None, other_means=None
    ):
        rows.tofile(tmp_path / "rows")
        beside = [written_numbers(tmp_path / "by", by)]
        beside.append(written_numbers(tmp_path / "other_means", other_means))
        given = (rows.dtype.char, *rows.shape, opening, kind, n_threads, *beside, *levels)
        command = [program, tmp_path / "rows", *given]
        lines = "".join(f"{path}\n" for path in paths)
        done = subprocess.run(list(map(str, command)), input=lines.encode(), capture_output=True)
        assert done.returncode == 0, done.stderr.decode()[-3000:]
        return list(answers(done.stdout, len(paths), len(rows), len(levels)))

    return asked


def written_numbers(path, numbers):
    if numbers is None:
        return "-"
    np.asarray(numbers, dtype=np.float64).tofile(path)
    return path


def answers(output, n_paths, n_rows, n_levels):
    at = 0

    def numbers(*shape):
        nonlocal at
        found = np.frombuffer(output, np.float64, int(np.prod(shape)), at).reshape(shape)
        at += found.nbytes
        return found

    for _ in range(n_paths):
        status = int.from_bytes(output[at : at + 4], sys.byteorder)
        message = output[at + 4 : at + 260].split(b"\0")[0].decode()
        at += 260
        if status:
            yield Answer(status, message)
            continue
        d = int(numbers(1)[0])
        shape = (n_rows, d, 2, n_levels)
        yield Answer(0, "", numbers(*shape), numbers(n_rows, d), numbers(*shape))
    assert at == len(output)


def same(found, expected):
    np.testing.assert_array_equal(
        found.view(np.uint64), np.ascontiguousarray(expected).reshape(found.shape).view(np.uint64)
    )


def forest(leaf=5, n_trees=100, **options):
    return RandomForestRegressor(n_trees, min_samples_leaf=leaf, random_state=0, **options)


def raw(leaf=5, y=Y, rows=X, n_trees=20, sample_weight=None, weights="all", **options):
    model = HDIForestRegressor(forest(leaf, n_trees, **options), weights=weights, calibration=False)
    return model.fit(rows, y, sample_weight)


def calibrated(y=Y, leaf=5, **options):
    model = HDIForestRegressor(forest(leaf), calibration=False).fit(X, y)
    return model.calibrate(coverage=LEVELS, **options)


def split(n=200, **options):
    return raw(rows=X[:n], y=Y[:n]).calibrate(X[n:], Y[n:], coverage=LEVELS, **options)


def pruned():
    with leaf_sizes(20):
        return calibrated(leaf=1)


def of_family(family):
    with families(family):
        return calibrated()


def of_kind(kind):
    """Of other bases, with the quantiles of those that were selected."""
    model = calibrated()
    levels = [
        replace(level, base=level.base._replace(kind=kind)) for level in model.calibration_.levels
    ]
    result = replace(model.calibration_, levels=tuple(levels))
    return model._attach(replace(model._fitted.calibrated, result=result))


def by_folds(n_trees, **options):
    """Of forests that are calibrated out of bag, too, if they have trees enough for it."""
    model = raw(n_trees=n_trees, **options).calibrate(method=CVPlus(3), coverage=LEVELS)
    assert {fold.calibration is None for fold in model._fitted.calibrated.folds} == {n_trees < 60}
    return model


def recalibrated():
    return recalibrate(split(), X[:60], Y[:60] + 1, window=50)


TWO = np.column_stack([Y, -(Y**2)])
MODELS = {
    "leaf_1": lambda: raw(1),
    "leaf_5": lambda: raw(5),
    "leaf_50": lambda: raw(50),
    "two_outputs": lambda: raw(y=TWO),
    "missing": lambda: raw(rows=np.where(RNG.random(X.shape) < 0.1, np.float32("nan"), X)),
    "weighted": lambda: raw(sample_weight=RNG.random(N)),
    "inbag": lambda: raw(weights="inbag"),
    "oob": lambda: raw(1, weights="oob", n_trees=6),
    "out_of_bag": lambda: calibrated(),
    "pruned": pruned,
    "centred": lambda: of_family("centred"),
    "raw": lambda: of_family("raw"),
    "hdi": lambda: of_kind("hdi"),
    "equal_tailed": lambda: of_kind("equal_tailed"),
    "lattice": lambda: calibrated(Y.round()),
    "fine_lattice": lambda: calibrated((3 * Y).round() / 10),
    "groups": lambda: calibrated(by=3),
    "not_clipped": lambda: split(80),
    "two_calibrated": lambda: calibrated(TWO),
    "two_by_groups": lambda: calibrated(TWO, by=3),
    "split": lambda: split(),
    "recalibrated": recalibrated,
    "folds": lambda: by_folds(n_trees=100),
    "weighted_folds": lambda: by_folds(n_trees=100, sample_weight=1 + RNG.random(N)),
    "folds_on_a_lattice": lambda: by_folds(n_trees=100, y=Y.round()),
    "folds_of_few_trees": lambda: by_folds(n_trees=20),
    "left_out": lambda: raw(n_trees=150).calibrate(method="jackknife+", coverage=LEVELS),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A file of each model, by its name, as it is asked for."""
    folder = tmp_path_factory.mktemp("models")

    def file_of(name):
        if not (folder / name).exists():
            MODELS[name]().save(folder / name)
        return folder / name

    return file_of


@pytest.mark.parametrize("name", MODELS)
def test_a_model_answers_as_in_python(name, files, ask):
    path = files(name)
    model = HDIForestRegressor.load(path)
    rows = HOLES if name == "missing" else NEW
    for X_new, opening in ((rows, MAPPED), (rows.astype(np.float32), COPIED)):
        (found,) = ask([path], X_new, LEVELS, opening=opening, n_threads=2)
        assert found.message == ""
        same(found.intervals, model.predict_interval(X_new, LEVELS))
        same(found.means, model.predict(X_new))
        same(found.by_leaves, model.predict_interval(X_new, LEVELS, kind="hdi"))
    for kind, number in KINDS.items():
        (found,) = ask([path], rows, [0.31, 0.999, 1], kind=number)
        same(found.intervals, model.predict_interval(rows, [0.31, 0.999, 1], kind=kind))
    one = rows[:1]
    for levels in (LEVELS[:1], LEVELS[::-1]):
        (found,) = ask([path], one, levels)
        same(found.intervals, model.predict_interval(one, levels))


def test_labels_of_groups_are_those_of_the_rows_that_python_reads(ask, tmp_path):
    """Rows of a table are float32, and those of a matrix of float64 are not."""
    pandas = pytest.importorskip("pandas")
    rows, new = X.copy(), NEW.copy()
    rows[:, 3], new[:, 3] = rows[:, 3] / 10, new[:, 3] / 10
    for named in (False, True):
        given, asked = map(pandas.DataFrame, (rows, new)) if named else (rows, new)
        if named:
            given.columns = asked.columns = list("abcd")
        model = HDIForestRegressor(forest(), calibration=False).fit(given, Y)
        model.calibrate(coverage=LEVELS, by="d" if named else 3)
        model.save(tmp_path / "model")
        for some in (asked, asked.astype(np.float32)):
            (found,) = ask([tmp_path / "model"], np.ascontiguousarray(some), LEVELS)
            same(found.intervals, model.predict_interval(some, LEVELS))


@pytest.mark.parametrize("version", [1, 2])
def test_older_formats_name_their_version(version, files, ask, tmp_path):
    path = tmp_path / "model"
    shutil.copy(files("leaf_5"), path)
    facts = {"format_version": version, "hdicore": "0.0.9", "weights": "all"}
    with_metadata(path, json.dumps({"facts": facts, "sha256": "0"}))
    (answer,) = ask([path], NEW, LEVELS)
    assert f"has format {version}, written by hdicore 0.0.9, " in answer.message
    assert answer.message.endswith("make it again, or read it with that version")


def test_some_calibrations_have_residuals(files):
    """Or nothing was compared of them."""
    names = [name for name in MODELS if name not in ("leaf_1", "two_outputs")]
    found = [HDIForestRegressor.load(files(name))._fitted for name in names]
    parts = [
        part
        for model in found
        for part in ((model.calibrated and model.calibrated.outputs) or (model,))
    ]
    assert any(part.calibrated and part.calibrated.centred for part in parts)
    bases = {base for p in parts if p.calibration for base in getattr(p.calibration, "bases", ())}
    assert {b.kind for b in bases} == {"hdi", "equal_tailed", "averaged"}
    assert {b.family for b in bases} == {"raw", "centred"}
    assert {b.min_samples_leaf for b in bases} >= {1, 20}


def test_groups_that_are_no_feature_are_given_with_the_rows(ask, tmp_path):
    labels, new = RNG.integers(0, 4, N) / 2, RNG.integers(0, 5, len(NEW)) / 2
    labels[:20] = new[:9] = np.nan
    path = tmp_path / "model"
    for y in (Y, TWO):
        model = calibrated(y, by=labels)
        model.save(path)
        (found,) = ask([path], NEW, LEVELS, by=new)
        same(found.intervals, model.predict_interval(NEW, LEVELS, by=new))
        (none,) = ask([path], NEW, LEVELS)
        assert none.message.startswith("by must be the groups of the rows")
    by_feature = calibrated(by=3)
    by_feature.save(path)
    (found,) = ask([path], NEW, LEVELS, by=NEW[::-1, 3])
    same(found.intervals, by_feature.predict_interval(NEW, LEVELS, by=NEW[::-1, 3]))


@pytest.mark.parametrize("mean", ["boosting", LinearRegression()])
def test_the_means_of_another_regressor_are_given_with_the_rows(mean, ask, tmp_path):
    y = 30 * X[:, 0] + RNG.normal(size=N)
    path = tmp_path / "model"
    for target in (y, np.column_stack([y, -y])):
        with families("stacked"):
            model = calibrated(target, mean=mean)
        outputs = model._fitted.calibrated.outputs or [model._fitted]
        parts = [output.calibrated for output in outputs]
        assert all(part.centred.family == "stacked" and part.centred.share > 0 for part in parts)
        others = np.column_stack([part.centred.mean.predict(NEW, 1) for part in parts])
        model.save(path)
        (found,) = ask([path], NEW, LEVELS, other_means=others)
        same(found.intervals, model.predict_interval(NEW, LEVELS))
        (none,) = ask([path], NEW, LEVELS)
        assert none.message.startswith("other_means must be the means by the regressor")
        (infinite,) = ask([path], NEW, LEVELS, other_means=others * np.inf)
        assert infinite.message == "other_means must be finite"


def test_what_is_not_computed_in_c_is_refused_by_name(files, ask, tmp_path):
    by_labels, one_sided = calibrated(by=list("ab" * (N // 2))), calibrated()
    with families("stacked"):
        model = raw(y=30 * X[:, 0] + RNG.normal(size=N), n_trees=100)
        folds = model.calibrate(method=CVPlus(3), mean="boosting", coverage=LEVELS)
    for name, model in {"labels": by_labels, "folds": folds, "one_sided": one_sided}.items():
        model.save(tmp_path / name)
    paths = [tmp_path / name for name in ("labels", "folds")]
    for kind in (USUAL, CALIBRATED):
        labels, means = ask(paths, NEW, LEVELS, kind=kind)
        assert (labels.status, means.status) == (INVALID, INVALID)
        assert "groups of this calibration are texts" in labels.message
        assert "each fold of CV+ has the mean of another regressor" in means.message
    for answer, model in zip(ask(paths, NEW, LEVELS, kind=0), (by_labels, folds), strict=True):
        same(answer.intervals, model.predict_interval(NEW, LEVELS, kind="hdi"))
    (bounds,) = ask([tmp_path / "one_sided"], NEW, LEVELS, kind=2)
    assert "hdicore_lower or hdicore_upper of a calibrated model" in bounds.message
    (other,) = ask([tmp_path / "one_sided"], NEW, [0.123])
    assert other.message == "coverages must be calibrated ones, 0.5 0.8 0.9, got 0.123"


def test_models_of_censored_targets_are_refused_by_name(ask, tmp_path):
    y = np.zeros(N, dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = RNG.random(N) < 0.6, 1 + RNG.random(N)
    forest = RandomForestRegressor(60, min_samples_leaf=5, random_state=0)
    model = HDISurvivalForest(forest).fit(X, y)
    model.save(tmp_path / "raw")
    model.calibrate(coverage=0.5).save(tmp_path / "calibrated")
    for answer in ask([tmp_path / "raw", tmp_path / "calibrated"], NEW, LEVELS[:1]):
        assert "a model of censored targets, which is not read from C" in answer.message


def test_what_is_not_used_of_the_rows_is_refused(files, ask):
    labels = NEW[:, 3]
    for name in ("split", "folds"):
        (found,) = ask([files(name)], NEW, LEVELS, by=labels)
        assert found.message == "by must be null, because the calibration was not made by groups"
        (found,) = ask([files(name)], NEW, LEVELS, other_means=labels)
        assert "other_means must be null" in found.message
    for given in ({"by": labels}, {"other_means": labels}):
        (found,) = ask([files("groups")], NEW, LEVELS, kind=0, **given)
        assert "must be null, because these intervals are not calibrated" in found.message


def test_rows_that_a_model_does_not_take_are_refused(files, ask, tmp_path):
    holes, infinite = NEW.copy(), NEW.copy()
    holes[2, 1], infinite[2, 1] = np.nan, 1e39
    path = files("leaf_5")
    model = raw(n_trees=2)
    facts = model._fitted.facts._replace(allow_nan=False)  # older forests take none
    model._fitted = replace(model._fitted, facts=facts)
    model.save(tmp_path / "model")
    assert "X[2, 1] is NaN" in ask([tmp_path / "model"], holes, LEVELS)[0].message
    assert "X[2, 1] is infinite or too large" in ask([path], infinite, LEVELS)[0].message
    far = np.tile(NEW, (70_000 // len(NEW) + 1, 1))
    far[-1, 1] = np.inf
    assert f"X[{len(far) - 1}, 1] is infinite" in ask([path], far, LEVELS)[0].message
    narrow = np.ascontiguousarray(NEW[:, :3])
    assert "X has 3 features, but the model expects 4" in ask([path], narrow, LEVELS)[0].message
    assert "coverages must lie in (0, 1]" in ask([path], NEW, [1.5])[0].message
    assert "kind must be one of" in ask([path], NEW, LEVELS, kind=9)[0].message
    assert "opening must be one of" in ask([path], NEW, LEVELS, opening=2)[0].message
    assert "has no calibration" in ask([path], NEW, LEVELS, kind=CALIBRATED)[0].message


def test_a_table_of_numbers_is_read_and_of_texts_refused(ask, tmp_path):
    pytest.importorskip("pyarrow")
    numbers = {"a": X[:, 0], "b": X[:, 1] > 0, "y": Y}
    models = {
        "numbers": fit_table(numbers, "y", estimator=forest(n_trees=20), calibration=False),
        "texts": fit_table(numbers | {"town": ["x", "y"] * (N // 2)}, "y", estimator=forest()),
    }
    for name, model in models.items():
        model.save(tmp_path / name)
    rows = np.column_stack([NEW[:, 0], NEW[:, 1] > 0])
    read, refused = ask([tmp_path / name for name in models], rows, LEVELS[:2], kind=0)
    table = {"a": NEW[:, 0], "b": NEW[:, 1] > 0}
    same(read.intervals, models["numbers"].predict_interval(table, LEVELS[:2], kind="hdi"))
    assert "column town is a category: only columns of numbers" in refused.message


def test_files_that_cannot_be_read_are_told_from_those_that_are_no_models(ask, tmp_path):
    table = tmp_path / "table"
    table.write_text("a,b\n1,2\n")
    missing, folder, text = ask([tmp_path / "none", tmp_path, table], NEW, LEVELS)
    assert (missing.status, folder.status, text.status) == (FAILED, FAILED, INVALID)
    assert missing.message == "cannot open the model file: No such file or directory"
    assert folder.message == "cannot open the model file: it is no regular file"
    assert text.message.startswith("the file is no model file, or is damaged: ")


# What the reader in C reads of a model; of its outputs and folds, too.
READ = (
    "numbers",
    "feature_names",
    "target_names",
    "forest",
    "index",
    "calibration.numbers",
    "centred",
)


def is_read(name):
    own = re.sub(r"^output\d+\.", "", name)
    return own in READ or own.partition(".")[0] in READ


def expected(path, rows):
    """Intervals that Python reads of what C reads, or nothing if it refuses that."""
    arrays = arrays_of(path)
    lean = {name: array for name, array in arrays.items() if is_read(name)}
    for name in [name for name in arrays if re.fullmatch(r"(output\d+\.)?numbers", name)]:
        prefix = name.removesuffix("numbers")
        lean[f"{prefix}feature_range"] = np.zeros((2, int(arrays[name][0])), np.float32)
        lean[f"{prefix}training_digest"] = as_text("0" * 32)
        if f"{prefix}calibration.numbers" in arrays:
            lean[f"{prefix}calibration.facts"] = facts_of(arrays[f"{prefix}calibration.numbers"])
    model = HDIForestRegressor()
    try:  # what large arrays hold is checked by queries, as in C
        fitted = from_arrays(Parts(lean, origin=Origin(str(path), lazy=True)))
        model._fitted, model.n_features_in_ = fitted, fitted.n_features
        return model.predict_interval(rows, 0.8)
    except ValueError:
        return None


def facts_of(numbers):
    """Facts of a calibration that Python needs, but no answer."""
    level = {"mean_width": 1, "realised": 0.5, "interval_score": 1, "cross_check": None}
    levels = [level | {"later": None}] * int(numbers[3])
    return as_facts(
        {"levels": levels, "guarantee": "", "n": 1, "confidence": None, "weighted": False}
        | {"min_samples_leaf": 1}
    )


# How refusals begin of sound files, which C does not read or not for such rows.
SOUND = (
    "the file holds a model",
    "the calibrated intervals of this file",
    "coverages must be calibrated ones",
    "X has",
    "X[",
)


def check_damaged(ask, paths, rows, n_least, opening=MAPPED):
    """Each file is refused by a sentence, or answers as in Python; yield those that do not."""
    found = ask(paths, rows, [0.8], opening=opening)
    assert sum(answer.status != 0 for answer in found) >= n_least
    for path, answer in zip(paths, found, strict=True):
        if answer.status:
            assert answer.status == INVALID
            assert answer.message.isascii()
            assert answer.message.isprintable()
            if not answer.message.startswith(SOUND):
                with pytest.raises(ValueError, match=r"."):
                    HDIForestRegressor.load(path, verify=True)
            continue
        wanted = expected(path, rows)
        if wanted is not None:
            same(answer.intervals, wanted)
        else:
            yield path


SMALL = corpus.read()["model_files"]


def written(folder, contents):
    paths = []
    for data in contents:
        paths.append(folder / f"damaged{len(paths)}")
        paths[-1].write_bytes(data)
    return paths


@pytest.mark.parametrize("name", ["recalibrated"])
def test_each_byte_of_a_file_counts(name, ask, tmp_path):
    data, random = SMALL[name], Random(0)
    changed = []
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 1 << random.randrange(8)
        changed.append(bytes(flipped))
    paths = written(tmp_path, changed)
    assert list(check_damaged(ask, paths, NEW[:7, :2].copy(), len(data) - 20)) == []


@pytest.mark.parametrize("name", ["recalibrated"])
def test_a_file_that_ends_too_early_or_late_is_refused(name, ask, tmp_path):
    data = SMALL[name]
    paths = written(tmp_path, [*(data[:n] for n in range(0, len(data), 7)), data + b"\0"])
    assert list(check_damaged(ask, paths, NEW[:7, :2].copy(), len(paths))) == []


@pytest.mark.parametrize("opening", [MAPPED, COPIED])
def test_flipped_bytes_of_large_arrays(opening, ask, tmp_path):
    raw(1, n_trees=40).save(tmp_path / "model", training_rows=False)
    data, random = (tmp_path / "model").read_bytes(), Random(1)
    changed = []
    for _ in range(150):
        flipped = bytearray(data)
        flipped[random.randrange(8000, len(data))] ^= 1 << random.randrange(8)
        changed.append(bytes(flipped))
    paths = written(tmp_path, changed)
    n_least = 150 if opening == COPIED else 25
    assert list(check_damaged(ask, paths, NEW[:40], n_least, opening)) == []


def test_files_changed_under_a_checksum_that_fits(ask, tmp_path):
    sys.path.insert(0, str(ROOT / "tests" / "engine" / "fuzz"))
    try:
        from mutations import mutate
    finally:
        sys.path.pop(0)
    random = Random(2)
    contents = [mutate(data, random) for data in SMALL.values() for _ in range(20)]
    paths = written(tmp_path, contents)
    assert list(check_damaged(ask, paths, NEW[:7, :2].copy(), len(paths) // 2)) == []


@pytest.mark.parametrize("name", SMALL)
def test_the_files_that_are_damaged_are_whole_before(name, ask, tmp_path):
    """Or each damaged one is refused for what the format has changed since."""
    (path,) = written(tmp_path, [SMALL[name]])
    if name.startswith("leaves"):
        LeafModel.load(path, lambda rows: rows)
        return
    model = HDIForestRegressor.load(path)
    (found,) = ask([path], NEW[:7, :2].copy(), [0.8], kind=0)
    assert found.message == "" or name == "encoded"
    if name != "encoded":
        same(found.intervals, model.predict_interval(NEW[:7, :2], 0.8, kind="hdi"))


def append(name, value):
    return with_changed(name, lambda own: np.append(own, value))


def with_changed(name, change):
    """Change an array by a function of it."""
    return lambda arrays: arrays.update({name: np.ascontiguousarray(change(arrays.get(name)))})


NUMBERS = "calibration.numbers"
LEVELS_AT = 15
LABELS_AT = LEVELS_AT + 4 * len(LEVELS)
CHANGES = {
    "a fold without a calibration by folds": ("leaf_5", with_value("numbers", 7, 1)),
    "one output of two": ("two_calibrated", with_value("numbers", 8, 1)),
    "outputs of one target": ("leaf_5", with_value("numbers", 8, 1)),
    "an output without a calibration": (
        "two_calibrated", lambda arrays: arrays.pop("output1.calibration.numbers")
    ),
    "a whole without numbers": ("leaf_5", lambda arrays: arrays.pop("numbers")),
    "an output without numbers": ("two_calibrated", lambda arrays: arrays.pop("output1.numbers")),
    "an output with outputs": ("two_calibrated", with_value("output0.numbers", 8, 2)),
    "numbers of another type": ("leaf_5", with_changed("numbers", lambda own: own.astype("f8"))),
    "ten numbers": ("leaf_5", append("numbers", 0)),
    "a calibration of another version": ("split", with_value(NUMBERS, 0, 2)),
    "a method by folds with coverages": ("split", with_value(NUMBERS, 1, 2)),
    "a method out of bag without coverages": ("split", with_value(NUMBERS, 3, 0)),
    "low NaN": ("split", with_value(NUMBERS, 10, np.nan)),
    "targets that descend": (
        "lattice", with_value(NUMBERS, slice(LABELS_AT, LABELS_AT + 2), [2.0, 1.0])
    ),
    "a coverage of 1": ("split", with_value(NUMBERS, LEVELS_AT, 1)),
    "equal labels": ("groups", with_value(NUMBERS, LABELS_AT + 3, 0)),
    "a quantile of a group without end": ("groups", with_value(NUMBERS, LABELS_AT + 6, np.inf)),
    "a feature that is none": ("groups", with_value(NUMBERS, 8, 4)),
    "a feature of a fraction": ("groups", with_value(NUMBERS, 8, 0.5)),
    "other labels of an output": (
        "two_by_groups", with_value(f"output1.{NUMBERS}", LABELS_AT + 1, 7)
    ),
    "scores of the distribution": ("split", with_value(NUMBERS, -1, -9e9)),
    "a number too few": ("split", with_changed(NUMBERS, lambda own: own[:-1])),
    "a calibration in two rows": ("split", with_changed(NUMBERS, lambda own: own[None])),
    "no flag": ("leaf_1", with_value("numbers", 4, 2)),
    "names without an end": ("leaf_1", with_text("feature_names", "a\0b\0c\0d")),
    "three names": ("leaf_1", with_text("feature_names", "a\0b\0c\0")),
    "no name of a target": ("leaf_1", with_text("target_names", "")),
    "one name of two targets": ("two_outputs", with_text("target_names", "a\0")),
    "residuals of another forest": (
        "centred", with_changed("centred.leaf_means", lambda own: own[1:])
    ),
    "sizes below 0": ("folds", with_changed("calibration.sizes", lambda own: -own)),
    "sizes of fewer rows": ("folds", with_changed("calibration.sizes", lambda own: own - 1)),
    "scores of a coverage": ("folds", with_changed("calibration.scores", lambda own: own[:, 1:])),
    "scores that descend": ("folds", with_changed("calibration.scores", lambda own: own[::-1])),
    "weights of fewer rows": (
        "weighted_folds", with_changed("calibration.weights", lambda own: own[1:])
    ),
    "weights below 0": ("weighted_folds", with_changed("calibration.weights", lambda own: -own)),
    "a fold less": ("folds", with_value("numbers", 7, 2)),
    "a fold of other coverages": (
        "folds", with_value(f"fold1.{NUMBERS}", LEVELS_AT, 0.4)
    ),
    "rows left out of other trees": (
        "left_out", with_changed("jackknife.drawn", lambda own: own[:, 1:])
    ),
    "fewer rows left out": ("left_out", with_changed("jackknife.drawn", lambda own: own[1:])),
    "no index of draws": ("left_out", lambda arrays: arrays.pop("jackknife.index.ranks")),
    "no residuals": ("centred", lambda arrays: arrays.pop("centred.index.atoms")),
    **{
        f"{name} is not known": (model, with_changed(name, lambda own: np.ones(3)))
        for model, name in (
            ("leaf_1", "fold0.forest.nodes"),
            ("leaf_1", "output0.index.atoms"),
            ("leaf_1", "index.more"),
            ("leaf_1", "feature_range.x"),
            ("two_calibrated", "output2.forest.nodes"),
            ("two_calibrated", "output0.objects"),
            ("split", "calibration.widths"),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_what_both_read_is_refused_by_both(case, files, ask, tmp_path):
    name, change = CHANGES[case]
    path = rewritten(files(name), change, to=tmp_path / "model")
    with pytest.raises(ValueError, match="is not a valid model"):
        HDIForestRegressor.load(path)
    (found,) = ask([path], NEW, LEVELS)
    assert found.status == INVALID
    assert "checksum" not in found.message


def test_what_python_alone_reads_changes_no_answer(files, ask, tmp_path):
    """The reader in C refuses arrays of an unknown name, and looks at no others."""
    changes = {
        "leaf_1": with_changed("training.y", lambda own: own[1:]),
        "leaf_5": with_changed("feature_range", lambda own: own[::-1]),
        "split": with_text("calibration.facts", "3"),
        "two_calibrated": with_value("boxes.q_hat", (0, 0), np.nan),
    }
    for name, change in changes.items():
        (whole,) = ask([files(name)], NEW, LEVELS)
        path = rewritten(files(name), change, to=tmp_path / "changed")
        with pytest.raises(ValueError, match="is not a valid model"):
            HDIForestRegressor.load(path)
        (found,) = ask([path], NEW, LEVELS)
        same(found.intervals, whole.intervals)


@pytest.mark.parametrize("version", ["99 9.9 2.0", '{"facts": {"format_version": 2}}', "3", ""])
def test_other_versions_are_told(version, files, ask, tmp_path):
    whole = files("leaf_1").read_bytes()
    start = 8 + int.from_bytes(whole[:8], "little")
    value = json.dumps(version)
    header = re.sub('(?<="hdicore_model":)"[^"]*"', lambda _: value, whole[8:start].decode())
    path = tmp_path / "model"
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode() + whole[start:])
    (found,) = ask([path], NEW, LEVELS)
    assert "and this version reads format 3 of model files" in found.message
    assert ("upgrade" in found.message) == (not version.startswith("{"))
    with pytest.raises(ValueError, match="this version reads format 3"):
        HDIForestRegressor.load(path)


@pytest.mark.parametrize(
    "respell",
    [
        lambda text: text.replace('","shape"', '", "shape"', 1),
        lambda text: text.replace('"numbers"', '"number\\u0073"', 1),
        lambda text: text.replace('"data_offsets":[0,', '"data_offsets":[00,', 1),
        lambda text: text.replace("}}", "}},", 1),
        lambda text: text.rstrip() + "\n",
        lambda text: text.replace('{"__metadata__"', '{"a":{},"__metadata__"', 1),
    ],
)
def test_a_header_that_safetensors_does_not_write_is_refused(respell, files, ask, tmp_path):
    """Although other parsers of JSON may read the same."""
    whole = files("leaf_1").read_bytes()
    start = 8 + int.from_bytes(whole[:8], "little")
    text = whole[8:start].decode()
    header = respell(text)
    assert header != text
    path = tmp_path / "model"
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode() + whole[start:])
    (found,) = ask([path], NEW, LEVELS)
    assert found.message.startswith("the file is no model file, or is damaged: ")
    with pytest.raises(ValueError, match="is not a model file"):
        HDIForestRegressor.load(path)


def test_an_empty_array_that_lies_between_bytes(ask, files, tmp_path):
    """Its bytes begin where no number may."""
    found = []
    for n_bytes in range(1, 8):
        objects = with_array("objects", np.zeros(n_bytes, np.uint8))
        empty = with_array("index.seen", np.empty(0, np.uint64))
        path = rewritten(files("leaf_1"), objects, empty, to=tmp_path / f"model{n_bytes}")
        found += ask([path], NEW, LEVELS)
    assert len(found) == 7


README = (ROOT / "examples" / "c" / "README.md").read_text(encoding="utf-8")


def command_of_readme(begin):
    (line,) = (line for line in README.splitlines() if line.startswith(begin))
    return line


@pytest.fixture(scope="module")
def example(sanitized_engine, tmp_path_factory):
    """The program to copy, compiled by the command of its README, and under sanitizers."""
    path = tmp_path_factory.mktemp("example") / "score"
    command = command_of_readme("cc ").replace("build/c/score", str(path))
    folder = str(sanitized_engine.parent)
    command = command.replace("$PWD/build/c", folder).replace("build/c", folder)
    subprocess.run([*command.split(), *SANITIZE], cwd=ROOT, check=True)
    return path


def test_the_example_prints_the_intervals_of_python(example, files, tmp_path):
    for name, coverage in (("leaf_5", 0.7), ("two_calibrated", 0.8), ("missing", 0.9)):
        path, rows = files(name), HOLES if name == "missing" else NEW
        text = "\n".join(" ".join(map(repr, row)) for row in rows.tolist())
        done = subprocess.run(
            [example, path, str(coverage)], input=text, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        found = np.array(done.stdout.split(), dtype=np.float64)
        wanted = HDIForestRegressor.load(path).predict_interval(rows, coverage)
        np.testing.assert_array_equal(found, np.asarray(wanted).ravel())
    done = subprocess.run([example, tmp_path, "0.5"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        1, f"{tmp_path}: cannot open the model file: it is no regular file\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("second", "rows"),
    [
        ("0 1 2", 1),
        ("0 1 2 3 4", 1),
        ("0 1 x 3", 1),
        ("0 1 2 3\n0 1 2", 2),
    ],
)
def test_the_example_ends_with_1_at_a_row_that_is_not_whole(example, files, second, rows):
    lines = f"0 1 2 3\n{second}\n0 1 2 3\n"
    done = subprocess.run(
        [example, files("leaf_1"), "0.9"], input=lines, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == rows
    assert f"row {rows + 1} must hold 4 numbers" in done.stderr


def test_cmake_compiles_the_same_sources_in_the_same_way(tmp_path):
    if shutil.which("cmake") is None:
        pytest.skip("cmake was not found")
    assert command_of_readme("cmake ").startswith("cmake -S src_cpp -B build/c && ")
    make = ("-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-G", "Unix Makefiles")
    run("cmake", "-S", ROOT / "src_cpp", "-B", tmp_path, *make)
    entries = json.loads((tmp_path / "compile_commands.json").read_text())
    assert sorted(Path(entry["file"]) for entry in entries) == SOURCES
    for entry in entries:
        assert {"-O3", "-fPIC", "-std=c++20", "-ffp-contract=off"} <= {*entry["command"].split()}
