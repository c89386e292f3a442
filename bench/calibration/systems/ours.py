"""hdiforest: the HDIs of a forest as they are, and intervals calibrated in all ways it offers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from hdiforest import ForestSearchOOB, HDIForestRegressor
from hdiforest.calibration import CVPlus

from .interface import Intervals, System, Training

# More than are compared, to draw coverage over the nominal level.
COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)
UNCALIBRATED, CALIBRATED = "HDI, raw", "HDI, calibrated"


def fitted(training: Training) -> HDIForestRegressor:
    """Fit scikit-learn's default forest with the index of its training rows."""
    forest = RandomForestRegressor(**training.forest_options())
    return HDIForestRegressor(forest, n_jobs=1, calibration=False).fit(training.X, training.y)


def extra_trees(training: Training) -> HDIForestRegressor:
    """Fit the forest of `HDIForestRegressor()`."""
    forest = ExtraTreesRegressor(**training.forest_options(), bootstrap=True)
    return HDIForestRegressor(forest, n_jobs=1, calibration=False).fit(training.X, training.y)


def searched(training: Training) -> HDIForestRegressor:
    """Keep the one of three forests that is best at 0.9, out of bag."""
    options = training.forest_options()
    forests = [
        RandomForestRegressor(**options, max_features=1 / 3),
        RandomForestRegressor(**options),
        ExtraTreesRegressor(**options, bootstrap=True),
    ]
    search = ForestSearchOOB(forests, 0.9, random_state=training.seed)
    return search.fit(training.X, training.y).best_estimator_


def calibrated(model: HDIForestRegressor, training: Training, **options: Any) -> Intervals:
    """Return the calibrated intervals of a fitted model."""
    model.calibrate(coverage=training.coverages, random_state=training.seed, **options)
    return lambda X: model.predict_interval(X, training.coverages)


def raw(training: Training) -> Intervals:
    model = fitted(training)
    return lambda X: model.predict_interval(X, training.coverages, kind="hdi")


def by_split(training: Training) -> Intervals:
    kept, held_out = training.split()
    return calibrated(extra_trees(kept), training, X=held_out.X, y=held_out.y)


def before(training: Training) -> Intervals:
    """Calibrate as the first default did, which did not allow for the selection's optimism."""
    with patch("hdiforest.calibration._selection.corrected", lambda rule: rule):
        return calibrated(extra_trees(training), training, **BEFORE)


Fit = Callable[[Training], Intervals]

# What the default calibration was, and what is added to it one after another.
BEFORE = {
    "objective": "width",
    "kinds": ("hdi", "equal_tailed"),
    "adaptive": False,
    "min_samples_leaf": (1,),
}
STEPS = {
    "pruned": {"min_samples_leaf": (1, 5, 15)},
    "balanced": {"objective": "balanced"},
    "averaged": {"kinds": ("hdi", "equal_tailed", "averaged")},
    "adaptive": {"adaptive": True},
}


def _ablations() -> Iterator[tuple[str, int, Fit]]:
    """Return the default as it was, and with each step in turn; with all it is the default."""
    options = BEFORE
    yield "HDI, extra trees, before", 1, before
    for name, step in list(STEPS.items())[:-1]:
        options = options | step
        yield (
            f"HDI, extra trees, + {name}",
            2,
            lambda t, options=options: calibrated(extra_trees(t), t, **options),
        )


SYSTEMS = tuple(
    System(name, version, fit, COVERAGES, is_ours=True)
    for name, version, fit in (
        (UNCALIBRATED, 1, raw),
        *_ablations(),
        (CALIBRATED, 4, lambda t: calibrated(fitted(t), t)),
        ("HDI, extra trees", 3, lambda t: calibrated(extra_trees(t), t)),
        ("HDI, extra trees, by score", 3,
         lambda t: calibrated(extra_trees(t), t, objective="interval_score")),
        ("HDI, tuned", 3, lambda t: calibrated(searched(t), t)),
        ("HDI, extra trees, boosted", 3, lambda t: calibrated(extra_trees(t), t, mean="boosting")),
        ("HDI, tuned, boosted", 3, lambda t: calibrated(searched(t), t, mean="boosting")),
        ("HDI, extra trees, split", 3, by_split),
        ("HDI, extra trees, CV+", 3,
         lambda t: calibrated(extra_trees(t), t, method=CVPlus(5))),
    )
)  # fmt: skip
