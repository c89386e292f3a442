"""Models of many kinds, and what is asked of each of them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import commands
import hdiforest
import names
from hdiforest import ForestSearchOOB, HDIForestRegressor, LeafModel
from records import Answers

Array = NDArray[np.float64]
N, N_NEW, N_TREES = 600, 80, 60
COVERAGES = [0.5, 0.8, 0.9]
KINDS = ("hdi", "equal_tailed", "lower", "upper")
INTERPOLATIONS = ("inverted_cdf", "averaged_inverted_cdf", "linear", "median_unbiased", "higher")


def draw_rows(n: int, seed: int) -> tuple[Array, Array]:
    """Return rows whose spread grows with a feature, and their targets."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 5))
    noise = (0.2 + 0.3 * (X[:, 2] + 2)) * rng.standard_normal(n)
    return X, 3 * X[:, 0] + np.sin(2 * X[:, 1]) + noise


def draw_table(n: int, seed: int) -> pd.DataFrame:
    """Return rows with text, dates, booleans, missing cells, weights and a key."""
    rng = np.random.default_rng(seed)
    X, y = draw_rows(n, seed)
    table = pd.DataFrame(X[:, :3], columns=["area", "age", "noise"])
    table.loc[rng.random(n) < 0.1, "age"] = np.nan
    table["town"] = rng.choice(["Lyon", "Nice", "Brest", "Laon"], n, p=[0.5, 0.3, 0.15, 0.05])
    table.loc[rng.random(n) < 0.1, "town"] = None
    table["sold"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    table["lift"] = rng.random(n) < 0.4
    table["key"] = [f"flat {seed}-{i}" for i in range(n)]
    table["weight"] = rng.integers(1, 4, n).astype(float)
    table["group"] = rng.integers(0, 40, n)
    table["rent"] = y + 2 * (table["town"] == "Nice") + table["lift"]
    return table


X, Y = draw_rows(N, 0)
X_NEW, Y_NEW = draw_rows(N_NEW, 1)
X_OTHER, Y_OTHER = draw_rows(300, 2)  # to calibrate on


class Subject(NamedTuple):
    """A fitted model, and new rows to ask it about."""

    model: Any
    X: Any = X_NEW
    y: Any = Y_NEW
    load: Callable[[Path], Any] = names.load


def forest(kind: Any = RandomForestRegressor, **options: Any) -> Any:
    options = {"min_samples_leaf": 5, "random_state": 0} | options
    return kind(N_TREES, **options)


def imported(*rows: Any, of: Any = None, **options: Any) -> Any:
    """Return a model of a forest that was fitted before."""
    X_fit, y_fit = rows or (X, Y)
    fitted = (forest() if of is None else of).fit(X_fit, y_fit)
    return HDIForestRegressor.from_forest(fitted, X_fit, y_fit, **options)


def calibrated(model: Any, *rows: Any, coverage: Any = (0.5, 0.8, 0.9), **options: Any) -> Subject:
    return Subject(names.calibrate(model, list(coverage), *rows, **options))


def default() -> Iterator[tuple[str, Subject]]:
    """Yield the model that needs no argument, of targets on a line and of counts."""
    model = HDIForestRegressor(random_state=0)
    yield "targets on a line", Subject(model.fit(X, Y))
    counts = np.round(2 * Y)
    yield (
        "counts",
        Subject(HDIForestRegressor(random_state=0).fit(X, counts), y=np.round(2 * Y_NEW)),
    )


def out_of_bag() -> Iterator[tuple[str, Subject]]:
    yield "uncalibrated", Subject(imported())
    yield "usual", calibrated(imported())
    yield "one coverage", calibrated(imported(), coverage=(0.93,))
    yield "score", calibrated(imported(), objective="interval_score", coverage=(0.6, 0.95))
    yield "some rows", calibrated(imported(), max_rows=200, random_state=3)
    yield "in bag", calibrated(imported(weights="inbag"))
    yield "not in bag", calibrated(imported(weights="oob"))


def split() -> Iterator[tuple[str, Subject]]:
    def model() -> Any:
        return imported(of=forest(ExtraTreesRegressor))

    yield "usual", calibrated(model(), X_OTHER, Y_OTHER)
    yield "confidence", calibrated(model(), X_OTHER, Y_OTHER, confidence=0.9)


def jackknife() -> Iterator[tuple[str, Subject]]:
    yield "usual", calibrated(imported(X[:300], Y[:300]), method="jackknife+")


def cross() -> Iterator[tuple[str, Subject]]:
    yield "usual", calibrated(imported(), method="cv+", cv=4, random_state=0)
    groups = np.arange(N) // 20
    yield "groups", calibrated(imported(), method="cv+", cv=3, groups=groups, random_state=1)


def other_means() -> Iterator[tuple[str, Subject]]:
    """Yield models around residuals, of their own mean and of another regressor's."""
    steep = 20 * X[:, 0] + Y
    yield "own", calibrated(imported(X, steep))
    yield "boosting", calibrated(imported(X, steep), mean="boosting", random_state=0)
    yield "ridge", calibrated(imported(X, steep), mean=Ridge(), random_state=0)
    yield (
        "ridge, split",
        calibrated(
            imported(X, steep), X_OTHER, 20 * X_OTHER[:, 0] + Y_OTHER, mean=Ridge(), random_state=0
        ),
    )


def several_outputs() -> Iterator[tuple[str, Subject]]:
    both, both_new = (np.column_stack([y, -(y**2)]) for y in (Y, Y_NEW))
    yield "usual", Subject(imported(X, both), y=both_new)


def weights_and_missing_values() -> Iterator[tuple[str, Subject]]:
    rng = np.random.default_rng(3)
    weights = rng.choice([1.0, 1.25, 1.5], N)
    rows, rows_new = (np.where(rng.random(x.shape) < 0.1, np.nan, x) for x in (X, X_NEW))
    for kind in ("all", "inbag", "oob"):
        model = names.unfitted_model(forest(), weights=kind)
        model.fit(rows, Y, sample_weight=weights)
        names.calibrate(model, COVERAGES)
        yield kind, Subject(model, rows_new)
    model = names.unfitted_model(forest()).fit(rows, Y, sample_weight=weights)
    yield (
        "cv+",
        Subject(names.calibrate(model, COVERAGES, method="cv+", cv=3, random_state=0), rows_new),
    )


def monotonic() -> Iterator[tuple[str, Subject]]:
    own = partial(forest, monotonic_cst=[1, 0, 0, 0, 0])
    yield "usual", calibrated(imported(of=own(), weights="monotonic"))
    yield "all rows", calibrated(imported(of=own()))


def pipeline() -> Iterator[tuple[str, Subject]]:
    """Yield a model that takes raw tables by the steps of a Pipeline."""
    table, new = draw_table(N, 0).fillna({"town": "none"}), draw_table(N_NEW, 1)
    columns = ["area", "age", "town"]
    steps = make_column_transformer(
        (StandardScaler(), ["area", "age"]),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["town"]),
    )
    for name, options in {"oob": {}, "cv+": {"method": "cv+", "cv": 3, "random_state": 0}}.items():
        model = names.unfitted_model(make_pipeline(steps, forest()))
        model.fit(table[columns], table["rent"])
        names.calibrate(model, COVERAGES, **options)
        X_new = new[columns].fillna({"town": "none"}).iloc[::-1]
        yield name, Subject(model, X_new, new["rent"].to_numpy()[::-1])


def table() -> Iterator[tuple[str, Subject]]:
    """Yield models that encode raw tables by themselves."""
    new = draw_table(N_NEW, 1)
    roles: dict[str, Any] = {"drop": ["group"], "id": ["key"], "sample_weight": "weight"}
    model = names.fit_table(draw_table(N, 0), "rent", random_state=0, **roles)
    yield "default", Subject(model, new, new["rent"].to_numpy())
    few = names.fit_table(
        draw_table(N, 0), "rent", estimator=forest(), categorical=["lift"], **roles
    )
    yield "given forest", Subject(few, new, new["rent"].to_numpy())


def reader(apply: Any) -> Callable[[Path], Any]:
    return lambda path: LeafModel.load(path, apply)


def leaves() -> Iterator[tuple[str, Subject]]:
    own = forest().fit(X, Y)
    apply = own.apply
    yield "uncalibrated", Subject(names.leaf_model(apply, X, Y), load=reader(apply))
    weights = np.random.default_rng(4).integers(1, 5, N).astype(float)
    options: dict[str, dict[str, Any]] = {
        "usual": {},
        "base": {"base": ("equal_tailed", 0.7)},
        "confidence": {"confidence": 0.9},
    }
    for name, option in options.items():
        model = names.leaf_model(apply, X, Y, sample_weight=weights)
        names.calibrate(model, COVERAGES, X_OTHER, Y_OTHER, **option)
        yield name, Subject(model, load=reader(apply))


def boosters() -> Iterator[tuple[str, Subject]]:
    """Yield models of other libraries' trees."""
    import catboost
    import lightgbm
    import xgboost

    options: dict[str, Any] = {"n_estimators": 20, "random_state": 0}
    fits = {
        "lightgbm": lightgbm.LGBMRegressor(n_jobs=1, verbose=-1, **options),
        "xgboost": xgboost.XGBRegressor(n_jobs=1, max_depth=4, **options),
        "catboost": catboost.CatBoostRegressor(
            thread_count=1, verbose=False, allow_writing_files=False, depth=4, **options
        ),
    }
    for library, booster in fits.items():
        booster.fit(X, Y)
        model = names.booster_model(library, booster, X, Y)
        names.calibrate(model, COVERAGES, X_OTHER, Y_OTHER)
        yield library, Subject(model, load=reader(model.apply))


def search() -> Iterator[tuple[str, Subject]]:
    forests = [forest(max_features=1 / 3), forest(ExtraTreesRegressor, bootstrap=True)]
    yield "width", Subject(ForestSearchOOB(forests, random_state=0).fit(X, Y))
    options: dict[str, Any] = {"coverage": 0.8, "objective": "interval_score"}
    yield "score", Subject(ForestSearchOOB(forests, random_state=0, **options).fit(X, Y))


def ask_all(answers: Answers, subject: Subject, folder: Path) -> None:
    """Ask the model, what its file and its pickle give, and the command with its file."""
    ask(answers, "", subject.model, subject)
    copied = answers.get("pickled/", lambda: pickle.loads(pickle.dumps(subject.model)))
    if copied is not None:
        ask(answers, "pickled/", copied, subject)
    path, held = folder / "model.hdi", getattr(subject.model, "best_estimator_", subject.model)
    loaded = answers.get("loaded/", lambda: save_and_load(held, path, subject.load))
    if loaded is None:
        return
    ask(answers, "loaded/", loaded, subject)
    if isinstance(held, HDIForestRegressor):
        held.save(folder / "lean.hdi", training_rows=False)
        commands.score_model(answers, folder / "lean.hdi", subject.X, folder)


def save_and_load(model: Any, path: Path, load: Callable[[Path], Any]) -> Any:
    model.save(path)
    return load(path)


def ask(answers: Answers, prefix: str, model: Any, subject: Subject) -> None:
    """Ask everything that a model has methods for."""
    rows, y = subject.X, subject.y

    def put(name: str, method: str, *arguments: Any, **options: Any) -> None:
        call = names.method_of(model, method)
        if call is not None:
            answers.ask(prefix + name, partial(call, *arguments, **options))

    put("predict/mean", "predict", rows)
    usual = usual_coverage(model)
    ask_intervals(put, rows, usual)
    for name in INTERPOLATIONS:
        put(f"quantiles/{name}", "predict_quantiles", rows, [0.1, 0.5, 0.77], interpolation=name)
    put("quantiles/one level", "predict_quantiles", rows, 0.5)
    put("cdf/own targets", "predict_cdf", rows, y)
    put("cdf/below", "predict_cdf", rows, np.stack([y, y + 1], -1), inclusive=False)
    put("weights/new rows", "predict_weights", rows)
    put("sample/one", "sample", rows, random_state=0)
    put("sample/several", "sample", rows, 4, random_state=1)
    ask_out_of_bag(put)
    put("tables/intervals", "predict_interval", rows, usual, output="pandas")
    put("tables/hdi", "predict_interval", rows, COVERAGES, kind="hdi", output="pyarrow")
    put("tables/quantiles", "predict_quantiles", rows, [0.1, 0.9], output="pandas")
    if hasattr(model, "calibration_"):
        held = model.calibration_
        answers.ask(f"{prefix}calibration/numbers", lambda: dict(names.calibration_numbers(held)))
        put("intervals/calibrated", "predict_interval", rows, list(held.coverages))
        put("oob/calibrated", "oob_interval", list(held.coverages))


def usual_coverage(model: Any) -> float:
    """Return 0.9, or the least that was calibrated if that was not."""
    coverages = getattr(getattr(model, "calibration_", None), "coverages", (0.9,))
    return 0.9 if 0.9 in coverages else coverages[0]


def ask_intervals(put: Callable[..., None], rows: Any, usual: float) -> None:
    put("intervals/usual", "predict_interval", rows, usual)
    for kind in KINDS:
        put(f"intervals/{kind}", "predict_interval", rows, 0.9, kind=kind)
        put(f"intervals/{kind}, several", "predict_interval", rows, COVERAGES, kind=kind)


def ask_out_of_bag(put: Callable[..., None]) -> None:
    put("oob/mean", "oob_prediction")
    for kind in KINDS:
        put(f"oob/{kind}", "oob_interval", [0.5, 0.9], kind=kind)
    put("oob/quantiles", "oob_quantiles", [0.1, 0.5])
    put("oob/cdf", "oob_cdf")
    put("oob/weights", "oob_weights")


def ask_quantile_forests(answers: Answers, _folder: Path) -> None:
    """Ask the estimators with quantile-forest's interface."""
    rooms = names.quantile_forests()
    for name in ("RandomForestQuantileRegressor", "ExtraTreesQuantileRegressor"):
        for limit in (1, 3, None):
            own = getattr(rooms, name)(
                30, min_samples_leaf=4, max_samples_leaf=limit, bootstrap=True, random_state=0
            ).fit(X, Y)
            title = f"{name[:2]}, {limit}"
            ask_quantile_forest(answers, title, own)
            copied = pickle.loads(pickle.dumps(own))
            answers.ask(f"pickled/{title}", partial(copied.predict, X_NEW, [0.1, 0.5]))


def ask_quantile_forest(answers: Answers, title: str, own: Any) -> None:
    levels = [0.1, 0.5, 0.9]
    put = answers.ask
    put(f"predict/{title}", lambda: own.predict(X_NEW, "mean"))
    put(f"predict/{title}, score", lambda: own.score(X_NEW, Y_NEW))
    for kind in KINDS:
        put(
            f"intervals/{title}, {kind}",
            lambda kind=kind: own.predict_interval(X_NEW, COVERAGES, kind=kind),
        )
    put(f"quantiles/{title}", lambda: own.predict(X_NEW, levels))
    put(f"quantiles/{title}, nearest", lambda: own.predict(X_NEW, levels, "nearest"))
    for option in ("weighted_leaves", "aggregate_leaves_first"):
        options = {option: option == "weighted_leaves"}
        put(f"quantiles/{title}, {option}", partial(own.predict, X_NEW, levels, **options))
    put(f"oob/{title}", lambda: own.predict(X, levels, oob_score=True))
    put(f"oob/{title}, intervals", lambda: own.predict_interval(X, oob_score=True))
    put(f"cdf/{title}", lambda: own.quantile_ranks(X_NEW, Y_NEW))
    put(f"weights/{title}", lambda: np.concatenate(own.proximity_counts(X_NEW)))


def ask_metrics(answers: Answers, _folder: Path) -> None:
    """Ask metrics, scorers, and the views that MAPIE takes."""
    model = imported()
    names.calibrate(model, COVERAGES)
    interval, weights = model.predict_interval(X_NEW, 0.8), np.arange(1.0, N_NEW + 1)
    sample = model.sample(X_NEW, 20, random_state=0)
    for title, weight in {"plain": None, "weighted": weights}.items():
        for name, call in names.metrics().items():
            arguments = {
                "coverage": (Y_NEW, interval),
                "width": (interval,),
                "interval score": (Y_NEW, interval, 0.8),
                "crps": (Y_NEW, sample),
                "strata": (Y_NEW, interval, 4),
            }[name]
            answers.ask(f"metrics/{name}, {title}", partial(call, *arguments, sample_weight=weight))
        for name, scorer in names.scorers().items():
            ask_scorer = partial(scorer, model, X_NEW, Y_NEW, sample_weight=weight)
            answers.ask(f"metrics/scorer of {name}, {title}", ask_scorer)
    for position, view in enumerate(hdiforest.quantile_views(model, 0.8)):
        answers.ask(f"predict/view {position}", partial(view.predict, X_NEW))


def ask_subjects(
    subjects: Callable[[], Iterator[tuple[str, Subject]]], answers: Answers, folder: Path
) -> None:
    """Ask each of some models; its name goes behind the kind of question."""
    for title, subject in subjects():
        own = Answers()
        ask_all(own, subject, folder)
        if isinstance(subject.model, ForestSearchOOB):
            own.ask("calibration/results", partial(names.search_results, subject.model))
        for name, array in own.arrays.items():
            kind, _, rest = name.partition("/")
            answers.ask(f"{kind}/{title}/{rest}", lambda array=array: array)


def ask_commands(answers: Answers, folder: Path) -> None:
    """Ask the command, with tables on disk."""
    commands.run_all(answers, draw_table, folder)


MODELS: dict[str, Callable[[Answers, Path], None]] = {
    "default": partial(ask_subjects, default),
    "out of bag": partial(ask_subjects, out_of_bag),
    "split": partial(ask_subjects, split),
    "jackknife+": partial(ask_subjects, jackknife),
    "cv+": partial(ask_subjects, cross),
    "other means": partial(ask_subjects, other_means),
    "several outputs": partial(ask_subjects, several_outputs),
    "weights, missing": partial(ask_subjects, weights_and_missing_values),
    "monotonic": partial(ask_subjects, monotonic),
    "pipeline": partial(ask_subjects, pipeline),
    "table": partial(ask_subjects, table),
    "leaves": partial(ask_subjects, leaves),
    "boosters": partial(ask_subjects, boosters),
    "search": partial(ask_subjects, search),
    "quantile-forest": ask_quantile_forests,
    "metrics": ask_metrics,
    "command": ask_commands,
}
