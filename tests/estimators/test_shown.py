"""What models print and show: progress, their repr, and HTML for notebooks."""

import re

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor

from hdiforest import ForestSearchOOB, HDIForestRegressor, from_leaves
from hdiforest.calibration import CVPlus
from hdiforest.inspection import explain
from hdiforest.monitoring import CoverageMonitor
from hdiforest.serving import RowCounts

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = X[:, 0] + RNG.normal(size=120)
FOREST = ExtraTreesRegressor(60, bootstrap=True, random_state=0)
COVERAGES = [0.5, 0.9]


@pytest.fixture(scope="module")
def model():
    return HDIForestRegressor(FOREST, calibration=COVERAGES).fit(X, Y)


def printed(capsys):
    lines = capsys.readouterr().out.splitlines()
    assert all(re.search(r", [\d.]+ s$", line) for line in lines)
    return [line.rpartition(", ")[0] for line in lines]


STAGES = ["growing the forest", "routing training rows", "calibrating by leaf size, 2 of 2"]


def test_a_fit_prints_a_line_for_each_stage_and_changes_no_bit(model, capsys):
    told = clone(model).set_params(verbose=1).fit(X, Y)
    lines = printed(capsys)
    assert [line for line in STAGES if f"[HDIForestRegressor] {line}" in lines] == STAGES
    assert_array_equal(told.predict_interval(X[:5], 0.9), model.predict_interval(X[:5], 0.9))
    clone(model).fit(X, Y)
    assert capsys.readouterr().out == ""


def test_from_forest_and_calibrate_print_too(model, capsys):
    told = HDIForestRegressor.from_forest(model.estimator_, X, Y, verbose=1)
    assert set(printed(capsys)) == {"[HDIForestRegressor] routing training rows"}
    told.calibrate(coverage=0.9, method=CVPlus(2))
    assert printed(capsys) == ["[HDIForestRegressor] fitting and calibrating folds, 2 of 2"]
    told.set_params(verbose=2).calibrate(coverage=0.9, method=CVPlus(2))
    lines = printed(capsys)
    assert lines.count("[HDIForestRegressor] growing the forest") == 2
    assert "[HDIForestRegressor] fitting and calibrating folds, 1 of 2" in lines


def test_a_search_prints_a_line_for_each_forest(capsys):
    search = ForestSearchOOB([FOREST], verbose=1).fit(X, Y)
    (line,) = printed(capsys)
    assert line.startswith("[ForestSearchOOB] forest 1 of 1: width ")
    search.set_params(verbose=2).fit(X, Y)
    assert "[ForestSearchOOB] growing the forest" in printed(capsys)
    with pytest.raises(ValueError, match="verbose must be a whole number"):
        search.set_params(verbose="much").fit(X, Y)


def test_a_refused_fit_leaves_a_listener_alone(capsys):
    with pytest.raises(ValueError, match="verbose must be a whole number"):
        HDIForestRegressor(FOREST, verbose=-1).fit(X, Y)
    list(ForestSearchOOB([FOREST]).fit(X, Y).predict(X[:1]))
    assert capsys.readouterr().out == ""


HELD = "60 trees, 120 training rows, 1 output"


def test_the_repr_says_what_a_fitted_model_holds(model):
    assert repr(clone(model)).endswith(")")
    assert repr(model) == f"{clone(model)!r}: {HELD}, calibrated at 0.5, 0.9"
    search = ForestSearchOOB([FOREST], random_state=0).fit(X, Y)
    assert repr(search).endswith(f": {HELD}, calibrated at 0.9")
    assert HELD in search._repr_html_()


def test_notebooks_show_it_below_the_diagram_of_scikit_learn(model):
    pages = [model._repr_html_(), model._repr_mimebundle_()["text/html"]]
    for page in pages:
        diagram, begin, own = page.rpartition("<details>")
        assert "sk-container" in diagram
        assert (begin + own).startswith(f"<details><summary>{HELD}, calibrated at 0.5, 0.9<")
        assert "<caption>Calibration, method oob, " in own
        assert "color" not in own  # that of the page, whether light or dark
    assert "<details><summary>60 trees" not in clone(model)._repr_html_()
    leaves = from_leaves(model.estimator_.apply, X, Y)
    assert leaves._repr_html_().endswith(f"<details><summary>{HELD}</summary></details>")


def test_notebooks_show_text_if_scikit_learn_is_told_to(model):
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert list(model._repr_mimebundle_()) == ["text/plain"]


def test_states_and_counts_are_shown(model):
    monitor = CoverageMonitor(model)
    page = monitor.update(X + 0.01, Y)._repr_html_()
    assert page.startswith("<p>120 rows, ")
    assert "<br>evidence for too little coverage" in page
    assert repr(RowCounts()) == "0 rows, all of them like the training rows"
    assert repr(explain(model, X[:2])) == "Explanation of 2 intervals of coverage 0.9"
