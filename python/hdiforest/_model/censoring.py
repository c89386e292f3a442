"""Censored targets: residuals to grow a forest on, and the forest that survival is read from."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import RandomForestRegressor

from hdicore import Scorer
from hdiforest._model.fitted import FitFacts, FittedForest
from hdiforest._model.sklearn_forest import leaf_nodes, survival_forest_and_bags
from hdiforest._model.training_rows import TrainingRows, TreeBlock
from hdiforest._utils import Array, Events
from hdiforest._utils.hints import digest_of

MIN_SAMPLES_LEAF = 10  # so that a leaf holds a curve

_EXPECTED = (
    "y must be a structured array of a boolean event and a time, such as "
    "sksurv.util.Surv.from_arrays(event, time)"
)


def split_target(y: Any) -> tuple[Events, Array]:
    """Return events and times, (n,) each, of a structured array, or raise ValueError."""
    names = getattr(getattr(y, "dtype", None), "names", None)
    if names is None or len(names) != 2 or y.ndim != 1:
        raise ValueError(f"{_EXPECTED}, got {getattr(y, 'dtype', type(y).__name__)}")
    first, second = (y.dtype[name] for name in names)
    if first.kind != "b" and second.kind == "b":
        raise ValueError(f"{_EXPECTED}, in this order; got the fields {names}, which are swapped")
    if first.kind != "b":
        must = f"the event {names[0]!r} of y must be boolean, got {first}"
        raise ValueError(f"{must}; cast it where 1 stands for an event: astype(bool)")
    if second.kind not in "iuf":
        raise ValueError(f"the time {names[1]!r} of y must be a number, got {second}")
    event, time = y[names[0]].copy(), y[names[1]].astype(np.float64)
    if not (np.isfinite(time) & (time >= 0)).all():
        bad = time[~(np.isfinite(time) & (time >= 0))][0]
        raise ValueError(f"times of y must be finite and not negative, got {bad:g}")
    if not event.any():
        raise ValueError("y must have an event: all rows are censored, so no time is known")
    return event, time


def as_target(event: ArrayLike | None, time: ArrayLike) -> NDArray[np.void]:
    """Return what `split_target` takes apart."""
    target = np.empty(len(np.asarray(time)), dtype=[("event", bool), ("time", float)])
    target["event"], target["time"] = event, time
    return target


def deviance_residuals(event: Events, time: Array) -> Array:
    """Return the deviance residuals of rows without features, (n,): small where events come late.

    Therneau, Grambsch and Fleming, "Martingale-based residuals for survival models", Biometrika
    1990, by the Nelson-Aalen estimate of all rows. O(n log n).
    """
    order = np.lexsort((~event, time))
    ordered = time[order]
    n_at_risk = len(time) - np.searchsorted(ordered, ordered)
    hazard = np.cumsum(event[order] / n_at_risk)[np.searchsorted(ordered, time, "right") - 1]
    martingale = event - hazard
    logarithm = np.log(hazard, where=event, out=np.zeros(len(time)))
    residuals: Array = np.sign(martingale) * np.sqrt(np.maximum(-2 * (martingale + logarithm), 0))
    return residuals


def censoring_target(event: Events, time: Array) -> tuple[Events, Array]:
    """Return the target of which the censoring is the event: behind the events of its time."""
    return ~event, np.where(event, time, np.nextafter(time, np.inf))


def default_survival_forest(n_jobs: int | None, random_state: Any) -> RandomForestRegressor:
    """Return the forest that is grown on residuals."""
    options: dict[str, Any] = {"n_jobs": n_jobs, "random_state": random_state}
    leaves: Any = {"min_samples_leaf": MIN_SAMPLES_LEAF, "max_features": 1 / 3}
    return RandomForestRegressor(300, **leaves, **options)


def index_survival(
    estimator: Any,
    X: NDArray[np.float32],
    event: Events,
    time: Array,
    feature_names: Any,
    allow_nan: bool,
    n_threads: int,
) -> FittedForest:
    """Index the rows of the fit of a forest, as often as its trees drew them, by time and event.

    Raises ValueError if leaves hold other numbers of rows than the trees recorded.
    """
    forest, members, bags = survival_forest_and_bags(estimator, len(X), n_threads)
    rows = TrainingRows(X, time, None, bags, False, event=event)
    check = partial(_check_draws, list(zip(members, leaf_nodes(forest), strict=True)))
    index = rows.index(forest, None, "inbag", check=check, n_threads=n_threads)
    facts = FitFacts(
        weights="inbag",
        n_training_rows=len(X),
        allow_nan=allow_nan,
        matches_forest=False,
        training_digest=digest_of([X]),
        feature_range=rows.feature_range,
        feature_names=feature_names,
        target_names=None,
    )
    return FittedForest(Scorer(forest, index), facts, rows)


def _check_draws(trees: list[tuple[Any, NDArray[np.int32]]], block: TreeBlock) -> None:
    """Compare the rows in the leaves of some trees with what the trees recorded."""
    n_rows, k = block.leaves.shape
    counts = np.ones((n_rows, k), np.uint8) if block.counts is None else block.counts
    for j, (member, nodes) in enumerate(trees[block.first :][:k]):
        leaves, drawn = block.leaves[:, j], counts[:, j]
        for weights, recorded in (
            (drawn, member.tree_.weighted_n_node_samples),
            (drawn > 0, member.tree_.n_node_samples),
        ):
            found = np.bincount(leaves, weights=weights, minlength=len(nodes))
            if not np.array_equal(found, recorded[nodes]):
                raise ValueError(
                    "X must be the rows of the forest's last fit, without sample_weight and in "
                    f"their order; leaves of tree {block.first + j} hold other numbers of rows "
                    "than the forest recorded"
                )
