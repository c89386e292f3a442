"""Every door takes the kinds of intervals that the engine's table has for it, and no others."""

import re

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import hdicore
from hdiforest import HDIForestRegressor, from_leaves, quantile_views
from hdiforest.metrics import make_coverage_scorer, make_interval_scorer

from ..cli.calls import run

KINDS = hdicore.kinds()
HOLDING = {kind for kind, facts in KINDS.items() if facts["holds_coverage"]}
TWO_SIDED = {kind for kind, facts in KINDS.items() if facts["ends"] == ("lower", "upper")}
WORDS = [*KINDS, "HDI", "best", "4", ""]

rng = np.random.default_rng(0)
X, Y = rng.random((300, 3)), rng.random(300)


@pytest.fixture(scope="module")
def model():
    forest = RandomForestRegressor(50, random_state=0)
    return HDIForestRegressor(forest, calibration=False).fit(X, Y)


def leaves_of(model):
    return from_leaves(model.estimator_.apply, X, Y)


DOORS = {
    "scorer_": (lambda model, kind: model.scorer_.intervals(X[:2], 0.9, kind), set(KINDS)),
    "predict_interval": (lambda model, kind: model.predict_interval(X[:2], kind=kind), HOLDING),
    "oob_.interval": (lambda model, kind: model.oob_.interval(kind=kind), HOLDING),
    "LeafModel": (lambda model, kind: leaves_of(model).predict_interval(X, kind=kind), HOLDING),
    "coverage scorer": (lambda _, kind: make_coverage_scorer(0.9, kind), HOLDING),
    "interval scorer": (lambda _, kind: make_interval_scorer(0.9, kind), HOLDING & TWO_SIDED),
    "MAPIE": (lambda model, kind: quantile_views(model, kind=kind), HOLDING & TWO_SIDED),
    "split": (
        lambda model, kind: leaves_of(model).calibrate(X, Y, base=(kind, 0.8)),
        HOLDING & TWO_SIDED,
    ),
}


def refusal(door, model, kind):
    """What the door says of a kind; empty if it takes it."""
    try:
        door(model, kind)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", DOORS)
def test_doors_take_the_kinds_of_the_table(model, name):
    door, expected = DOORS[name]
    told = {kind: refusal(door, model, kind) for kind in WORDS}
    assert {kind for kind in WORDS if not told[kind]} == expected
    assert all(re.match(r"kind must be .* got ", each) for each in told.values() if each)


@pytest.mark.parametrize(
    ("command", "expected"), [("score", HOLDING), ("check", HOLDING & TWO_SIDED)]
)
def test_the_command_takes_the_kinds_of_the_table(command, expected, capsys):
    pytest.importorskip("pyarrow")
    assert run([command, "--help"]) == 0
    (choices,) = set(re.findall(r"--kind \{(.*?)\}", capsys.readouterr().out, re.DOTALL))
    assert {*choices.split(",")} == expected | {"calibrated"}


def test_columns_have_the_ends_of_the_table(model):
    pytest.importorskip("pandas")
    for kind in HOLDING:
        columns = list(model.predict_interval(X, [0.5, 0.9], kind=kind, output="pandas"))
        ends = [re.fullmatch(r"(?:\w+_)?(lower|upper)_0\.[59]", name)[1] for name in columns[1:]]
        assert ends == [*KINDS[kind]["ends"]] * 2
