"""Which rows a calibration divides: folds of CV+, earlier and later ones, and groups."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold
from sklearn.utils import _safe_indexing

from hdiforest._estimators.input_rows import checked_rows
from hdiforest._model import calibrate
from hdiforest._model.calibrate import Settings
from hdiforest._model.fitted import FittedForest, GroupSource
from hdiforest._model.predict import predict_calibrated, predict_fold
from hdiforest._model.training_rows import TrainingRows
from hdiforest._tables.encoder import TableEncoder
from hdiforest._tables.forms import ISO_DATE, ColumnError, form_of
from hdiforest._tables.frames import frame_of
from hdiforest._utils import Array
from hdiforest._utils.hints import steps, warn_caller
from hdiforest._utils.optional import need, pa, pc
from hdiforest.calibration import Calibration, CrossCalibration, CVPlus, OutOfBag, Split
from hdiforest.calibration._calibrate import calibrate_cross, measure_cross_check
from hdiforest.calibration._groups import is_missing, missing_rows
from hdiforest.calibration._methods import Method
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._result import LaterCheck
from hdiforest.exceptions import MeansWarning, NewGroupsWarning
from hdiforest.metrics import coverage_score

_N_BLOCKS = 4  # of later rows
_N_ERRORS = 4  # by which later rows may be covered less without a warning

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]  # rows to fit on and rows held out


def split_folds(rows: TrainingRows, how: CVPlus, random_state: int | None) -> Iterator[Fold]:
    """Yield folds of the rows with weight; ValueError if there are too few rows or groups."""
    weighted = np.flatnonzero(rows.has_weight)
    n, n_folds = len(weighted), how.n_folds
    if how.groups is None:
        if n < n_folds:
            most = f"the number of training rows, {n}"
            raise ValueError(f"n_folds must be at most {most}, got {n_folds}")
        splits = KFold(n_folds, shuffle=True, random_state=random_state).split(weighted)
    else:
        numbers = _group_numbers(how.groups, len(rows.y))[weighted]
        if (n := len(np.unique(numbers))) < n_folds:
            least = f"{n_folds} or more, as many as n_folds"
            raise ValueError(f"groups must be {least}, got {n}")
        splitter = GroupKFold(n_folds, shuffle=True, random_state=random_state)
        splits = splitter.split(weighted, groups=numbers)
    for fit, held_out in splits:
        yield weighted[fit], weighted[held_out]


def _group_numbers(groups: ArrayLike, n: int) -> NDArray[np.intp]:
    """Return a number for each of n rows, the same for rows of one group."""
    names = np.asarray(groups)
    if names.shape != (n,):
        raise ValueError(f"groups must have shape ({n},), got {names.shape}")
    for row, name in enumerate(names.tolist()):
        if is_missing(name):
            raise ValueError(f"groups must name a group for every row, and row {row} has {name!r}")
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(each, len(numbers)) for each in names.tolist()], np.intp)


def fit_folds(
    unfitted: Any, X: Any, rows: TrainingRows, settings: Settings, how: CVPlus, n_threads: int
) -> tuple[CrossCalibration, tuple[FittedForest, ...]]:
    """Fit and score each fold; return the calibration, and the forests without training rows.

    Each fold is fitted by a clone of an `unfitted` HDIForestRegressor, whose `fit` takes rows as
    those of X, and calibrated out of bag by the settings.
    Scores are those of the calibrated intervals of each fold, to which the rows held out gave
    nothing: the guarantee of CV+ holds, and scores of folds that chose other bases are alike.
    """
    forests, ends, targets, row_weights = [], [], [], []
    weights = rows.sample_weight
    # All at once, so that what is refused is so before any work is done.
    folds = list(split_folds(rows, how, settings.random_state))
    for fit, held_out in steps("fitting and calibrating folds", folds):
        model = clone(unfitted)
        _fit_part(model, X, rows, fit)
        forest = calibrate.calibrate_if_possible(model._fitted_forest(), settings, n_threads)
        own = forest.calibration
        if isinstance(own, Calibration) and not all(np.isfinite(e.q_hat) for e in own.levels):
            forest = forest.uncalibrated()
        forests.append(replace(forest, training_rows=None))
        scored = checked_rows(model, _safe_indexing(X, held_out), model._fitted_forest())
        fold_ends = predict_fold(forests[-1], scored, len(settings.coverages), n_threads)
        finite = np.isfinite(fold_ends).all(axis=(1, 2))
        if not finite.any():
            raise ValueError("n_folds must be smaller: a fold holds out no row with an interval")
        ends.append(fold_ends[finite])
        targets.append(rows.y[held_out[finite]])
        if weights is not None:
            row_weights.append(weights[held_out[finite]])
    postprocess = PostProcess.from_targets(rows.weighted_targets)
    options: Any = {"grouped": how.groups is not None, "weights": row_weights or None}
    args = ends, targets, settings.coverages, postprocess
    return calibrate_cross(*args, **options), tuple(forests)


def check_later_rows(
    model: Any,
    X: Any,
    rows: TrainingRows,
    settings: Settings,
    order: NDArray[np.intp],
    n_threads: int,
) -> tuple[LaterCheck | None, ...]:
    """Check blocks of the second half of the rows with weight, each by a forest of those before."""
    order, by = order[rows.has_weight[order]], settings.by
    bounds = np.linspace(len(order) // 2, len(order), _N_BLOCKS + 1).astype(int)
    blocks: list[tuple[NDArray[np.intp], Array]] = []
    for begin, end in steps("fitting on the rows before each block", list(pairwise(bounds))):
        before, block = order[:begin], order[begin:end]
        _fit_part(model, X, rows, before)
        own, labels = settings, None
        if by is not None and by.array is not None:
            own, labels = replace(settings, by=replace(by, array=by.array[before])), by.array[block]
        with calibrate.ignore_infinite_intervals():
            forest = calibrate.calibrate_out_of_bag(model._fitted_forest(), own, n_threads)
        scored = checked_rows(model, _safe_indexing(X, block), model._fitted_forest())
        codes = forest.group_codes(scored, labels)
        ends = predict_calibrated(forest, scored, settings.coverages, n_threads, codes=codes)
        finite = ~np.isnan(ends).any(axis=(1, 2))
        blocks.append((block[finite], ends[finite]))
    of_blocks, all_ends = zip(*blocks, strict=True)
    sizes = np.cumsum([len(block) for block in of_blocks])[:-1]
    together, ends = np.concatenate(of_blocks), np.concatenate(all_ends)

    def check(j: int) -> LaterCheck | None:
        parts = zip(np.split(together, sizes), np.split(ends[..., j], sizes), strict=True)
        shares = [
            float(coverage_score(rows.y[part], own, sample_weight=rows.weights_of(part)))
            for part, own in parts
            if len(part) > 0
        ]
        whole = measure_cross_check(rows.y[together], ends[..., j], rows.weights_of(together))
        return None if whole is None else LaterCheck(**vars(whole), blocks=tuple(shares))

    return tuple(map(check, range(len(settings.coverages))))


def _fit_part(model: Any, X: Any, rows: TrainingRows, part: NDArray[np.intp]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeansWarning)  # the fit on all rows warned of it
        model.fit(_safe_indexing(X, part), rows.y[part], rows.weights_of(part))


def warn_of_later_rows(calibration: Calibration) -> None:
    """Warn if later rows are covered by more than four standard errors less than mixed ones."""
    for level in calibration.levels:
        mixed, later = level.cross_check, level.later
        if mixed is None or later is None:
            continue
        error = max(later.standard_error, mixed.standard_error)
        if later.coverage < mixed.coverage - _N_ERRORS * error:
            warn_caller(
                f"intervals of coverage {level.coverage:g} covered {later.coverage:.2f} of later "
                f"rows, by forests of the rows before them ({min(later.blocks):.2f} to "
                f"{max(later.blocks):.2f} in {len(later.blocks)} blocks), and {mixed.coverage:.2f} "
                "of rows mixed with those of the fit; expect the former of rows that come later"
            )
            return


def _column_number(fitted: FittedForest, name: str, column: str | int) -> int:
    """Return the number of a feature, by its name or number, or raise ValueError."""
    names = fitted.columns or ()
    if isinstance(column, str):
        if column not in names or len(names) != fitted.n_features:
            feature = "a column that is a feature of the forest"
            raise ValueError(f"{name} must be the name of {feature}, got {column!r}")
        return names.index(column)
    if not 0 <= column < fitted.n_features:
        raise ValueError(f"{name} must be a column from 0 to {fitted.n_features - 1}, got {column}")
    return int(column)


def group_source(fitted: FittedForest, by: Any, how: Method) -> GroupSource:
    """Return where groups come from, or raise ValueError."""
    if not isinstance(how, OutOfBag | Split):
        raise ValueError(f"by must be None with method={how.name!r}; 'oob' and 'split' take groups")
    if isinstance(by, str | int):
        return GroupSource(feature=_column_number(fitted, "by", by))
    source = GroupSource(function=by) if callable(by) else GroupSource(array=np.asarray(by))
    if isinstance(how, OutOfBag):
        source.labels(fitted.require_training_rows().X)  # raises before any work is done
    return source


def order_of_rows(fitted: FittedForest, order: Any, how: Method) -> NDArray[np.intp]:
    """Return the training rows in their order, those of equal rank as they are, or ValueError."""
    if not isinstance(how, OutOfBag):
        raise ValueError(f"order must be None with method={how.name!r}; 'oob' takes an order")
    X = fitted.require_training_rows().X
    if isinstance(order, str | int):
        j = _column_number(fitted, "order", order)
        if isinstance(fitted.encoder, TableEncoder) and j not in fitted.encoder.ordered:
            what = f"{fitted.encoder.columns[j]!r} holds categories"
            raise ValueError(f"order must be a column of numbers or dates, and {what}")
        values = X[:, j]
    else:
        values = np.asarray(order)
    if values.shape != (len(X),):
        raise ValueError(f"order must have shape ({len(X)},), got {values.shape}")
    values = _with_texts_read(values)
    if missing := missing_rows(values):
        found = f"{len(missing)} of {len(X)} are missing, the first in row {missing[0]}"
        raise ValueError(f"order must have a value for each row, and {found}")
    try:
        return np.argsort(values, kind="stable")
    except TypeError:
        raise ValueError("order must be numbers or dates, not several kinds of values") from None


def _with_texts_read(values: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers or dates that texts write, and other values as they are; ValueError."""
    if not all(isinstance(each, str | None) for each in values.flat):
        return values
    need("pyarrow", "an order of texts", None)
    texts = pa.array(values.tolist(), pa.large_string())
    try:
        form = form_of(texts)
    except ColumnError as error:
        raise ValueError(f"order {error}; give numbers or datetimes") from None
    others = texts.filter(pc.invert(pc.match_substring_regex(texts, ISO_DATE)))
    if form is None and len(others) > 0:
        raise ValueError(f"order must be numbers or dates, but holds {others[0].as_py()!r}")
    return values if form is None else cast("NDArray[Any]", form.read(texts).to_numpy(False))


def check_labels(by: ArrayLike | None, X: Any) -> NDArray[Any] | None:
    """Return labels of the groups of the rows of X, or raise ValueError if they are not as many."""
    if by is None:
        return None
    labels, n = np.asarray(by), frame_of(X).n_rows
    if labels.ndim == 0:
        raise ValueError(
            f"by must give the group of each row, got {by!r}; groups that are a column of X are "
            f"named by calibrate(by=...), and by=None then finds them in X"
        )
    if n is not None and labels.shape != (n,):
        raise ValueError(f"by must give one group for each of {n} rows, got shape {labels.shape}")
    return labels


def warn_of_new_groups(is_new: Sequence[NDArray[np.bool_]]) -> None:
    """Warn if rows, in blocks, are of groups that the calibration had no rows of."""
    n_new, n = sum(int(block.sum()) for block in is_new), sum(map(len, is_new))
    if n_new:
        warn_caller(
            f"{n_new:,} of {n:,} rows are of groups that the calibration had no rows of: they take "
            "the conformal quantile of all rows, so nothing is promised of these groups",
            NewGroupsWarning,
        )
