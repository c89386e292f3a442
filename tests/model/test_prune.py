"""A pruned FittedForest answers in every bit as a model of the pruned scikit-learn trees."""

import copy
import pickle
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

from hdicore import LeafIndex, Scorer, _reference
from hdiforest import HDIForestRegressor
from hdiforest._model.bases import Base
from hdiforest._model.out_of_bag import OutOfBagIntervals
from hdiforest._model.prune import leaf_sizes, prune, prune_to
from hdiforest._utils.kinds import BASE_KINDS
from hdiforest.inspection import predict_matches_forest

RNG = np.random.default_rng(0)
N = 240
X = RNG.normal(size=(N, 4))
Y = np.exp(X[:, 0] + RNG.normal(size=N) / 2)
MISSING = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
WEIGHT = RNG.integers(0, 4, N) / 2
X_NEW = RNG.normal(size=(50, 4))


def rewritten(forest, m):
    """A copy of a fitted forest whose trees were pruned, from the record of scikit-learn alone."""
    forest = copy.deepcopy(forest)
    for member in getattr(forest, "estimators_", [forest]):
        tree = member.tree_
        state = tree.__getstate__()
        leaves = _reference.leaves_below(tree.children_left, tree.children_right, 0)
        sizes = tree.n_node_samples[leaves]
        kept = _reference.prune_tree(tree.children_left, tree.children_right, sizes, m)
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


def pruned_model(model, m):
    found = copy.copy(model)
    found._fitted = prune(model._fitted_forest(), m, n_threads=2)
    return found


def assert_same_arrays(found, expected):
    for part in ("forest", "index"):
        ours, theirs = (getattr(model.scorer_, part).arrays() for model in (found, expected))
        assert ours.keys() == theirs.keys()
        for name, array in theirs.items():
            assert ours[name].dtype == array.dtype
            assert_array_equal(ours[name], array, err_msg=name)


def assert_same_answers(found, expected):
    for rows in (X_NEW, X):
        assert_array_equal(found.predict(rows), expected.predict(rows))
        for kind in ("hdi", "equal_tailed"):
            ours, theirs = (
                model.predict_interval(rows, [0.5, 0.9], kind=kind) for model in (found, expected)
            )
            assert_array_equal(ours, theirs)
        quantiles = [model.predict_quantiles(rows, [0.1, 0.6]) for model in (found, expected)]
        assert_array_equal(*quantiles)
    weights = [model.predict_weights(X_NEW).toarray() for model in (found, expected)]
    assert_array_equal(*weights)
    if found._fitted_forest().training_rows.bags is not None:
        assert_array_equal(found.oob_.prediction(), expected.oob_.prediction())
        intervals = [model.oob_.interval(0.8, kind="hdi") for model in (found, expected)]
        assert_array_equal(*intervals)


FORESTS = {
    "extra trees": (ExtraTreesRegressor(12, bootstrap=True, random_state=0), X, Y),
    "random forest": (RandomForestRegressor(12, random_state=0), X, Y),
    "missing": (RandomForestRegressor(8, random_state=0), MISSING, Y),
    "best first": (RandomForestRegressor(8, max_leaf_nodes=50, random_state=0), X, Y),
    "no bootstrap": (ExtraTreesRegressor(6, random_state=0), X, Y),
    "two outputs": (RandomForestRegressor(8, random_state=0), X, np.stack([Y, X[:, 1]], axis=1)),
    "tied": (RandomForestRegressor(8, random_state=0), X, Y.round()),
    "stumps": (RandomForestRegressor(8, max_depth=1, random_state=0), X, Y),
    "few draws": (RandomForestRegressor(8, max_samples=0.1, random_state=0), X, Y),
    "one tree": (DecisionTreeRegressor(random_state=0), X, Y),
    "bagged": (
        BaggingRegressor(DecisionTreeRegressor(), 8, max_features=0.8, random_state=0),
        X,
        Y,
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
    for m in (1, 5, 15, N + 1):
        expected = HDIForestRegressor.from_forest(rewritten(fitted, m), rows, y, weights=weights)
        found = pruned_model(model, m)
        if m > 1 or name != "best first":  # trees that stay whole keep their node ids
            assert_same_arrays(found, expected)
        assert_same_answers(found, expected)
    assert (found.scorer_.forest.n_leaves == 1).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("weights", ["all", "inbag"])
def test_rows_without_a_weight_are_not_drawn(bootstrap, weights):
    fitted = RandomForestRegressor(8, bootstrap=bootstrap, random_state=0).fit(X, Y, WEIGHT)
    options = {"sample_weight": WEIGHT, "weights": weights}
    model = HDIForestRegressor.from_forest(fitted, X, Y, **options)
    expected = HDIForestRegressor.from_forest(rewritten(fitted, 5), X, Y, **options)
    found = pruned_model(model, 5)
    assert_same_arrays(found, expected)
    assert_same_answers(found, expected)


def test_sizes_are_those_that_scikit_learn_counts():
    for name in ("random forest", "no bootstrap", "bagged", "few draws"):
        forest, rows, y = FORESTS[name]
        fitted = copy.deepcopy(forest).fit(rows, y)
        whole = HDIForestRegressor.from_forest(fitted, rows, y)._fitted_forest()
        trees = [member.tree_ for member in fitted.estimators_]
        recorded = [tree.n_node_samples[tree.children_left < 0] for tree in trees]
        blocks = whole.training_rows.blocks(whole.scorer.forest)
        sizes = leaf_sizes(whole.scorer.forest, whole.training_rows, blocks)
        assert_array_equal(sizes, np.concatenate(recorded))


def test_known_leaves_save_routing():
    fitted = RandomForestRegressor(12, random_state=0).fit(X, Y.round())
    for weights in ("all", "inbag"):
        whole = HDIForestRegressor.from_forest(fitted, X, Y.round(), weights=weights)._fitted
        rows, forest = whole.training_rows, whole.scorer.forest
        leaves = forest.leaves(rows.X)
        sizes = leaf_sizes(forest, rows, rows.blocks(forest, leaves))
        assert_array_equal(sizes, leaf_sizes(forest, rows, rows.blocks(forest)))
        found, new_leaves = prune_to(whole, 5, sizes, leaves)
        expected = prune(whole, 5)
        for name, array in expected.scorer.index.arrays().items():
            assert_array_equal(found.scorer.index.arrays()[name], array)
        assert_array_equal(new_leaves, found.scorer.forest.leaves(rows.X))
        further = prune(found, 15)
        for part in ("forest", "index"):
            ours, theirs = (getattr(each.scorer, part) for each in (further, prune(whole, 15)))
            for name, array in theirs.arrays().items():
                assert_array_equal(ours.arrays()[name], array)


@pytest.mark.parametrize("weights", ["all", "inbag", "oob"])
@pytest.mark.parametrize(("y", "sample_weight"), [(Y, None), (Y.round(), None), (Y, WEIGHT)])
def test_out_of_bag_intervals_of_pruned_trees_are_those_of_the_pruned_forest(
    weights, y, sample_weight
):
    fitted = RandomForestRegressor(60, random_state=0).fit(X, y, sample_weight)
    model = HDIForestRegressor.from_forest(
        fitted, X, y, sample_weight=sample_weight, weights=weights
    )
    whole = OutOfBagIntervals(model._fitted_forest(), 2)
    for m in (3, 12):
        pruned, alone = whole.pruned(m), OutOfBagIntervals(prune(whole.fitted, m), 1)
        assert_array_equal(pruned.leaves, alone.leaves)
        bases = [Base(f, k, 0.8) for f in alone.families for k in ("hdi", "averaged")]
        found = pruned.intervals(pruned.usable, bases)
        assert_array_equal(found, alone.intervals(alone.usable, bases))
        raw = (LeafIndex.intervals, whole.usable, [0.8])
        assert_array_equal(pruned.query_raw(*raw), alone.query_raw(*raw))


def test_out_of_bag_intervals_do_not_see_their_own_rows():
    """What a pruned forest says of a row out of bag does not change with the row's target."""
    fitted = RandomForestRegressor(60, random_state=0).fit(X, Y)
    model = HDIForestRegressor.from_forest(fitted, X, Y)
    whole = prune(model._fitted_forest(), 5)
    chosen, families = np.arange(0, N, 40), ("raw", "centred")
    bases = [Base(*each, 0.8) for each in product(families, BASE_KINDS)]
    found = OutOfBagIntervals(whole, 1).intervals(chosen, bases)
    for k, row in enumerate(chosen):
        other = Y.copy()
        other[row] = 99.0
        changed = copy.copy(whole)
        rows = copy.copy(whole.training_rows)
        object.__setattr__(rows, "y", other)
        object.__setattr__(changed, "training_rows", rows)
        forest = whole.scorer.forest
        object.__setattr__(changed, "scorer", Scorer(forest, rows.index(forest, None, "all")))
        again = OutOfBagIntervals(changed, 1).intervals(np.array([row]), bases)
        np.testing.assert_allclose(again[0], found[k], rtol=1e-9)


def test_a_pruned_model_can_be_calibrated_saved_and_pruned_again(tmp_path):
    model = HDIForestRegressor(
        RandomForestRegressor(60, random_state=0), calibration=True, random_state=0
    ).fit(X, Y)
    assert model._fitted_forest().calibration is not None
    found = pruned_model(model, 5)
    assert found._fitted_forest().calibration is None
    calibrated = copy.copy(found).calibrate()
    assert 0.9 in calibrated.calibration_
    found.save(tmp_path / "model")
    opened = HDIForestRegressor.load(tmp_path / "model")
    twice = pruned_model(pickle.loads(pickle.dumps(opened)), 15)
    assert_same_arrays(twice, pruned_model(model, 15))


def test_predictions_match_the_forest_only_where_nothing_was_pruned():
    fitted = RandomForestRegressor(5, min_samples_leaf=4, random_state=0).fit(X, Y)
    model = HDIForestRegressor.from_forest(fitted, X, Y, weights="inbag")
    assert predict_matches_forest(pruned_model(model, 4))
    assert not predict_matches_forest(pruned_model(model, 5))


@pytest.mark.parametrize("m", [0, -3, 2.5, True, "5", None, np.nan])
def test_other_numbers_of_rows_are_refused(m):
    fitted = RandomForestRegressor(3, random_state=0).fit(X, Y)
    model = HDIForestRegressor.from_forest(fitted, X, Y)
    with pytest.raises(ValueError, match="min_samples_leaf must be a whole number from 1 on, got"):
        prune(model._fitted_forest(), m)
    assert (prune(model._fitted_forest(), 10**30).scorer.forest.n_leaves == 1).all()


def test_models_without_what_pruning_needs_are_refused(tmp_path):
    fitted = RandomForestRegressor(3, random_state=0).fit(X, Y)
    model = HDIForestRegressor.from_forest(fitted, X, Y)
    model.save(tmp_path / "model", training_rows=False)
    opened = HDIForestRegressor.load(tmp_path / "model")
    with pytest.raises(ValueError, match="saved without its training rows"):
        prune(opened._fitted_forest(), 5)
    constrained = RandomForestRegressor(3, monotonic_cst=[1, 0, 0, 0], random_state=0).fit(X, Y)
    model = HDIForestRegressor.from_forest(constrained, X, Y, weights="monotonic")
    with pytest.raises(ValueError, match="pruning needs weights='all', 'inbag' or 'oob', got 'mon"):
        prune(model._fitted_forest(), 5)
