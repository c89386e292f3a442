"""Importing by blocks of trees: the same model, and draws that a later refit does not change."""

import numpy as np
import pytest
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor

from hdicore import LeafIndex
from hdiforest import HDIForestRegressor
from hdiforest._model import sklearn_forest, training_rows
from hdiforest._model.training_rows import Bags

RNG = np.random.default_rng(3)
X = RNG.normal(size=(150, 3)).astype(np.float32)
Y = RNG.normal(size=150)
WEIGHT = RNG.random(150)

FORESTS = {
    "forest": RandomForestRegressor(24, random_state=0),
    "few rows": ExtraTreesRegressor(24, bootstrap=True, max_samples=0.3, random_state=0),
    "all rows": ExtraTreesRegressor(24, random_state=0),
    "bagging": BaggingRegressor(n_estimators=24, max_features=2, random_state=0),
    "without replacement": BaggingRegressor(
        n_estimators=24, bootstrap=False, max_samples=0.5, random_state=0
    ),
    "every row drawn": BaggingRegressor(n_estimators=24, bootstrap=False, random_state=0),
}


@pytest.fixture(params=FORESTS)
def forest(request):
    return FORESTS[request.param].fit(X, Y)


@pytest.mark.parametrize("weights", ["all", "inbag", "oob"])
def test_blocks_write_the_same_file(forest, weights, monkeypatch, tmp_path):
    if weights == "oob" and (not forest.bootstrap and getattr(forest, "max_samples", 1) != 0.5):
        pytest.skip("every tree was fitted on all rows")
    files = []
    for name, at_once in (("whole", training_rows._BLOCK_BYTES), ("blocks", 0)):
        monkeypatch.setattr(training_rows, "_BLOCK_BYTES", at_once)
        model = HDIForestRegressor.from_forest(forest, X, Y, weights=weights)
        model.save(tmp_path / name)
        files.append((tmp_path / name).read_bytes())
    assert files[0] == files[1]


@pytest.mark.parametrize(("weights", "n_passes"), [("all", 1), ("inbag", 2)])
def test_bags_are_drawn_no_more_often_than_they_are_read(weights, n_passes, monkeypatch):
    drawn, draw = [], sklearn_forest._draw
    monkeypatch.setattr(
        sklearn_forest,
        "_draw",
        lambda forest, estimators_: drawn.append(1) or draw(forest, estimators_=estimators_),
    )
    tied = np.round(Y)  # takes two passes over the trees
    model = FORESTS["forest"].fit(X, tied)
    HDIForestRegressor.from_forest(model, X, tied, weights=weights)
    assert len(drawn) == 1 + 24 * n_passes  # the first shows that rows were drawn


def test_leaves_of_few_trees_exist_at_once(forest, monkeypatch):
    monkeypatch.setattr(training_rows, "_BLOCK_BYTES", 0)
    sizes = []

    class Spied(LeafIndex):
        @staticmethod
        def from_blocks(blocks, *arguments, **options):
            def spied():
                for leaves, counts in blocks():
                    assert counts is None or counts.shape == leaves.shape
                    sizes.append(leaves.shape[1])
                    yield leaves, counts

            return LeafIndex.from_blocks(spied, *arguments, **options)

    monkeypatch.setattr(training_rows, "LeafIndex", Spied)
    HDIForestRegressor.from_forest(forest, X, Y, weights="inbag", n_jobs=2)
    assert max(sizes) == 2
    assert sum(sizes) == 24


def test_bags_are_those_of_the_fit(forest):
    bags = HDIForestRegressor.from_forest(forest, X, Y)._fitted.training_rows.bags
    samples = getattr(forest, "estimators_samples_", None)
    if bags is None:
        assert samples is None or not forest.bootstrap
        return
    expected = np.stack([np.bincount(rows, minlength=150) for rows in samples], axis=1)
    np.testing.assert_array_equal(bags.matrix(), expected)
    np.testing.assert_array_equal(bags.of_trees(3, 5), expected[:, 3:5])


def test_a_later_refit_changes_no_draw():
    forest = RandomForestRegressor(30, warm_start=True, random_state=0).fit(X, Y)
    model = HDIForestRegressor.from_forest(forest, X, Y)
    before = model.oob_.interval(0.5)
    forest.set_params(n_estimators=35).fit(X[:90], Y[:90])
    forest.estimators_[0].random_state = 5
    np.testing.assert_array_equal(model.oob_.interval(0.5), before)


def test_a_stored_model_keeps_its_counts(tmp_path):
    model = HDIForestRegressor.from_forest(FORESTS["forest"].fit(X, Y), X, Y)
    model.save(tmp_path / "model")
    rows, loaded = (
        each._fitted.training_rows for each in (model, HDIForestRegressor.load(tmp_path / "model"))
    )
    assert loaded.bags.matrix().dtype == rows.bags.matrix().dtype == np.uint8
    np.testing.assert_array_equal(loaded.bags.matrix(), rows.bags.matrix())
    np.testing.assert_array_equal(loaded.bags.of_trees(2, 4), rows.bags.of_trees(2, 4))


def test_a_weighted_fit_is_drawn_again():
    forest = RandomForestRegressor(20, random_state=0).fit(X, Y, sample_weight=WEIGHT)
    model = HDIForestRegressor.from_forest(forest, X, Y, sample_weight=WEIGHT)
    counts = model._fitted.training_rows.bags.matrix()
    expected = [np.bincount(rows, minlength=150) for rows in forest.estimators_samples_]
    np.testing.assert_array_equal(counts.T, expected)


def test_draws_of_more_than_a_byte_are_counted():
    bags = Bags.redrawn(2, 3, lambda _tree: np.zeros(300, int))
    assert bags.matrix().dtype == np.uint16
    np.testing.assert_array_equal(bags.of_trees(1, 2), [[300], [0]])
