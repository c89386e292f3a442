"""How later rows are covered: blocks of rows in their order, each by a forest of those before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.fitted import FittedForest, IntervalQuery
from hdiforest._tables.encoder import TableEncoder
from hdiforest._tables.forms import ISO_DATE, ColumnError, form_of
from hdiforest._utils import Array
from hdiforest._utils.checks import check_one_for_each
from hdiforest._utils.hints import steps, warn_caller
from hdiforest._utils.optional import need, pa, pc
from hdiforest.calibration._calibrate import measure_cross_check
from hdiforest.calibration._groups import column_number, missing_rows
from hdiforest.calibration._method import Refit, Request, ignore_infinite_intervals
from hdiforest.calibration._result import Calibration, LaterCheck
from hdiforest.metrics import coverage_score

_N_BLOCKS = 4  # of later rows
_N_ERRORS = 4  # by which later rows may be covered less without a warning


def order_of_rows(forest: FittedForest, order: Any) -> NDArray[np.intp]:
    """Return the training rows in their order, with ties as they are, or raise ValueError."""
    X = forest.require_training_rows().X
    if isinstance(order, str | int):
        j = column_number(forest, "order", order)
        if isinstance(forest.encoder, TableEncoder) and j not in forest.encoder.ordered:
            what = f"{forest.encoder.columns[j]!r} holds categories"
            raise ValueError(f"order must be a column of numbers or dates, and {what}")
        values = X[:, j]
    else:
        values = np.asarray(order)
    check_one_for_each("order", values.shape, len(X))
    values = _with_texts_read(values)
    if missing := missing_rows(values):
        counted = f"{len(missing)} of {len(X)} are missing, the first in row {missing[0]}"
        raise ValueError(f"order must have a value for each row, and {counted}")
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


def check_later_rows(
    calibrate: Callable[[FittedForest, Request], Any],
    forest: FittedForest,
    order: NDArray[np.intp],
    refit: Refit,
    request: Request,
) -> tuple[LaterCheck | None, ...]:
    """Check blocks of the later half of rows with weight, each by a forest of the rows before it.

    The forests are calibrated by the first result of `calibrate`.
    """
    rows, by = forest.require_training_rows(), request.by
    order = order[rows.has_weight[order]]
    bounds = np.linspace(len(order) // 2, len(order), _N_BLOCKS + 1).astype(int)
    blocks: list[tuple[NDArray[np.intp], Array]] = []
    for begin, end in steps("fitting on the rows before each block", list(pairwise(bounds))):
        before, block = order[:begin], order[begin:end]
        fitted, scored = refit(before, block)
        of_block, labels = request._replace(blocks=()), None
        if by is not None and by.array is not None:
            of_block = of_block._replace(by=replace(by, array=by.array[before]))
            labels = by.array[block]
        with ignore_infinite_intervals():
            calibrated = calibrate(fitted, of_block)[0]
        positions, codes = np.arange(len(request.coverages)), calibrated.group_codes(scored, labels)
        query = IntervalQuery(scored, positions, request.n_threads, codes=codes)
        ends = calibrated.intervals(query)
        finite = ~np.isnan(ends).any(axis=(1, 2))
        blocks.append((block[finite], ends[finite]))
    together = np.concatenate([block for block, _ in blocks])
    y, weights = rows.y[together], rows.weights_of(together)
    ends = np.concatenate([own for _, own in blocks])

    def check(j: int) -> LaterCheck | None:
        shares = [
            float(coverage_score(rows.y[part], own[..., j], sample_weight=rows.weights_of(part)))
            for part, own in blocks
            if len(part) > 0
        ]
        whole = measure_cross_check(y, ends[..., j], weights)
        return None if whole is None else LaterCheck(**vars(whole), blocks=tuple(shares))

    return tuple(map(check, range(len(request.coverages))))


def warn_of_later_rows(calibration: Calibration) -> None:
    """Warn if later rows are covered less often than mixed rows, by over four standard errors."""
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
