"""Rows whose targets have two modes, 6 apart, and models of them."""

from functools import cache

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from hdiforest import HDIForestRegressor

RNG = np.random.default_rng(0)
X = RNG.random((1500, 2))
Y = 3 * X[:, 0] + RNG.choice([-3, 3], 1500) + 0.3 * RNG.normal(size=1500)
NEW, Y_NEW = X[900:], Y[900:]


def forest():
    return ExtraTreesRegressor(60, bootstrap=True, min_samples_leaf=3, random_state=0)


def fitted(y=Y, **options):
    """A model of the first 900 rows."""
    return HDIForestRegressor(forest(), calibration=False, **options).fit(X[:900], y[:900])


@cache
def model():
    return fitted()
