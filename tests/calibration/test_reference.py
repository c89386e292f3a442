"""Calibration on real data against figures of an independent, slow implementation."""

import io
import zipfile
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor
from hdiforest._model.bases import Base
from hdiforest._model.out_of_bag import OutOfBagIntervals
from hdiforest.calibration._candidates import Candidates
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._selection import best

from ..oracle import ROOT, SKLEARN

pytestmark = [
    pytest.mark.skipif(SKLEARN < (1, 9), reason="older scikit-learn grows other trees"),
]
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


def load(name):
    folder = ROOT / "bench" / "data"
    if name == "boston":
        if not (folder / "boston.csv").exists():
            pytest.skip("source distributions do not have this set")
        text = (folder / "boston.csv").read_bytes()
    else:
        with zipfile.ZipFile(folder / "small.zip") as sets:
            text = sets.read(f"{name}.csv")
    table = np.genfromtxt(io.BytesIO(text), delimiter=",", skip_header=1)
    return table[:, :-1], table[:, -1]


# A base and its conformal quantile, the mean width out of bag, and coverage and mean width on the
# test rows; of weights that are not rounded, selected among all candidates at `LEVELS` however
# few rows there are.
@pytest.mark.parametrize(
    ("name", "coverage", "base", "q_hat", "width", "test_coverage", "test_width"),
    [
        ("concrete", 0.9, ("centred", "equal_tailed", 0.7), 2.347722, 11.914946, 0.9175, 11.886899),
        ("energy", 0.9, ("centred", "hdi", 0.9), 0.173216, 1.518273, 0.9351, 1.580818),
        ("boston", 0.9, ("raw", "equal_tailed", 0.5), 1.8, 8.027901, 0.9307, 8.365347),
    ],
)
def test_bases_quantiles_and_widths_are_known(
    name, coverage, base, q_hat, width, test_coverage, test_width
):
    X, y = load(name)
    order = np.random.default_rng(10_000).permutation(len(y))
    train, test = np.split(order, [round(0.8 * len(y))])
    forest = RandomForestRegressor(200, max_features=1 / 3, random_state=0, n_jobs=1)
    model = HDIForestRegressor.from_forest(
        forest.fit(X[train], y[train]), X[train], y[train], n_jobs=1
    )
    source = OutOfBagIntervals(model._fitted_forest(), 1)
    postprocess = PostProcess.from_targets(y[train])
    every = [Base(*each) for each in product(("raw", "centred"), ("hdi", "equal_tailed"), LEVELS)]
    ends, own = source.intervals(source.usable, every), y[train][source.usable]
    narrowest = min(
        (
            best(Candidates([each], ends[..., [j]], own, postprocess, {}), coverage, "width")
            for j, each in enumerate(every)
        ),
        key=lambda selected: selected.scale,
    )
    assert narrowest.base == Base(*base)
    assert_allclose([narrowest.q_hat, 2 * narrowest.scale], [q_hat, width], atol=2e-6)
    read = model._fitted_forest().scorer if base[0] == "raw" else source.centred_forest()
    of_test = read.intervals(np.float32(X[test]), [base[2]], [base[1]], n_threads=1)
    lower, upper = postprocess.engine.widen(of_test, [narrowest.q_hat])[..., 0].T
    assert round(((lower <= y[test]) & (y[test] <= upper)).mean(), 4) == test_coverage
    assert_allclose((upper - lower).mean(), test_width, atol=2e-6)
