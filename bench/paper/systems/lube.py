"""LUBE: networks of two ends whose coverage and width simulated annealing trades off.

Khosravi, Nahavandi, Creighton, Atiya, "Lower upper bound estimation method for construction of
neural network-based prediction intervals", 2011. The loss is a step function of the weights, hence
no gradient; annealing starts from networks that have learned the two quantiles.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch import Tensor

from .ends import padded_ensemble
from .interface import SLOW_SPLITS, Candidate, Family, Part
from .network import Data, Nets, Schedule, new_nets, train

_COVERAGE = 0.95
_PENALTY = 50.0
_N_HIDDEN = 10
_MEMBERS = 5
_EPOCHS = 100
_RATE = 0.01
_SCALE = 0.2
_STEPS = 4000
# The loss is counted on so many rows.
_MOST_ROWS = 2000
_MOVED = 0.1  # share of the weights that a step changes
_FIRST_MOVE, _LAST_MOVE = 0.05, 0.005
_FIRST_TEMPERATURE, _LAST_TEMPERATURE = 1e-2, 1e-5


def loss(outputs: Tensor, y: Tensor, spread: Tensor) -> Tensor:
    """Return width over the targets' range, times what missed coverage costs (equation 5)."""
    lower, upper = outputs.amin(dim=2), outputs.amax(dim=2)
    picp = ((lower <= y) & (y <= upper)).to(y.dtype).mean(dim=1)
    lack = torch.relu(_COVERAGE - picp)
    return (upper - lower).mean(dim=1) / spread * (1 + torch.exp(_PENALTY * lack))


def quantile_loss(outputs: Tensor, y: Tensor) -> Tensor:
    """Return the pinball losses of both ends' quantiles, summed."""
    total = torch.zeros(len(outputs))
    for end, quantile in enumerate(((1 - _COVERAGE) / 2, (1 + _COVERAGE) / 2)):
        error = y - outputs[..., end]
        total = total + torch.maximum(quantile * error, (quantile - 1) * error).mean(dim=1)
    return total


def anneal(nets: Nets, X: Tensor, y: Tensor, n_steps: int) -> Nets:
    """Return the best nets met; X (n_nets, n, n_features), y (n_nets, n)."""
    goal = partial(loss, spread=y.amax(dim=1) - y.amin(dim=1) + 1e-9)
    best = now = nets
    reached = least = goal(nets(X), y)
    moves = np.geomspace(_FIRST_MOVE, _LAST_MOVE, n_steps)
    temperatures = np.geomspace(_FIRST_TEMPERATURE, _LAST_TEMPERATURE, n_steps)
    for move, temperature in zip(moves, temperatures, strict=True):
        tried = Nets(*(_moved(value, float(move)) for value in now))
        there = goal(tried(X), y)
        chance = torch.exp((reached - there) / temperature)
        now, reached = _replaced(now, tried, torch.rand(len(chance)) < chance, reached, there)
        best, least = _replaced(best, now, reached < least, least, reached)
    return best


def _moved(value: Tensor, move: float) -> Tensor:
    return value + move * torch.randn_like(value) * (torch.rand_like(value) < _MOVED)


def _replaced(
    old: Nets, new: Nets, where: Tensor, old_loss: Tensor, new_loss: Tensor
) -> tuple[Nets, Tensor]:
    pick = where.reshape(-1, 1, 1)
    nets = Nets(*(torch.where(pick, b, a) for a, b in zip(old, new, strict=True)))
    return nets, torch.where(where, new_loss, old_loss)


def tune(part: Part) -> dict[str, list[Candidate]]:
    """Pad the ensemble of annealed networks."""
    epochs = max(1, round(_EPOCHS * part.effort.share_of_epochs))
    n_steps = max(1, round(_STEPS * part.effort.share_of_epochs))
    train_nets = partial(_train, n_steps=n_steps)
    settings = {"n_hidden": _N_HIDDEN, "penalty": _PENALTY, "coverage": _COVERAGE}
    return {"LUBE": [padded_ensemble(part, settings, _MEMBERS, epochs, train_nets, _intervals)]}


def _train(data: Data, rows: Tensor, epochs: int, n_steps: int) -> Nets:
    torch.manual_seed(data.seed)
    nets = new_nets(len(rows), data.X.shape[1], _N_HIDDEN, (-1.0, 1.0), _SCALE)
    schedule = Schedule(_RATE)
    nets = train(nets, data.X, data.y, rows, quantile_loss, schedule, [epochs])[0]
    few = torch.gather(rows, 1, torch.rand(rows.shape).argsort(dim=1))[:, :_MOST_ROWS]
    return anneal(nets, data.X[few], data.y[few], n_steps)


def _intervals(data: Data, members: Nets, X: np.ndarray) -> np.ndarray:
    """Return the mean of the members' ends, (n, 2), in the unit of y."""
    ends = np.sort(members(data.features(X)).double().numpy(), axis=2).mean(axis=0)
    return ends * data.unit + data.centre


FAMILY = Family("lube", 1, ("LUBE",), tune, most_splits_of=SLOW_SPLITS)
