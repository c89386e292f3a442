"""What a soak does in turns: each function works on random material, and checks its answers."""

from __future__ import annotations

import io
import pickle
import signal
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NoReturn

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

import hdicore
from hdicore import LeafIndex, Scorer
from hdiforest import HDIForestRegressor
from hdiforest._cli.main import main
from models import N_FEATURES, make_rows, make_scorer, write_table

Work = Callable[[np.random.Generator, Path], None]


def fitted(rng: np.random.Generator) -> tuple[HDIForestRegressor, np.ndarray]:
    """Return a random model and rows to ask it about."""
    n, n_outputs = int(rng.integers(50, 2000)), int(rng.integers(1, 3))
    X = rng.random((n, N_FEATURES))
    y = X @ rng.normal(size=(N_FEATURES, n_outputs)) + rng.normal(size=(n, n_outputs))
    kind = (RandomForestRegressor, ExtraTreesRegressor)[rng.integers(2)]
    forest = kind(
        int(rng.integers(5, 40)),
        min_samples_leaf=int(rng.integers(1, 20)),
        bootstrap=True,
        random_state=int(rng.integers(2**31)),
    )
    weights = str(rng.choice(["all", "inbag", "oob"]))
    model = HDIForestRegressor(
        forest, weights=weights, n_jobs=int(rng.integers(1, 4)), calibration=False
    )
    given = rng.random(n) + 0.1 if rng.random() < 0.5 else None
    model.fit(X, y[:, 0] if n_outputs == 1 else y, sample_weight=given)
    return model, rng.random((int(rng.integers(1, 1500)), N_FEATURES))


def user_layer(rng: np.random.Generator, folder: Path) -> None:
    model, X = fitted(rng)
    for kind in ("hdi", "equal_tailed", "lower", "upper"):
        model.predict_interval(X, [0.5, 0.9], kind=kind)
    model.predict(X)
    model.predict_quantiles(X, [0.1, 0.9])
    model.predict_cdf(X, np.zeros(len(X) if model.n_outputs_ == 1 else (len(X), model.n_outputs_)))
    model.predict_weights(X[:50])
    model.sample(X, 3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # rows that every tree saw
        model.oob_.interval(0.9)
    clone(model)


def files_and_pickles(rng: np.random.Generator, folder: Path) -> None:
    model, X = fitted(rng)
    expected = model.predict_interval(X).tobytes()
    path = folder / "model.hdi"
    model.save(path, training_rows=bool(rng.integers(2)))
    for again in (
        HDIForestRegressor.load(path),
        pickle.loads(pickle.dumps(model, int(rng.integers(2, 6)))),
        HDIForestRegressor.load(path, n_jobs=2),
    ):
        assert again.predict_interval(X).tobytes() == expected


def backend(rng: np.random.Generator, folder: Path) -> None:
    scorer = make_scorer(
        int(rng.integers(1, 40)), int(rng.integers(1, 8)), int(rng.integers(9, 3000))
    )
    X = make_rows(int(rng.integers(1, 5000)), seed=int(rng.integers(2**31)))
    n = int(rng.integers(0, 4))
    answers = [
        scorer.intervals(X, n_threads=n),
        scorer.mean(X, n_threads=n),
        scorer.quantiles(X, [0.1, 0.5], "linear", n_threads=n),
        scorer.cdf(X, X[:, 0], n_threads=n),
        scorer.draws(X, X[:, 0], n_threads=n),
        *scorer.weights(X[:100], n_threads=n),
    ]
    index = LeafIndex.from_arrays(scorer.index.arrays(), True)
    assert Scorer(scorer.forest, index).intervals(X).tobytes() == answers[0].tobytes()
    hdicore.weighted_hdi(rng.normal(size=(20, 300)), rng.random((20, 300)), [0.5, 0.9])


def bad_input(rng: np.random.Generator, folder: Path) -> None:
    scorer, X = make_scorer(10, 4, 200), make_rows(2000)
    broken = X.copy()
    broken[rng.integers(len(X)), 0] = np.inf
    arrays = scorer.index.arrays() | {"ranks": scorer.index.arrays()["ranks"][:-1]}
    junk = folder / "junk.hdi"
    junk.write_bytes(rng.bytes(500))
    calls: list[Callable[[], object]] = [
        lambda: scorer.intervals(broken, n_threads=2),
        lambda: scorer.intervals(X, 1.5),
        lambda: scorer.intervals(X, out=np.empty((3, 2))),
        lambda: scorer.index.mean(np.full((5, 10), 10**6, dtype=np.int32)),
        lambda: LeafIndex(np.zeros((3, 2), dtype=np.int32), [1.0, np.nan, 2.0]),
        lambda: LeafIndex.from_arrays(arrays, True),
        lambda: hdicore.weighted_hdi(["a"]),
        lambda: HDIForestRegressor.load(junk),
        lambda: HDIForestRegressor(RandomForestRegressor(3), calibration=False).fit(X, X[:5, 0]),
        lambda: HDIForestRegressor().predict(X),
    ]
    for k, call in enumerate(calls):
        try:
            call()
        except (ValueError, TypeError, OSError):
            continue
        raise AssertionError(f"bad input {k} was taken")


def interrupted(rng: np.random.Generator, folder: Path) -> None:
    """Raise from a signal handler somewhere in a call, and ask again."""
    scorer, X = make_scorer(20, 2, 5000), make_rows(2000)
    expected = scorer.intervals(X[:100]).tobytes()

    def stop(number: int, frame: object) -> NoReturn:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.001, 0.2))
        scorer.intervals(X, n_threads=int(rng.integers(1, 4)))
        time.sleep(1)  # if the call was quicker
    except TimeoutError:
        pass
    finally:
        signal.signal(signal.SIGALRM, before)
    assert scorer.intervals(X[:100]).tobytes() == expected


def command(rng: np.random.Generator, folder: Path) -> None:
    """Fit, score, inspect and fail in this process."""
    train, model = folder / "train.csv", folder / "model.hdi"
    out = folder / f"out.{rng.choice(['csv', 'csv.gz', 'parquet'])}"
    write_table(train, int(rng.integers(30, 1500)), target=True)
    trees = str(rng.integers(2, 20))
    calls = {
        0: (
            ["fit", train, "--target", "y", "--trees", trees, "-o", model],
            ["score", model, train, "--keep", "y", "--batch-rows", "100", "-o", out],
            ["inspect", model],
        ),
        1: (
            ["score", train, train, "-o", out],
            ["score", model, folder / "absent.csv", "-o", out],
            ["fit", train, "--target", "z", "-o", model],
        ),
    }
    for code, several in calls.items():
        for call in several:
            said = io.StringIO()
            with redirect_stdout(said), redirect_stderr(said):
                ended = main([str(argument) for argument in call])
            assert ended == code, said.getvalue()


WORK: dict[str, Work] = {
    "fit and every query of the regressor": user_layer,
    "save, load and pickle": files_and_pickles,
    "every query of the backend": backend,
    "bad input": bad_input,
    "interrupted calls": interrupted,
    "the command": command,
}
