"""What the README and the docstrings show runs, and gives what they say."""

import doctest
import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_regression
from sklearn.ensemble import RandomForestRegressor

pytestmark = pytest.mark.examples

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
MODULES = [
    *("hdicore._core", "hdiforest.estimator", "hdiforest.leaf_model"),
    *("hdiforest.metrics.intervals", "hdiforest.metrics.samples"),
]


def test_readme_code_runs():
    X, y = make_regression(n_samples=300, n_features=5, noise=5, random_state=0)
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    names = {
        "X_train": X,
        "y_train": y,
        "X_new": X[:20],
        "train_leaves": forest.apply(X),
        "new_leaves": forest.apply(X[:20]),
        "posterior_draws": np.random.default_rng(0).normal(size=1000),
    }
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(block, names)
    assert (names["lower"] <= names["upper"]).all()
    assert names["bounds"].shape == (20, 2, 2)


def test_readme_commands_name_the_test_extra():
    commands = re.findall(r"^python3 -m venv .*$", README, re.MULTILINE)
    assert [command.rpartition("/")[2] for command in commands] == ["hdiforest demo", "pytest"]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0
