"""Models with larger leaves: by `prune`, and by a calibration that chooses among leaf sizes."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_regression
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeRegressor

from hdiforest import HDIForestRegressor
from hdiforest.inspection import predict_matches_forest

from .. import reference
from ..oracle import leaf_sizes

X, Y = make_regression(300, 4, noise=90, random_state=0)
FOREST = RandomForestRegressor(70, random_state=0).fit(X, Y)  # all rows calibrate
SIZES = (15, 5, 1)


def imported(**options):
    return HDIForestRegressor.from_forest(FOREST, X, Y, **options)


def calibrated(model, size):
    """Calibrated with leaves of one size alone."""
    with leaf_sizes(size):
        return model.calibrate()


def n_leaves(model):
    return int(model.scorer_.forest.n_leaves.sum())


def test_prune_returns_another_model_and_leaves_the_first():
    model = imported(weights="inbag", calibration=[0.9])
    before = model.predict_interval(X)
    pruned = model.prune(15)
    assert type(pruned) is HDIForestRegressor
    assert pruned.get_params() == model.get_params()
    assert n_leaves(pruned) < n_leaves(model)
    assert not hasattr(pruned, "calibration_")
    assert not predict_matches_forest(pruned)
    assert_array_equal(model.predict_interval(X), before)
    assert hasattr(model, "calibration_")


def test_prune_starts_from_the_trees_as_they_grew():
    model = calibrated(imported(weights="inbag"), 15)
    assert n_leaves(model) == n_leaves(model.prune(15))
    assert n_leaves(model.prune(1)) == n_leaves(imported())
    assert predict_matches_forest(model.prune(1))


@pytest.mark.parametrize("copied", [copy.copy, lambda model: model])
def test_a_calibration_starts_from_the_trees_as_they_grew(copied):
    model = imported()
    for size in SIZES:
        again = copied(calibrated(model, size))
        assert {base.min_samples_leaf for base in again.calibration_.bases} == {size}
        first = calibrated(imported(), size)
        assert again.calibration_ == first.calibration_
        assert_array_equal(again.predict_interval(X), first.predict_interval(X))
        assert_array_equal(again.predict(X), first.predict(X))


def test_a_model_from_a_file_or_pickle_answers_by_its_pruned_trees(tmp_path):
    model = calibrated(imported(), 15)
    model.save(tmp_path / "model")
    for loaded in (HDIForestRegressor.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert n_leaves(loaded) == n_leaves(model) < n_leaves(imported())
        assert loaded.calibration_ == model.calibration_
        assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))
        assert_array_equal(loaded.oob_.interval(0.9), model.oob_.interval(0.9))


def test_trees_as_they_grew_and_larger_leaves_are_compared():
    """Without a signal larger leaves say more of a row; without noise smaller ones do."""
    noise = np.random.default_rng(0).normal(size=len(Y))
    for y, size in [(noise, 5), (X[:, 0], 1)]:
        forest = RandomForestRegressor(60, random_state=0).fit(X, y)
        model = HDIForestRegressor.from_forest(forest, X, y).calibrate()
        assert {base.min_samples_leaf for base in model.calibration_.bases} == {size}
        assert (n_leaves(model) < sum(t.get_n_leaves() for t in forest.estimators_)) == (size > 1)


def test_monotonic_models_are_not_pruned():
    rising = RandomForestRegressor(60, random_state=0, monotonic_cst=[1, 0, 0, 0]).fit(X, Y)
    model = HDIForestRegressor.from_forest(rising, X, Y, weights="monotonic").calibrate()
    assert {base.min_samples_leaf for base in model.calibration_.bases} == {1}
    assert {base.kind for base in model.calibration_.bases} == {"equal_tailed"}
    with pytest.raises(ValueError, match="pruning needs weights='all', 'inbag' or 'oob', got"):
        model.prune(5)


@pytest.mark.parametrize("wrong", [0, 1.5, True, "5"])
def test_refused_sizes(wrong):
    model = imported()
    with pytest.raises(ValueError, match="min_samples_leaf must be a whole number from 1 on, got"):
        model.prune(wrong)


def test_a_model_can_be_pruned_again_saved_and_pruned_to_its_roots(tmp_path):
    model = imported()
    assert n_leaves(model.prune(10**30)) == 70
    model.prune(5).save(tmp_path / "model")
    opened = HDIForestRegressor.load(tmp_path / "model")
    again = pickle.loads(pickle.dumps(opened)).prune(15)
    assert_same_arrays(again, model.prune(15))


def test_predictions_match_the_forest_only_where_nothing_was_pruned():
    coarse = RandomForestRegressor(5, min_samples_leaf=4, random_state=0).fit(X, Y)
    model = HDIForestRegressor.from_forest(coarse, X, Y, weights="inbag")
    assert predict_matches_forest(model.prune(4))
    assert not predict_matches_forest(model.prune(5))


def test_models_that_cannot_be_pruned(tmp_path):
    with pytest.raises(NotFittedError):
        HDIForestRegressor().prune(5)
    imported().save(tmp_path / "model", training_rows=False)
    with pytest.raises(ValueError, match="training rows"):
        HDIForestRegressor.load(tmp_path / "model").prune(5)


RNG = np.random.default_rng(0)
N = 160
ROWS = RNG.normal(size=(N, 4))
SKEW = np.exp(ROWS[:, 0] + RNG.normal(size=N) / 2)
MISSING = np.where(RNG.random(ROWS.shape) < 0.1, np.nan, ROWS)
WEIGHT = RNG.integers(0, 4, N) / 2
ROWS_NEW = RNG.normal(size=(50, 4))


def rewritten(forest, m):
    """A copy of a fitted forest whose trees were pruned, from the record of scikit-learn alone."""
    forest = copy.deepcopy(forest)
    for member in getattr(forest, "estimators_", [forest]):
        tree = member.tree_
        state = tree.__getstate__()
        leaves = reference.leaves_below(tree.children_left, tree.children_right, 0)
        sizes = tree.n_node_samples[leaves]
        kept = reference.prune_tree(tree.children_left, tree.children_right, sizes, m)
        nodes = state["nodes"][kept.nodes]
        nodes["left_child"], nodes["right_child"] = kept.children_left, kept.children_right
        is_leaf = nodes["left_child"] == -1
        nodes["feature"][is_leaf], nodes["threshold"][is_leaf] = -2, -2
        values = state["values"][kept.nodes]
        state |= {"node_count": len(nodes), "nodes": nodes, "values": values}
        constructor, arguments, _ = tree.__reduce__()
        member.tree_ = constructor(*arguments)
        member.tree_.__setstate__(state)
    return forest


def assert_same_arrays(found, expected):
    for part in ("forest", "index"):
        ours, theirs = (getattr(model.scorer_, part).arrays() for model in (found, expected))
        assert ours.keys() == theirs.keys()
        for name, array in theirs.items():
            assert ours[name].dtype == array.dtype
            assert_array_equal(ours[name], array, err_msg=name)


def assert_same_answers(found, expected):
    for rows in (ROWS_NEW, ROWS):
        assert_array_equal(found.predict(rows), expected.predict(rows))
        for kind in ("hdi", "equal_tailed"):
            ours, theirs = (
                model.predict_interval(rows, [0.5, 0.9], kind=kind) for model in (found, expected)
            )
            assert_array_equal(ours, theirs)
        quantiles = [model.predict_quantiles(rows, [0.1, 0.6]) for model in (found, expected)]
        assert_array_equal(*quantiles)
    weights = [model.predict_weights(ROWS_NEW).toarray() for model in (found, expected)]
    assert_array_equal(*weights)
    if hasattr(expected, "oob_prediction_"):
        assert_array_equal(found.oob_.prediction(), expected.oob_.prediction())
        intervals = [model.oob_.interval(0.8, kind="hdi") for model in (found, expected)]
        assert_array_equal(*intervals)


FORESTS = {
    "extra trees": (ExtraTreesRegressor(6, bootstrap=True, random_state=0), ROWS, SKEW),
    "missing": (RandomForestRegressor(4, random_state=0), MISSING, SKEW),
    "best first": (RandomForestRegressor(4, max_leaf_nodes=50, random_state=0), ROWS, SKEW),
    "no bootstrap": (ExtraTreesRegressor(6, random_state=0), ROWS, SKEW),
    "two outputs": (
        RandomForestRegressor(4, random_state=0),
        ROWS,
        np.stack([SKEW, ROWS[:, 1]], axis=1),
    ),
    "few draws": (RandomForestRegressor(4, max_samples=0.1, random_state=0), ROWS, SKEW),
    "one tree": (DecisionTreeRegressor(random_state=0), ROWS, SKEW),
    "bagged": (
        BaggingRegressor(DecisionTreeRegressor(), 4, max_features=0.8, random_state=0),
        ROWS,
        SKEW,
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FORESTS)
@pytest.mark.parametrize("weights", ["all", "inbag", "oob"])
def test_a_pruned_model_is_that_of_the_pruned_trees(name, weights):
    forest, rows, y = FORESTS[name]
    fitted = copy.deepcopy(forest).fit(rows, y)
    if weights == "oob" and name in ("no bootstrap", "one tree"):
        return
    model = HDIForestRegressor.from_forest(fitted, rows, y, weights=weights)
    for m in (1, 5, N + 1):
        expected = HDIForestRegressor.from_forest(rewritten(fitted, m), rows, y, weights=weights)
        found = model.prune(m)
        if m > 1 or name != "best first":  # trees that stay whole keep their node ids
            assert_same_arrays(found, expected)
        assert_same_answers(found, expected)
    assert (found.scorer_.forest.n_leaves == 1).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("weights", ["all", "inbag"])
def test_rows_without_a_weight_are_not_drawn(bootstrap, weights):
    fitted = RandomForestRegressor(8, bootstrap=bootstrap, random_state=0).fit(ROWS, SKEW, WEIGHT)
    options = {"sample_weight": WEIGHT, "weights": weights}
    model = HDIForestRegressor.from_forest(fitted, ROWS, SKEW, **options)
    expected = HDIForestRegressor.from_forest(rewritten(fitted, 5), ROWS, SKEW, **options)
    found = model.prune(5)
    assert_same_arrays(found, expected)
    assert_same_answers(found, expected)
