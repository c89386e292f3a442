"""Fuzz target: a model file is refused by one sentence, or it is a model that works.

    python tests/fuzz/model_files.py [FOLDER or FILE ...] [options of libFuzzer]
    python tests/fuzz/model_files.py --unguided RUNS [--seed SEED] FOLDER

The first form is guided by the coverage of hdiforest, and needs atheris. The second draws a file of
the folder and changes it, again and again; --unguided 0 only replays the files.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from pathlib import Path
from random import Random

import numpy as np

if "--unguided" in sys.argv:
    atheris = None
else:
    import atheris

    with atheris.instrument_imports(include=["hdiforest"]):
        import hdiforest.summary  # noqa: F401

from mutations import mutate

from hdiforest import HDIForestRegressor
from hdiforest.summary import describe

INTERPOLATIONS = ["inverted_cdf", "averaged_inverted_cdf", "linear", "lower", "higher", "midpoint"]
LEVELS = [0.0, 0.1, 0.5, 0.9, 1.0]
COVERAGES = [0.5, 0.9, 1.0]
# Whoever says that there are more asks for rows as long.
MOST_FEATURES = 64


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
    try:
        model = HDIForestRegressor.load(path)
    except (OSError, ValueError) as error:
        check_sentence(error)
        return False
    text = describe(path)
    require(text.replace("\n", "").isprintable(), f"description {text!r}")
    if model.n_features_in_ > MOST_FEATURES:
        return True
    answers = ask(model)
    check_training_rows(model)
    model.save(folder / "again", training_rows=model._training_rows is not None)
    again = ask(HDIForestRegressor.load(folder / "again"))
    for name, values in answers.items():
        np.testing.assert_array_equal(again[name], values, err_msg=name)
    return True


def rows_for(model: HDIForestRegressor) -> np.ndarray:
    """Some rows, with ties."""
    rows = np.random.default_rng(0).normal(size=(6, model.n_features_in_)).round(1)
    names = getattr(model, "feature_names_in_", None)
    require(names is None or len(names) == model.n_features_in_, f"{names!r} names features")
    return rows


def ask(model: HDIForestRegressor) -> dict[str, np.ndarray]:
    """Everything that needs no training rows, after checking it."""
    X = rows_for(model)
    mean = model.predict(X)
    cdf = model.predict_cdf(X, np.full(mean.shape, 0.25))
    answers = {"mean": mean, "cdf": cdf}
    require(((cdf >= 0) & (cdf <= 1) | np.isnan(cdf)).all(), "cdf lies in [0, 1]")
    for kind in ("hdi", "equal_tailed", "lower", "upper"):
        found = answers[kind] = model.predict_interval(X, COVERAGES, kind=kind)
        ends = found.reshape(-1, 2, len(COVERAGES))
        require((ends[:, 0] <= ends[:, 1]).all() or np.isnan(ends).any(), "lower <= upper")
    for interpolation in INTERPOLATIONS:
        found = model.predict_quantiles(X, LEVELS, interpolation=interpolation)
        answers[interpolation] = found
        require(not (np.diff(found, axis=-1) < 0).any(), "quantiles do not fall")
    if model.scorer_.index.scalar_output:
        answers["draws"] = model.sample(X, 3, random_state=0)
    return answers


def check_training_rows(model: HDIForestRegressor) -> None:
    """What reads the training rows works, or says why it does not."""
    X = rows_for(model)
    for query in (model.predict_weights, lambda _: model.oob_interval(0.9), model.sample):
        try:
            query(X)
        except ValueError as error:
            check_sentence(error)


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
