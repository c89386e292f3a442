"""Predictions that need single training rows: their weights, and joint draws of all outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, vstack

from hdiforest._tables.frames import Output
from hdiforest._utils.random_state import checked_random_state
from hdiforest.base import BaseForestModel
from hdiforest.rows import Rows, checked_blocks, concatenated


class TrainingRowWeights(BaseForestModel):
    """Conditional distributions as weights of the training rows, and draws from them."""

    def predict_weights(self, X: ArrayLike) -> csr_array:
        """Weight of every training row for every row of X, eq. (12) of the paper.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.

        Returns
        -------
        scipy.sparse.csr_array of shape (n, n_training_rows), float64
            Rows sum to 1, or are empty where no tree has a training row in the row's leaf (possible
            with ``weights="oob"``). Columns follow the order of the training rows.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ValueError
            If the rows are refused, or the model has no training rows.

        Notes
        -----
        With ``weights="monotonic"`` these are the weights of "inbag": the rows with their own
        targets, which leaves may have moved.
        The first call indexes the training rows one by one and keeps that index.
        """
        fitted = self._require_fitted()
        found = []
        for block in checked_blocks(self, X, fitted):
            scorer, n_threads = fitted.row_scorer(self._n_threads), self._n_threads(len(block.rows))
            indptr, indices, data = scorer.weights(block.rows, n_threads=n_threads)
            shape = (len(block.rows), fitted.n_training_rows)
            found.append(csr_array((data, indices, indptr), shape=shape))
        return found[0] if len(found) == 1 else vstack(found, format="csr")

    def sample(
        self,
        X: ArrayLike,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = None,
        *,
        output: Output | None = None,
    ) -> Any:
        """Draw from the conditional distribution.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        n_samples : int, default=1
            Draws per row.
        random_state : int, RandomState or None, default=None
            Seed of the draws.
        output : {"numpy", "pandas", "polars", "pyarrow"}, optional
            An array, or a table of that library; by default what `set_output` says, an array if
            nothing. See `set_output` for the names of the columns.

        Returns
        -------
        (n, n_samples) float64, or table
            (n, n_outputs, n_samples) with several outputs, which are drawn jointly: each draw is
            the target of one training row.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ValueError
            If an argument is refused, or several outputs are drawn without training rows.
        """
        return self._as_output(output, "sample", lambda: self._draws(X, n_samples, random_state), X)

    def _draws(
        self, X: ArrayLike, n_samples: int, random_state: int | np.random.RandomState | None
    ) -> NDArray[np.float64]:
        fitted = self._require_fitted()
        if not isinstance(n_samples, int | np.integer) or n_samples < 1:
            raise ValueError(f"n_samples must be a whole number from 1 on, got {n_samples!r}")
        random = checked_random_state(random_state)
        scalar = fitted.scorer.index.scalar_output

        def draws(rows: Rows) -> NDArray[np.float64]:
            uniforms = random.random_sample((len(rows), int(n_samples)))
            scorer = fitted.scorer if scalar else fitted.row_scorer(self._n_threads)
            n_threads = self._n_threads(len(rows))
            return scorer.draws(rows, uniforms, n_threads=n_threads, out=uniforms)

        drawn = concatenated(draws(block.rows) for block in checked_blocks(self, X, fitted))
        if scalar:
            return drawn
        empty = np.isnan(drawn)
        targets = fitted.require_training_rows().y[np.where(empty, 0, drawn).astype(np.intp)]
        targets[empty] = np.nan
        return np.moveaxis(targets, 2, 1)
