"""Networks that answer with a normal distribution: how they are tuned and read."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.stats import norm
from torch import Tensor

from .interface import LEVELS, Candidate, Fitted, Levelled, Part
from .network import Data, Nets, Schedule, epochs_of_equal_steps, new_nets, repeated_rows, train

_N_HIDDEN = 50
_SCALE = 0.2
_LOG_NOISES = (-12.0, 6.0)
_HIGHEST = 0.9999  # a normal distribution has no finite interval of level 1


class Normal(NamedTuple):
    """Mean and variance of each row, (n,), on the scale of the networks."""

    mean: np.ndarray
    variance: np.ndarray

    def misfit(self, y: np.ndarray) -> float:
        """Return the mean negative log-likelihood, up to a constant; inf where nets failed."""
        of_rows = np.log(self.variance) + (y - self.mean) ** 2 / self.variance
        return float(np.nan_to_num(of_rows.mean() / 2, nan=np.inf))

    def intervals(self, levels: np.ndarray) -> np.ndarray:
        """Return (n, 2, k) central intervals."""
        reach = np.sqrt(self.variance)[:, None] * norm.ppf((1 + np.minimum(levels, _HIGHEST)) / 2)
        return np.stack([self.mean[:, None] - reach, self.mean[:, None] + reach], axis=1)


class Method(NamedTuple):
    """What one of the systems does its own way."""

    system: str
    n_outputs: int
    members: int
    loss: Callable[[Tensor, Tensor], Tensor]
    read: Callable[[Nets, Tensor, float], Normal]
    grid: list[dict[str, float]]
    epochs: tuple[int, ...]  # one of them is chosen
    lacks_noise: bool = False  # the variance read is that of the mean alone


def tune(method: Method, part: Part) -> dict[str, list[Candidate]]:
    """Choose the settings by likelihood out of fold."""
    data = Data(part)
    y = data.y.double().numpy()
    rows, held_out = zip(*part.folds(), strict=True)
    held_rows = [data.X[fold] for fold in held_out]
    rng = np.random.default_rng(part.seed)
    n = min(len(method.grid), part.effort.n_trials)
    trials = [method.grid[i] for i in rng.choice(len(method.grid), n, replace=False)]
    epochs = sorted({max(1, round(e * part.effort.share_of_epochs)) for e in method.epochs})
    torch.manual_seed(part.seed)

    # Every trial with one net a fold, all at once.
    kept = _train(method, data, repeated_rows(rows, n, part.seed), trials * len(rows), epochs)
    found: dict[tuple[int, int], float] = {}
    for epoch, nets in zip(epochs, kept, strict=True):
        for i, trial in enumerate(trials):
            read = _out_of_fold(method, nets, range(i, n * len(rows), n), 1, held_rows, trial)
            found[epoch, i] = _with_noise(method, _joined(read, held_out), y)[0].misfit(y)
    epoch, best = min(found, key=lambda key: found[key])
    trial = trials[best]

    # The ensembles of the folds, whose intervals the level is tuned on.
    fold_rows = repeated_rows(rows, method.members, part.seed)
    longer = epochs_of_equal_steps(epoch, len(y), fold_rows.shape[1])
    nets = _train(method, data, fold_rows, [trial] * len(fold_rows), [longer])[0]
    firsts = range(0, len(fold_rows), method.members)
    read = _out_of_fold(method, nets, firsts, method.members, held_rows, trial)
    normal, noise = _with_noise(method, _joined(read, held_out), y)
    settings = {**trial, "epochs": epoch, "noise": round(noise, 6)}
    intervals = normal.intervals(LEVELS) * data.unit + data.centre

    @cache
    def whole() -> tuple[Nets, float]:
        start = time.process_time()
        torch.manual_seed(part.seed)
        rows = repeated_rows([np.arange(len(y))], method.members, part.seed)
        nets = _train(method, data, rows, [trial] * len(rows), [epoch])[0]
        return nets, time.process_time() - start

    def fit(levels: np.ndarray) -> Fitted:
        nets, seconds = whole()

        def answer(X: np.ndarray) -> np.ndarray:
            torch.manual_seed(part.seed)
            normal = method.read(nets, data.features(X), trial.get("dropout", 0.0))
            normal = normal._replace(variance=normal.variance + noise)
            return normal.intervals(levels) * data.unit + data.centre

        return Fitted(answer, seconds)

    return {method.system: [Levelled(settings, part.y, LEVELS, intervals, fit)]}


def _train(
    method: Method, data: Data, rows: Tensor, trials: list[dict[str, float]], epochs: list[int]
) -> list[Nets]:
    """Train a net on each row of `rows`, with the settings at its place."""

    def each(name: str) -> Tensor:
        return torch.tensor([trial.get(name, 0.0) for trial in trials])

    nets = new_nets(len(rows), data.X.shape[1], _N_HIDDEN, [0.0] * method.n_outputs, _SCALE)
    schedule = Schedule(each("rate"), 1.0, each("l2"))
    dropout = each("dropout") if "dropout" in trials[0] else None
    return train(nets, data.X, data.y, rows, method.loss, schedule, epochs, dropout)


def _out_of_fold(
    method: Method,
    nets: Nets,
    firsts: range,
    members: int,
    held_rows: list[Tensor],
    trial: dict[str, float],
) -> list[Normal]:
    """Read the held-out rows of each fold from its nets, which begin at `firsts`."""
    return [
        method.read(nets.take(torch.arange(first, first + members)), X, trial.get("dropout", 0.0))
        for first, X in zip(firsts, held_rows, strict=True)
    ]


def _joined(read: list[Normal], held_out: tuple[np.ndarray, ...]) -> Normal:
    """Put the answers for the folds in the order of the rows."""
    order = np.argsort(np.concatenate(held_out))
    return Normal(*(np.concatenate(values)[order] for values in zip(*read, strict=True)))


def _with_noise(method: Method, normal: Normal, y: np.ndarray) -> tuple[Normal, float]:
    """Add the variance of the noise, where the method lacks it, that makes y most likely."""
    if not method.lacks_noise:
        return normal, 0.0

    def misfit(log_noise: Any) -> float:
        return normal._replace(variance=normal.variance + np.exp(log_noise)).misfit(y)

    noise = float(np.exp(minimize_scalar(misfit, bounds=_LOG_NOISES, method="bounded").x))
    return normal._replace(variance=normal.variance + noise), noise
