"""Monte-Carlo dropout: draws of the units that a network goes without, and noise.

Gal and Ghahramani, "Dropout as a Bayesian approximation", ICML 2016.
"""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import torch
from torch import Tensor

from .gaussian import Method, Normal, tune
from .interface import SLOW_SPLITS, Family
from .network import Nets

_SAMPLES = 50


def squared_loss(outputs: Tensor, y: Tensor) -> Tensor:
    """Return half the mean squared error of each net."""
    return ((y - outputs[..., 0]) ** 2 / 2).mean(dim=1)


def dropout_samples(nets: Nets, X: Tensor, dropout: float) -> Normal:
    """Return mean and variance over draws of the units that are left out; noise is not in it."""
    drop = torch.full((1, 1, 1), dropout)
    samples = np.stack([nets(X, drop)[0, :, 0].double().numpy() for _ in range(_SAMPLES)])
    return Normal(samples.mean(axis=0), samples.var(axis=0))


_METHOD = Method(
    "MC dropout",
    1,
    1,
    squared_loss,
    dropout_samples,
    [
        {"rate": r, "l2": w, "dropout": p}
        for r, w, p in product((0.003, 0.01), (1e-5, 1e-3), (0.02, 0.05, 0.15))
    ],
    (50, 200, 600),
    lacks_noise=True,
)
FAMILY = Family(
    "dropout",
    1,
    ("MC dropout",),
    partial(tune, _METHOD),
    most_splits_of=SLOW_SPLITS,
)
