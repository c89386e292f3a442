"""Fuzz target: a file of a model is refused by one sentence, or it is a model that works.

    python tests/engine/fuzz/model_files.py [FOLDER or FILE ...] [options of libFuzzer]
    python tests/engine/fuzz/model_files.py --unguided RUNS [--seed SEED] FOLDER

The first form is guided by the coverage of hdiforest, and needs atheris. The second draws a file of
the folder and changes it, again and again; --unguided 0 only replays the files.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import numpy as np

if "--unguided" in sys.argv:
    atheris = None
else:
    import atheris

    with atheris.instrument_imports(include=["hdiforest"]):
        import hdiforest._cli.report  # noqa: F401

from mutations import mutate

import hdicore._core
from hdiforest import HDIForestRegressor, LeafModel
from hdiforest._cli.report import contents
from hdiforest.inspection import diagnose
from hdiforest.monitoring import recalibrate

INTERPOLATIONS = [
    *("inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf"),
    *("hazen", "weibull", "linear", "median_unbiased", "normal_unbiased"),
    *("lower", "higher", "midpoint", "nearest"),
]
LEVELS = [0.0, 0.1, 0.5, 0.9, 1.0]
COVERAGES = [0.5, 0.9, 1.0]
# Rows that are scored before a model is checked whole: none, some, all.
UNCHECKED_ROWS = [0, 20, 1 << 40]
# Whoever says that there are more asks for rows as long.
MOST_FEATURES = 64


Found = TypeVar("Found")


class NotAllowedError(Exception):
    """What a model file must not lead to."""


def require(condition: object, what: str) -> None:
    """Raise NotAllowedError unless the condition holds."""
    if not condition:
        raise NotAllowedError(what)


def check_sentence(error: Exception) -> None:
    """An error is one line that any terminal can show."""
    text = str(error)
    require(text and text.isprintable() and len(text) < 1000, f"error {text!r}")


def check_file(data: bytes, folder: Path) -> bool:
    """Load a file of these bytes and use it; return whether it is a model.

    Raises
    ------
    NotAllowedError, or anything else but what is allowed
        If it is neither refused by one sentence nor a model that works.
    """
    path = folder / "model"
    path.write_bytes(data)
    forest = loaded(lambda: HDIForestRegressor.load(path, verify=True))
    if forest is not None:
        check_forest(forest, path)
    leaves = loaded(lambda: LeafModel.load(path, np.asarray, verify=True))
    if leaves is not None:
        check_leaves(leaves, path)
    for n_rows in UNCHECKED_ROWS:
        hdicore._core._set_unchecked_rows(n_rows)
        check_deferred(path, forest, leaves)
    return forest is not None or leaves is not None


def check_deferred(path: Path, forest: Any, leaves: Any) -> None:
    """Load a file whose checks are left to queries, which answer or refuse by one sentence.

    `forest` and `leaves` are the models that were checked whole; they give the same answers.
    """
    opened = loaded(lambda: HDIForestRegressor.load(path))
    require(opened is not None or forest is None, "models that are checked whole can be opened")
    if opened is not None and opened.n_features_in_ <= MOST_FEATURES:
        X = rows_of(opened)
        answers = loaded(lambda: ask(opened, X))
        if forest is not None:
            require_same(answers, ask(forest, X))
        else:
            for use in (
                lambda: opened.predict_weights(X),
                lambda: opened.oob_.interval(0.9),
                lambda: opened.save(path.with_name("again"), training_rows=False),
                lambda: opened.scorer_.forest.apply(X),
                lambda: pickle.dumps(opened),
            ):
                loaded(use)
    indexed = loaded(lambda: LeafModel.load(path, np.asarray))
    require(indexed is not None or leaves is None, "indices that are checked whole can be opened")
    if indexed is not None:
        some = np.zeros((6, indexed.index_.n_trees), np.int32)
        loaded(lambda: ask(indexed, some))
        loaded(lambda: indexed.save(path.with_name("again")))


def loaded(load: Callable[[], Found]) -> Found | None:
    """Return the model or the answers, or nothing if they are refused."""
    try:
        return load()
    except (OSError, ValueError) as error:
        check_sentence(error)
        return None


def check_forest(model: HDIForestRegressor, path: Path) -> None:
    """Describe and ask a model, save it, and ask it again."""
    text = contents(path)
    require(text.replace("\n", "").isprintable(), f"description {text!r}")
    if model.n_features_in_ > MOST_FEATURES:
        return
    X = rows_of(model)
    answers = ask(model, X)
    if model.scorer_.index.scalar_output:
        model.sample(X, 3, random_state=0)
    rows = model._fitted.training_rows
    if rows is not None:
        model.sample(X)
        model.predict_weights(X)
    if rows is not None and rows.bags is not None:
        model.oob_.interval(0.9, kind="hdi")
        model.oob_.quantiles(0.5, kind="raw")
        if hasattr(model, "calibration_"):  # not all have such intervals out of bag
            loaded(lambda: model.oob_.interval(model.calibration_.coverages))
    again = path.with_name("again")
    model.save(again, training_rows=rows is not None)
    loaded_again = HDIForestRegressor.load(again)
    require_same(ask(loaded_again, X), answers)
    calibration = getattr(model, "calibration_", None)
    coverage = 0.9 if calibration is None else calibration.coverages[0]
    loaded(lambda: diagnose(loaded_again, X, coverage))  # not all have what it needs
    if calibration is not None:
        loaded(lambda: recalibrate(loaded_again, X, np.zeros(6), window=300))


def rows_of(model: HDIForestRegressor) -> Any:
    """Rows that a model may be asked about."""
    encoder = model._fitted.encoder
    if encoder is not None:
        return {column.name: CELLS.get(column.kind, [1, None] * 3) for column in encoder.entries}
    return np.random.default_rng(0).normal(size=(6, model.n_features_in_)).round(1)


def check_leaves(model: LeafModel, path: Path) -> None:
    """Ask an index about leaves that it has, save it, and ask it again."""
    arrays = model.index_.arrays()
    sizes = np.diff(arrays["leaf_offsets"])
    leaves = np.random.default_rng(0).integers(-1, np.maximum(sizes, 1), (6, len(sizes)))
    if "seen" in arrays:
        leaves[:] = -1
    leaves[:, sizes == 0] = -1
    answers = ask(model, leaves)
    again = path.with_name("again")
    model.save(again)
    require_same(ask(LeafModel.load(again, np.asarray), leaves), answers)


# What each kind of column takes, besides numbers.
CELLS = {"date": ["2024-05-31", None] * 3, "category": ["a", "7", None] * 2}


def ask(model: HDIForestRegressor | LeafModel, X: Any) -> dict[str, np.ndarray]:
    """Everything that needs no training rows, after checking it."""
    mean = model.predict(X)
    cdf = model.predict_cdf(X, np.full(mean.shape, 0.25))
    answers = {"mean": mean, "cdf": cdf}
    require(((cdf >= 0) & (cdf <= 1) | np.isnan(cdf)).all(), "cdf lies in [0, 1]")
    calibration = getattr(model, "calibration_", None)
    has_bounds = calibration is None or getattr(calibration, "distribution", None) is not None
    for kind in ("hdi", "equal_tailed", "lower", "upper")[: 4 if has_bounds else 2]:
        found = answers[kind] = model.predict_interval(X, COVERAGES, kind=kind)
        ends = found.reshape(-1, 2, len(COVERAGES))
        require(not (ends[:, 0] > ends[:, 1]).any(), "lower <= upper")
    if hasattr(model, "calibration_"):
        levels = model.calibration_.coverages
        found = answers["calibrated"] = model.predict_interval(X, levels)
        require(not (np.diff(found[:, 0], axis=-1) > 0).any(), "calibrated intervals are nested")
        require(not (np.diff(found[:, 1], axis=-1) < 0).any(), "calibrated intervals are nested")
    for interpolation in INTERPOLATIONS:
        found = model.predict_quantiles(X, LEVELS, kind="raw", interpolation=interpolation)
        answers[interpolation] = found
        require(not (np.diff(found, axis=-1) < 0).any(), f"quantiles by {interpolation} rise")
    return answers


def require_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """Raise NotAllowedError unless all answers are equal."""
    for name, values in expected.items():
        require(np.array_equal(found[name], values, equal_nan=True), f"{name} of the saved model")


def unguided(corpus: Path, runs: int, seed: int, folder: Path) -> int:
    """Replay a folder and mutate its files; return how many bytes of them were not allowed."""
    files = sorted(corpus.iterdir())
    n_models = n_findings = 0
    for run in range(-len(files), runs):
        random = Random(seed * 1_000_003 + run)
        data = files[run].read_bytes() if run < 0 else random.choice(files).read_bytes()
        for _ in range(0 if run < 0 else random.choice([1, 1, 1, 2, 4])):
            data = mutate(data, random)
        try:
            n_models += check_file(data, folder)
        except Exception as error:
            n_findings += 1
            name = files[run].name if run < 0 else f"run {run} of seed {seed}"
            print(f"{name}: {type(error).__name__}: {error}")
    print(f"{len(files) + runs} files, {n_models} models, {n_findings} findings")
    return n_findings


def main() -> int:
    """Run as the command line says."""
    warnings.simplefilter("ignore")  # rows without an out-of-bag interval
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if atheris is None:
            parser = argparse.ArgumentParser(description=__doc__)
            parser.add_argument("--unguided", type=int, required=True, metavar="RUNS")
            parser.add_argument("--seed", type=int, default=0)
            parser.add_argument("corpus", type=Path)
            asked = parser.parse_args()
            return min(1, unguided(asked.corpus, asked.unguided, asked.seed, folder))

        def custom_mutator(data: bytes, max_size: int, seed: int) -> bytes:
            changed = mutate(bytes(data), Random(seed))
            return changed if len(changed) <= max_size else bytes(data)

        atheris.Setup(
            sys.argv, lambda data: check_file(data, folder) and None, custom_mutator=custom_mutator
        )
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
