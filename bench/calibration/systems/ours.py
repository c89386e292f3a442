"""hdiforest: the HDIs of a forest as they are, and intervals calibrated in all ways it offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from hdiforest import ForestSearchOOB, HDIForestRegressor
from hdiforest._model.bases import Base
from hdiforest._utils.kinds import BASE_KINDS
from hdiforest.calibration import CVPlus, OutOfBag
from hdiforest.calibration import _out_of_bag as out_of_bag

from .interface import Intervals, System, Training

# More than are compared, to draw coverage over the nominal level.
COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)
UNCALIBRATED, CALIBRATED = "HDI, raw", "HDI, calibrated"
DEFAULT, EARLIER = "HDI, extra trees", "HDI, extra trees, the rule before"
THREE_KINDS = "HDI, extra trees, three kinds"


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


def three_kinds(training: Training) -> Intervals:
    """Let HDIs and equal-tailed intervals compete with the averaged ones of the default."""

    def widened(bases: Sequence[Base]) -> tuple[Base, ...]:
        return tuple(base._replace(kind=kind) for base in bases for kind in reversed(BASE_KINDS))

    candidates = out_of_bag._candidates
    with patch.object(
        out_of_bag,
        "_candidates",
        lambda source, by_size, rows, bases: candidates(source, by_size, rows, widened(bases)),
    ):
        return calibrated(extra_trees(training), training)


SYSTEMS = (
    # Rows of commit 8da7a508, which rules.py adds to: 162 candidates at three slopes.
    System(EARLIER, 3, None, COVERAGES, is_ours=True),
    *(
        System(name, version, fit, COVERAGES, is_ours=True)
        for name, version, fit in (
            (UNCALIBRATED, 1, raw),
            (CALIBRATED, 5, lambda t: calibrated(fitted(t), t)),
            (DEFAULT, 4, lambda t: calibrated(extra_trees(t), t)),
            (THREE_KINDS, 1, three_kinds),
            ("HDI, extra trees, by score", 4,
             lambda t: calibrated(extra_trees(t), t, method=OutOfBag(objective="interval_score"))),
            ("HDI, tuned", 4, lambda t: calibrated(searched(t), t)),
            ("HDI, extra trees, boosted", 4,
             lambda t: calibrated(extra_trees(t), t, mean="boosting")),
            ("HDI, tuned, boosted", 4, lambda t: calibrated(searched(t), t, mean="boosting")),
            ("HDI, extra trees, split", 4, by_split),
            ("HDI, extra trees, CV+", 4,
             lambda t: calibrated(extra_trees(t), t, method=CVPlus(5))),
        )
    ),
)  # fmt: skip
