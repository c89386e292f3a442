"""Mean-variance estimation: networks for both moments, by likelihood, as an ensemble.

Nix and Weigend, "Estimating the mean and variance of the target probability distribution", 1994,
as the ensemble of Lakshminarayanan, Pritzel, Blundell (2017).
"""

from __future__ import annotations

from functools import partial
from itertools import product

import torch
from torch import Tensor
from torch.nn.functional import softplus

from .gaussian import Method, Normal, tune
from .interface import SLOW_SPLITS, Family
from .network import Nets

_MEMBERS = 5
_LEAST_VARIANCE = 1e-6


def variance(outputs: Tensor) -> Tensor:
    """Return the variance; far from the training rows it grows as the output does, not as exp."""
    return softplus(outputs[..., 1]) + _LEAST_VARIANCE


def likelihood_loss(outputs: Tensor, y: Tensor) -> Tensor:
    """Return the mean negative log-likelihood of each net, up to a constant."""
    spread = variance(outputs)
    return ((torch.log(spread) + (y - outputs[..., 0]) ** 2 / spread) / 2).mean(dim=1)


def mixture(nets: Nets, X: Tensor, _: float) -> Normal:
    """Return mean and variance of the members' mixture."""
    outputs = nets(X).double()
    means, variances = outputs[..., 0].numpy(), variance(outputs).numpy()
    return Normal(means.mean(axis=0), variances.mean(axis=0) + means.var(axis=0))


_METHOD = Method(
    "MVE",
    2,
    _MEMBERS,
    likelihood_loss,
    mixture,
    [{"rate": r, "l2": w} for r, w in product((0.003, 0.01), (0.0, 1e-3, 1e-2, 1e-1))],
    (20, 80, 240),
)
FAMILY = Family(
    "mean_variance",
    1,
    ("MVE",),
    partial(tune, _METHOD),
    most_splits_of=SLOW_SPLITS,
)
