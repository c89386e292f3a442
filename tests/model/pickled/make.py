"""Fit small forests with the scikit-learn that is installed, and pickle them with their rows.

    pip install scikit-learn==1.6.1 numpy==1.26.4 && python tests/model/pickled/make.py

Writes forests_<version>.pkl beside this file, which tests/model/test_pickled_forests.py reads.
"""

import pickle
from pathlib import Path

import numpy as np
import sklearn
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3)).astype(np.float32)
y = np.round(3 * X[:, 0] + rng.normal(size=80), 1)
weight = rng.random(80) + 0.1
kinds = {
    "forest": (RandomForestRegressor(5, random_state=0), None),
    "weighted forest": (RandomForestRegressor(5, random_state=0), weight),
    "part of the rows": (RandomForestRegressor(5, max_samples=0.5, random_state=0), weight),
    "extra trees": (ExtraTreesRegressor(5, random_state=0), weight),
    "bags": (BaggingRegressor(DecisionTreeRegressor(), 5, random_state=0), None),
    "float32 weights": (RandomForestRegressor(5, random_state=0), weight.astype(np.float32)),
    "medians": (RandomForestRegressor(5, criterion="absolute_error", random_state=0), weight),
    "constraints": (
        RandomForestRegressor(5, monotonic_cst=[1, -1, 0], min_samples_leaf=3, random_state=0),
        None,
    ),
}
found = {}
for name, (forest, sample_weight) in kinds.items():
    forest.fit(X, y, sample_weight=sample_weight)
    found[name] = {
        "forest": pickle.dumps(forest),
        "X": X,
        "y": y,
        "sample_weight": sample_weight,
        "prediction": forest.predict(X),
    }
path = Path(__file__).with_name(f"forests_{sklearn.__version__}.pkl")
path.write_bytes(pickle.dumps(found))
