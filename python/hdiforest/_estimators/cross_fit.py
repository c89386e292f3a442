"""Fits a forest without each fold of the training rows, and calibrates by the rows left out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold, KFold
from sklearn.utils import _safe_indexing

from hdiforest._estimators.rows import checked_rows
from hdiforest._model.calibrate import Settings, calibrated_if_possible
from hdiforest._model.fitted import FittedForest
from hdiforest._model.predict import fold_intervals
from hdiforest._model.training_rows import TrainingRows
from hdiforest.calibration._calibrate import calibrate_cross
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._result import Calibration, CrossCalibration


def fold_rows(
    rows: TrainingRows, cv: int, groups: ArrayLike | None, random_state: int | None
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield the rows to fit on and the rows held out, `cv` times; those of weight 0 are neither.

    Raises
    ------
    ValueError
        If there are fewer rows or groups than folds, or groups do not fit the rows.
    """
    weighted = np.flatnonzero(rows.has_weight)
    n = len(weighted)
    if not isinstance(cv, int | np.integer) or cv < 2:
        raise ValueError(f"cv must be a whole number from 2 on, got {cv!r}")
    if groups is None:
        if n < cv:
            raise ValueError(f"cv must be at most the number of training rows, {n}, got {cv}")
        splits = KFold(cv, shuffle=True, random_state=random_state).split(weighted)
    else:
        numbers = _group_numbers(groups, len(rows.y))[weighted]
        n_groups = len(np.unique(numbers))
        if n_groups < cv:
            raise ValueError(f"groups must be {cv} or more, as many as cv, got {n_groups}")
        splitter = GroupKFold(cv, shuffle=True, random_state=random_state)
        splits = splitter.split(weighted, groups=numbers)
    for fit, held_out in splits:
        yield weighted[fit], weighted[held_out]


def _group_numbers(groups: ArrayLike, n: int) -> NDArray[np.intp]:
    """Return a number for each of n rows, the same for rows of one group."""
    names = np.asarray(groups)
    if names.shape != (n,):
        raise ValueError(f"groups must have shape ({n},), got {names.shape}")
    known: dict[Any, int] = {}
    for row, name in enumerate(names.tolist()):
        if _is_missing(name):
            raise ValueError(f"groups must name a group for every row, and row {row} has {name!r}")
        known.setdefault(name, len(known))
    return np.array([known[name] for name in names.tolist()], dtype=np.intp)


def _is_missing(name: Any) -> bool:
    try:
        return name is None or bool(name != name)
    except TypeError:  # pandas.NA
        return True


def cross_fitted(
    new_model: Callable[[], Any],
    X: Any,
    rows: TrainingRows,
    settings: Settings,
    folds: Iterable[tuple[NDArray[np.intp], NDArray[np.intp]]],
    grouped: bool,
    n_threads: int,
) -> tuple[CrossCalibration, tuple[FittedForest, ...]]:
    """Fit and score each fold.

    Parameters
    ----------
    new_model : callable
        Returns an unfitted HDIForestRegressor.
    X : array or table
        The training rows as the model's `fit` takes them.
    rows : TrainingRows
    settings : Settings
        By which each fold is calibrated out of bag.
    folds : iterable of K pairs of int arrays
        Rows to fit on and rows held out, as `fold_rows` yields them.
    grouped : bool
        Whether folds keep groups of rows together.
    n_threads : int

    Returns
    -------
    calibration : CrossCalibration
    forests : tuple of K FittedForest
        Without their training rows.

    Notes
    -----
    Scores are those of the calibrated intervals of each fold, to which the rows held out gave
    nothing: the guarantee of CV+ holds, and scores of folds that chose other bases are alike.
    """
    forests, ends, targets, weigh = [], [], [], []
    weights = rows.sample_weight
    for fit, held_out in folds:
        model = new_model()
        own_weights = None if weights is None else weights[fit]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the forest ")  # the fit on all rows warned of it
            model.fit(_safe_indexing(X, fit), rows.y[fit], own_weights)
        forest = calibrated_if_possible(model._fitted, settings, n_threads)
        if _has_infinite_intervals(forest):
            forest = forest.uncalibrated()
        forests.append(replace(forest, training_rows=None))
        scored = checked_rows(model, _safe_indexing(X, held_out), model._fitted)
        own = fold_intervals(forests[-1], scored, len(settings.coverages), n_threads)
        finite = np.isfinite(own).all(axis=(1, 2))
        if not finite.any():
            raise ValueError("cv must be smaller: a fold holds out no row with an interval")
        ends.append(own[finite])
        targets.append(rows.y[held_out[finite]])
        if weights is not None:
            weigh.append(weights[held_out[finite]])
    postprocess = PostProcess.from_targets(rows.y[rows.has_weight], clip=settings.clip)
    calibration = calibrate_cross(
        ends, targets, settings.coverages, postprocess, grouped=grouped, weights=weigh or None
    )
    return calibration, tuple(forests)


def _has_infinite_intervals(forest: FittedForest) -> bool:
    calibration = forest.calibration
    return isinstance(calibration, Calibration) and not all(
        np.isfinite(level.q_hat) for level in calibration.levels
    )
