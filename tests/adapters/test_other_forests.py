"""Each line of the table of other forests (docs/forests.md) gives intervals, raw and calibrated."""

import re
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from hdiforest import HDIForestRegressor, from_leaves
from hdiforest.adapters.boosters import XGBoostLeaves
from hdiforest.metrics import coverage_score

from ..oracle import ROOT

TABLE = ROOT / "bench" / "calibration" / "results" / "other_forests" / "tables.md"
LINES = {
    title.replace("`", ""): line
    for title, line in re.findall(r"^\| (`.+?) *\| `(.+?)` *\|", TABLE.read_text("utf-8"), re.M)
}
PAGE = (ROOT / "docs" / "forests.md").read_text(encoding="utf-8")
STACKED = re.search(r"^def stacked\(.*?(?=^```)", PAGE, re.M | re.S)[0]
IMPORTED = {
    "HDIForestRegressor": HDIForestRegressor,
    "XGBoostLeaves": XGBoostLeaves,
    "from_leaves": from_leaves,
    "np": np,
    "partial": partial,
}
LEAF = {"n_estimators": 40, "min_samples_leaf": 5, "random_state": 0}
LIGHTGBM = {"n_estimators": 40, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}
OPTIONS = {
    "sklearn.ensemble.RandomForestRegressor": LEAF,
    "sklearn.ensemble.RandomTreesEmbedding": LEAF,
    "sklearn.ensemble.IsolationForest": {"n_estimators": 40, "max_samples": 1.0, "random_state": 0},
    "sklearn.ensemble.GradientBoostingRegressor": LEAF,
    "econml.grf.RegressionForest": LEAF | {"n_jobs": 1},
    "lightgbm.LGBMRegressor, rf": LIGHTGBM | {"boosting_type": "rf", "colsample_bytree": 0.7},
    "lightgbm.LGBMRegressor, gbdt": LIGHTGBM,
    "xgboost.XGBRFRegressor": {"n_estimators": 40, "subsample": 1, "reg_lambda": 0, "n_jobs": 1},
    "xgboost.train, aft": {"objective": "survival:aft", "max_depth": 3, "nthread": 1},
    "sksurv.ensemble.RandomSurvivalForest": LEAF | {"low_memory": True},
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.random((1500, 4))
    return X, 10 + 4 * X[:, 0] + (0.5 + X[:, 1]) * rng.normal(size=1500).clip(-3, 3)


def fitted(name, X, y):
    module, _, kind = name.partition(",")[0].rpartition(".")
    library = pytest.importorskip(module)
    if kind == "train":
        bounds = library.DMatrix(X, label_lower_bound=y, label_upper_bound=y)
        return library.train(OPTIONS[name], bounds, 40)
    if module == "sksurv.ensemble":
        y = import_module("sksurv.util").Surv.from_arrays(np.ones(len(y), dtype=bool), y)
    return getattr(library, kind)(**OPTIONS[name]).fit(X, y)


def test_each_line_has_a_test():
    assert list(LINES) == list(OPTIONS)


@pytest.mark.parametrize(
    "name",
    [
        name if name.startswith("sklearn.") else pytest.param(name, marks=pytest.mark.peers)
        for name in OPTIONS
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_line_gives_intervals(name, rows):
    X, y = rows
    with threadpool_limits(1):  # their threads spin where the processors are busy
        names = {"forest": fitted(name, X[:500], y[:500]), "X": X[:500], "y": y[:500], **IMPORTED}
        exec(STACKED, names)
        model = eval(LINES[name], names)
        raw = model.predict_interval(X[1000:], 0.9, kind="hdi")
        if "from_leaves" in LINES[name]:
            line = LINES[name].replace("X, y)", "X, y, event=np.ones(500, dtype=bool))")
            found = eval(line, names).predict_cdf(X[1000:], y[1000:])
            assert_allclose(found, model.predict_cdf(X[1000:], y[1000:]), atol=1e-6)
        model.calibrate(X[500:1000], y[500:1000])
        calibrated = model.predict_interval(X[1000:], 0.9)
    assert coverage_score(y[1000:], raw) > 0.75
    # Three standard errors of a share of 500 rows, and of the 500 to calibrate with.
    assert abs(coverage_score(y[1000:], calibrated) - 0.9) < 0.057
