"""Networks of one hidden layer, many at once: each its own weights, rows, order and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .design import standardised
from .interface import Part

BATCH = 100
_HIDDEN_BIAS = 0.1
# Adam's usual constants (Kingma and Ba, 2015).
_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-8

# Losses (n_nets,) of outputs (n_nets, n, n_outputs) against targets (n_nets, n).
Loss = Callable[[Tensor, Tensor], Tensor]


class Data:
    """A part as tensors: features prepared, targets of mean 0 and variance 1."""

    def __init__(self, part: Part) -> None:
        self.seed = part.seed
        self._prepare = standardised(part)
        self.centre, self.unit = part.y.mean(), part.y.std() or 1.0
        self.X = self.features(part.X)
        self.y = torch.from_numpy((part.y - self.centre) / self.unit).float()

    def features(self, X: np.ndarray) -> Tensor:
        """Prepare other rows the same way."""
        return torch.from_numpy(self._prepare.transform(X.astype(np.float64))).float()


class Nets(NamedTuple):
    """Weights of networks that differ in nothing but their values."""

    hidden: Tensor  # (n_nets, n_inputs, n_hidden)
    hidden_bias: Tensor  # (n_nets, 1, n_hidden)
    output: Tensor  # (n_nets, n_hidden, n_outputs)
    output_bias: Tensor  # (n_nets, 1, n_outputs)

    def __call__(self, X: Tensor, dropout: Tensor | None = None) -> Tensor:
        """Return the outputs (n_nets, n, n_outputs) for rows (n, n_inputs) or (n_nets, n, ...).

        `dropout` is the share of hidden units left out, (n_nets, 1, 1).
        """
        units = torch.relu(X @ self.hidden + self.hidden_bias)
        if dropout is not None:
            kept = (torch.rand_like(units) >= dropout).to(units.dtype)
            units = units * kept / (1 - dropout)
        return units @ self.output + self.output_bias

    def take(self, nets: Tensor) -> Nets:
        """Return copies of some of them."""
        return Nets(*(value[nets].detach().clone() for value in self))


class Schedule(NamedTuple):
    """How nets learn: one value for all of them, or one for each, (n_nets,)."""

    rate: float | Tensor
    decay: float | Tensor = 1.0  # of the rate, every 50 batches
    l2: float | Tensor = 0.0  # half the squared weights, biases apart


def new_nets(
    n_nets: int, n_inputs: int, n_hidden: int, output_bias: Sequence[float], scale: float | Tensor
) -> Nets:
    """Draw weights from normal distributions of standard deviation `scale`."""
    n_outputs = len(output_bias)
    scale = _each(scale, n_nets)
    return Nets(
        torch.randn(n_nets, n_inputs, n_hidden) * scale,
        torch.full((n_nets, 1, n_hidden), _HIDDEN_BIAS),
        torch.randn(n_nets, n_hidden, n_outputs) * scale,
        torch.tensor(output_bias).expand(n_nets, 1, n_outputs).clone(),
    )


def train(
    nets: Nets,
    X: Tensor,
    y: Tensor,
    rows: Tensor,
    loss: Loss,
    schedule: Schedule,
    epochs: Sequence[int],
    dropout: Tensor | None = None,
) -> list[Nets]:
    """Train each net on its rows (n_nets, n) of X and y; return copies after these epochs.

    Adam on batches of about 100 rows, in an order of each net's own.
    """
    n_nets, n = rows.shape
    rate, decay, l2 = (_each(value, n_nets) for value in schedule)
    drop = None if dropout is None else _each(dropout, n_nets)
    weights = [value.detach().clone().requires_grad_(True) for value in nets]
    first = [torch.zeros_like(value) for value in weights]
    second = [torch.zeros_like(value) for value in weights]
    kept = []
    step = 0
    for epoch in range(1, max(epochs) + 1):
        order = torch.gather(rows, 1, torch.rand(n_nets, n).argsort(dim=1))
        for at in order.tensor_split(_n_batches(n), dim=1):
            losses = loss(Nets(*weights)(X[at], drop), y[at])
            gradients = torch.autograd.grad(losses.sum(), weights)
            step += 1
            now = rate * decay ** ((step - 1) / 50)
            now = now * (1 - _BETA_2**step) ** 0.5 / (1 - _BETA_1**step)
            with torch.no_grad():
                for i, gradient in enumerate(gradients):
                    if i in (0, 2):
                        gradient = gradient + l2 * weights[i]
                    first[i].lerp_(gradient, 1 - _BETA_1)
                    second[i].lerp_(gradient * gradient, 1 - _BETA_2)
                    weights[i] -= now * first[i] / (second[i].sqrt() + _EPSILON)
        if epoch in epochs:
            kept.append(Nets(*(value.detach().clone() for value in weights)))
    return kept


def epochs_of_equal_steps(epochs: int, n: int, n_fold: int) -> int:
    """Return the epochs over a fold in which it takes as many steps as the whole part."""
    return round(epochs * _n_batches(n) / _n_batches(n_fold))


def repeated_rows(parts: Sequence[np.ndarray], members: int, seed: int) -> Tensor:
    """Return rows (len(parts) x members, n) to train on, the members of a part side by side.

    All have as many as the smallest part: larger ones lose rows at random.
    """
    n = min(len(part) for part in parts)
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.choice(part, n, replace=False) for part in parts])
    return torch.from_numpy(rows).repeat_interleave(members, 0)


def ensembles(nets: Nets, members: int) -> Iterator[Nets]:
    """Yield the nets of each part of `repeated_rows`."""
    for at in torch.arange(len(nets.hidden)).split(members):
        yield nets.take(at)


def _each(value: float | Tensor, n_nets: int) -> Tensor:
    """One value for each net, to be multiplied with its weights."""
    return torch.as_tensor(value, dtype=torch.float32).expand(n_nets).reshape(n_nets, 1, 1)


def _n_batches(n: int) -> int:
    """As near to 100 rows as batches of one size can be: a small last one would be noise."""
    return max(1, round(n / BATCH))
