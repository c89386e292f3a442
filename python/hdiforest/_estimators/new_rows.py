"""NewRows: rows as callers give them, and what the forest of an HDIForestRegressor says of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray

from hdicore import Scorer
from hdiforest._estimators.input_rows import (
    Block,
    check_labels,
    checked_blocks,
    concatenated,
    is_plain,
    warn_of_new_groups,
)
from hdiforest._estimators.row_source import Query, Readings, RowSource, join_columns, query_of
from hdiforest._model.fitted import Calibrated, FittedForest, IntervalQuery
from hdiforest._utils import Array
from hdiforest._utils.hints import digest_of, warn_caller
from hdiforest.calibration import _predict as predict


class NewRows(RowSource):
    """Rows X of an HDIForestRegressor."""

    def by_block(self, answer: Callable[[Block, int], Array], values: Any = None) -> Array:
        """Return answers to blocks of rows, by numbers of threads, as one array."""
        n_threads = self.model._n_threads
        blocks = checked_blocks(self.model, self.X, self.fitted, values)
        return concatenated(answer(block, n_threads(len(block.rows))) for block in blocks)

    def query(self, query: Query, values: ArrayLike | None = None) -> Array:
        """Ask the scorer of the forest."""
        fitted, X = self.fitted, self.X
        if values is None and is_plain(X, self.model, fitted):
            # One row takes a microsecond less than through blocks.
            return query(fitted.scorer, X, n_threads=self.model._n_threads(len(X)))

        def answer(block: Block, n_threads: int) -> Array:
            return query(fitted.scorer, block.rows, *block.per_row, n_threads=n_threads)

        return self.by_block(answer, values)

    def calibrated_interval(
        self, coverage: Any, by: Any, joint: bool, with_mean: bool, kind: str
    ) -> Array:
        """Ask the calibration, with the rows for the forests of folds and their groups."""
        # The kind says that there is one.
        fitted, X, calibrated = self.fitted, self.X, cast("Calibrated", self.fitted.calibrated)
        positions = calibrated.result.positions(coverage)
        if joint:
            calibrated = predict.boxes_of(calibrated)
        is_grouped = by is not None or calibrated.groups is not None
        if not (with_mean or is_grouped) and is_plain(X, self.model, fitted):
            n_threads = self.model._n_threads(len(X))
            return calibrated.intervals(IntervalQuery(X, positions, n_threads, kind=kind))
        of_new_groups: list[NDArray[np.bool_]] = []

        def answer(block: Block, n_threads: int) -> Array:
            shape = (len(block.rows), fitted.n_outputs)[: 1 + bool(calibrated.outputs)]
            mean = np.empty(shape) if with_mean else None
            of_folds = [steps.rows(block.given) for steps in fitted.steps_of_folds]
            codes = calibrated.group_codes(block.rows, *block.per_row)
            if codes is not None:
                of_new_groups.append(codes < 0)
            query = IntervalQuery(block.rows, positions, n_threads, mean, of_folds, codes, kind)
            ends = calibrated.intervals(query)
            return ends if mean is None else join_columns(mean, ends)

        answers = self.by_block(answer, check_labels(by, X))
        warn_of_new_groups(of_new_groups)
        return answers

    def read_bases(self, readings: Readings, values: Array | None = None) -> Array:
        """Read the base quantiles of each output."""

        def answer(block: Block, n_threads: int) -> Array:
            def of_output(part: FittedForest, o: int, *values: Array) -> Array:
                return predict.read_distributions(part, block.rows, readings[o], n_threads, values)

            return predict.of_outputs(self.fitted, of_output, *block.per_row)

        return self.by_block(answer, values)

    def draw(self, n_samples: int, random: RandomState) -> Array:
        """Draw from the forest's own distributions; see `HDIForestRegressor.sample`."""
        fitted = self.fitted
        scalar = fitted.scorer.index.scalar_output
        scorer: Scorer = fitted.scorer if scalar else fitted.row_scorer(self.model._n_threads)

        def draws(block: Block, n_threads: int) -> Array:
            uniforms = random.random_sample((len(block.rows), n_samples))
            return scorer.draws(block.rows, uniforms, n_threads=n_threads, out=uniforms)

        drawn = self.by_block(draws)
        if scalar:
            return drawn
        empty = np.isnan(drawn)
        targets = fitted.require_training_rows().y[np.where(empty, 0, drawn).astype(np.intp)]
        targets[empty] = np.nan
        return np.moveaxis(targets, 2, 1)

    def joint_levels(self, n_samples: int, random: RandomState) -> Array:
        """Return how much of the forest's own distributions is above draws of it, as `draw`."""
        drawn = np.nan_to_num(self.draw(n_samples, random))
        upto, below = (self.query(query_of("cdf", inclusive=up), drawn) for up in (True, False))
        above: Array = 1 - (below + random.random_sample(upto.shape) * (upto - below))
        return np.nan_to_num(above).clip(0, 1)

    def warn_of_training_rows(self) -> None:
        """Warn, once a model, if X, which was scored, holds the rows of the fit in their order."""
        fitted, X = self.fitted, self.X
        is_read = not hasattr(X, "__len__")  # a stream, of which nothing is left
        if is_read or len(X) != fitted.facts.n_training_rows or not self.model._to_warn:
            return
        blocks = checked_blocks(self.model, X, fitted)
        if digest_of(block.rows for block in blocks) == fitted.facts.training_digest:
            with suppress(IndexError):  # another thread has warned meanwhile
                warn_caller(
                    "X holds the rows of the fit: intervals cover more of their targets than of "
                    "those of new rows; use rows that took no part in the fit, or in Python "
                    "oob_.interval, which asks for each row the trees that did not draw it",
                    self.model._to_warn.pop(),
                )
