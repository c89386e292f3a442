"""Ensembles of networks that answer with two ends: trained on folds for the pads, then on all."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from torch import Tensor

from .interface import Part
from .network import Data, Nets, ensembles, epochs_of_equal_steps, repeated_rows
from .padding import Base, Padded


def padded_ensemble(
    part: Part,
    settings: dict[str, Any],
    members: int,
    epochs: int,
    train: Callable[[Data, Tensor, int], Nets],
    read: Callable[[Data, Nets, np.ndarray], np.ndarray],
) -> Padded:
    """Return the candidate of an ensemble.

    Parameters
    ----------
    members, epochs : int
        Networks of an ensemble, and how long they learn from the whole part.
    train : callable
        From data, rows (n_nets, n) and epochs to a network for each row of rows.
    read : callable
        From data, the networks of one ensemble and features to intervals (n, 2) in the unit of y.
    """
    data = Data(part)
    rows, held_out = zip(*part.folds(), strict=True)
    fold_rows = repeated_rows(rows, members, part.seed)
    # A rate that falls falls by the step: with fewer of them, nets of folds would be less trained.
    longer = epochs_of_equal_steps(epochs, len(part.y), fold_rows.shape[1])
    nets = train(data, fold_rows, longer)
    base = np.empty((len(part.y), 2))
    for fold, ensemble in zip(held_out, ensembles(nets, members), strict=True):
        base[fold] = read(data, ensemble, part.X[fold])

    @cache
    def fit() -> tuple[Base, float]:
        start = time.process_time()
        whole = repeated_rows([np.arange(len(part.y))], members, part.seed)
        return partial(read, data, train(data, whole, epochs)), time.process_time() - start

    return Padded(settings, part.y, base, fit)
