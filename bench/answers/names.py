"""Calls whose names differ between versions of the user layer: the one file to mend.

Every function finds out by itself which version it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import hdiforest
from hdiforest import HDIForestRegressor, LeafModel


def first_module(*names: str) -> Any:
    """Import the first module of these that there is."""
    for name in names:
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if not name.startswith(str(error.name)):
                raise
    raise ModuleNotFoundError(f"there is none of {', '.join(names)}", name=names[0])


def first_of(holder: Any, *names: str) -> Any:
    """Return the first attribute of these that there is."""
    present = [name for name in names if hasattr(holder, name)]
    return getattr(holder, present[0] if present else names[0])


def takes(call: Any, argument: str) -> bool:
    return argument in signature(call).parameters


def method_of(model: Any, name: str) -> Any:
    """Return a method of a model, or of its object `oob_` if the name begins so; None: no such."""
    if name.startswith("oob_") and hasattr(type(model), "oob_"):
        model, name = model.oob_, name.removeprefix("oob_")
    return getattr(model, name) if hasattr(type(model), name) else None


def uncalibrated(call: Any) -> dict[str, bool]:
    """Return the option by which a fit of a given forest leaves its intervals as they are."""
    return {"calibration": False} if takes(call, "calibration") else {}


def unfitted_model(estimator: Any, **options: Any) -> Any:
    """Return a model whose fit does not calibrate."""
    return HDIForestRegressor(estimator, **uncalibrated(HDIForestRegressor), **options)


def fit_table(table: Any, target: str, **options: Any) -> Any:
    """Fit a model to a table; with an estimator of its own it is not calibrated."""
    call = hdiforest.fit_table
    without = uncalibrated(call) if "estimator" in options else {}
    return call(table, target, **without, **options)


METHODS = {"oob": "OutOfBag", "split": "Split", "cv+": "CVPlus", "jackknife+": "JackknifePlus"}
METHOD_OPTIONS = {
    "cv": "n_folds",
    "groups": "groups",
    "confidence": "confidence",
    "max_rows": "max_rows",
}


def calibrate(
    model: Any, coverage: Sequence[float], X: Any = None, y: Any = None, **options: Any
) -> Any:
    """Calibrate a model of either kind."""
    rows = {} if X is None else {"X": X, "y": y}
    if not hasattr(hdiforest.calibration, "OutOfBag"):
        if rows and not isinstance(model, LeafModel):
            rows["method"] = "split"
        return model.calibrate(coverage=coverage, **rows, **options)
    known = METHOD_OPTIONS
    if not takes(HDIForestRegressor.calibrate, "objective"):
        known = known | {"objective": "objective"}
    own = {known[name]: options.pop(name) for name in known if name in options}
    if own:
        name = options.pop("method", "split" if rows else "oob")
        options["method"] = getattr(hdiforest.calibration, METHODS[name])(**own)
    return model.calibrate(coverage=coverage, **rows, **options)


def leaf_model(apply: Any, X: Any, y: Any, **options: Any) -> Any:
    call = LeafModel.from_leaves if hasattr(LeafModel, "from_leaves") else hdiforest.from_leaves
    return call(apply, X, y, **options)


def booster_model(library: str, booster: Any, X: Any, y: Any) -> Any:
    """Return a LeafModel of LightGBM's, XGBoost's or CatBoost's trees."""
    name = f"from_{library}"
    call = getattr(LeafModel if hasattr(LeafModel, name) else hdiforest, name)
    return call(booster, X, y)


def load(path: Path) -> Any:
    return HDIForestRegressor.load(path)


def batch_scorer(path: Path, **options: Any) -> Any:
    return first_module("hdiforest.serving", "hdiforest.batch").BatchScorer(path, **options)


def quantile_forests() -> Any:
    """Return the module of quantile-forest's estimators."""
    return first_module("hdiforest.adapters.quantile_forest", "hdiforest.quantile_forest")


def dask_intervals(*arguments: Any, **options: Any) -> Any:
    dask = first_module("hdiforest.adapters.dask", "hdiforest.dask")
    return dask.predict_interval(*arguments, **options)


def scorers() -> dict[str, Any]:
    """Return a scorer of each kind."""
    metrics = import_module("hdiforest.metrics")

    def make(name: str) -> Any:
        return first_of(metrics, f"make_{name}_scorer", f"{name}_scorer")

    return {
        "interval": make("interval")(0.8),
        "coverage": make("coverage")(0.8),
        "crps": make("crps")(),
        "pinball": make("pinball")(0.3),
    }


def metrics() -> dict[str, Any]:
    """Return the metrics of intervals by what they measure."""
    room = import_module("hdiforest.metrics")
    return {
        "coverage": room.coverage_score,
        "width": first_of(room, "mean_width_score", "mean_interval_width"),
        "interval score": first_of(room, "interval_score", "interval_loss"),
        "crps": first_of(room, "crps_score", "crps_loss"),
        "strata": room.coverage_by_width,
    }


def search_results(search: Any) -> dict[str, Any]:
    results = first_of(search, "results_", "cv_results_")
    numbers = {name: results[name] for name in ("width", "coverage", "interval_score")}
    return numbers | {"audit": results["audit" if "audit" in results else "cross_check"]}


def calibration_numbers(calibration: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a calibration holds, by names of our own; its words are left out."""
    for name in ("method", "n", "coverages"):
        yield name, getattr(calibration, name)
    finish = first_of(calibration, "finish", "support", "postprocess")
    for name in ("low", "high", "clip"):
        yield f"range/{name}", getattr(finish, name)
    yield "range/lattice", None if finish.lattice is None else tuple(finish.lattice)
    for level in calibration.levels:
        for name, value in level_numbers(level, calibration.n):
            yield f"{level.coverage:g}/{name}", value
    if hasattr(calibration, "scores"):
        yield "grouped", calibration.grouped
        yield "scores", calibration.scores
        yield "weights", calibration.weights
    else:
        yield "confidence", calibration.confidence
        yield "weighted", calibration.weighted


CHOICE = ("family", "kind", "level", "coverage", "mean_width", "interval_score", "realised")
AUDIT = ("coverage", "standard_error", "mean_width", "thirds", "worst_of_five")


def level_numbers(level: Any, n: int) -> Iterator[tuple[str, Any]]:
    for name in ("mean_width", "realised"):
        yield name, getattr(level, name)
    choice = getattr(level, "choice", level if hasattr(level, "base") else None)
    if choice is not None:
        for name in CHOICE:
            owner = choice if hasattr(choice, name) else choice.base
            yield f"choice/{name}", getattr(owner, name)
        yield "choice/n", getattr(choice, "n", n)
        yield "choice/pad", first_of(choice, "pad", "quantile", "q_hat")
    audit = first_of(level, "audit", "cross_check", "held_out")
    if audit is None:
        yield "audit", None
    else:
        for name in AUDIT:
            yield f"audit/{name}", getattr(audit, name)
