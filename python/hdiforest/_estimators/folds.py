"""Folds of CV+: a forest fitted without each, calibrated by the rows that it left out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold, KFold
from sklearn.utils import _safe_indexing

from hdiforest._estimators.input_rows import checked_rows
from hdiforest._model.calibrate import Settings, calibrate_if_possible
from hdiforest._model.fitted import FittedForest
from hdiforest._model.predict import predict_fold
from hdiforest._model.training_rows import TrainingRows
from hdiforest.calibration import Calibration, CrossCalibration, CVPlus
from hdiforest.calibration._calibrate import calibrate_cross
from hdiforest.calibration._postprocess import PostProcess

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]  # rows to fit on and rows held out


def split_folds(rows: TrainingRows, how: CVPlus, random_state: int | None) -> Iterator[Fold]:
    """Yield the folds of training rows; those of weight 0 are neither fitted on nor held out.

    Raises ValueError if there are fewer rows or groups than folds, or groups do not fit the rows.
    """
    weighted = np.flatnonzero(rows.has_weight)
    n, n_folds = len(weighted), how.n_folds
    if how.groups is None:
        if n < n_folds:
            most = f"the number of training rows, {n}"
            raise ValueError(f"n_folds must be at most {most}, got {n_folds}")
        splits = KFold(n_folds, shuffle=True, random_state=random_state).split(weighted)
    else:
        numbers = _group_numbers(how.groups, len(rows.y))[weighted]
        n_groups = len(np.unique(numbers))
        if n_groups < n_folds:
            least = f"{n_folds} or more, as many as n_folds"
            raise ValueError(f"groups must be {least}, got {n_groups}")
        splitter = GroupKFold(n_folds, shuffle=True, random_state=random_state)
        splits = splitter.split(weighted, groups=numbers)
    for fit, held_out in splits:
        yield weighted[fit], weighted[held_out]


def _group_numbers(groups: ArrayLike, n: int) -> NDArray[np.intp]:
    """Return a number for each of n rows, the same for rows of one group."""
    names = np.asarray(groups)
    if names.shape != (n,):
        raise ValueError(f"groups must have shape ({n},), got {names.shape}")
    numbers: dict[Any, int] = {}
    for row, name in enumerate(names.tolist()):
        if _is_missing(name):
            raise ValueError(f"groups must name a group for every row, and row {row} has {name!r}")
        numbers.setdefault(name, len(numbers))
    return np.array([numbers[name] for name in names.tolist()], dtype=np.intp)


def _is_missing(name: Any) -> bool:
    try:
        return name is None or bool(name != name)
    except TypeError:  # pandas.NA
        return True


def fit_folds(
    new_model: Callable[[], Any],
    X: Any,
    rows: TrainingRows,
    settings: Settings,
    folds: Iterable[Fold],
    grouped: bool,
    n_threads: int,
) -> tuple[CrossCalibration, tuple[FittedForest, ...]]:
    """Fit and score each fold; return the calibration, and the forests without training rows.

    `new_model` returns an unfitted HDIForestRegressor, whose `fit` takes rows as those of X. Each
    fold is calibrated out of bag by the settings. `grouped` says that folds keep groups together.

    Scores are those of the calibrated intervals of each fold, to which the rows held out gave
    nothing: the guarantee of CV+ holds, and scores of folds that chose other bases are alike.
    """
    forests, ends, targets, row_weights = [], [], [], []
    weights = rows.sample_weight
    for fit, held_out in folds:
        model = new_model()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the forest ")  # the fit on all rows warned of it
            fit_weights = None if weights is None else weights[fit]
            model.fit(_safe_indexing(X, fit), rows.y[fit], fit_weights)
        forest = calibrate_if_possible(model.fitted_forest(), settings, n_threads)
        if _has_infinite_intervals(forest):
            forest = forest.uncalibrated()
        forests.append(replace(forest, training_rows=None))
        scored = checked_rows(model, _safe_indexing(X, held_out), model.fitted_forest())
        fold_ends = predict_fold(forests[-1], scored, len(settings.coverages), n_threads)
        finite = np.isfinite(fold_ends).all(axis=(1, 2))
        if not finite.any():
            raise ValueError("n_folds must be smaller: a fold holds out no row with an interval")
        ends.append(fold_ends[finite])
        targets.append(rows.y[held_out[finite]])
        if weights is not None:
            row_weights.append(weights[held_out[finite]])
    postprocess = PostProcess.from_targets(rows.y[rows.has_weight], clip=settings.clip)
    calibration = calibrate_cross(
        ends, targets, settings.coverages, postprocess, grouped=grouped, weights=row_weights or None
    )
    return calibration, tuple(forests)


def _has_infinite_intervals(forest: FittedForest) -> bool:
    calibration = forest.calibration
    return isinstance(calibration, Calibration) and not all(
        np.isfinite(level.q_hat) for level in calibration.levels
    )
