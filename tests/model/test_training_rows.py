"""Importing by blocks of trees: the same model, and draws that a later refit does not change."""

import numpy as np
import pytest
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor

from hdicore import LeafIndex
from hdiforest import HDIForestRegressor

from ..model_files import arrays_of
from ..oracle import SKLEARN, bag_counts, blocks_of

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
def test_blocks_write_the_same_file(forest, weights, tmp_path):
    if weights == "oob" and (not forest.bootstrap and getattr(forest, "max_samples", 1) != 0.5):
        pytest.skip("every tree was fitted on all rows")
    files = []
    for name, at_once in (("whole", 2**24), ("blocks", 1)):
        with blocks_of(at_once):
            model = HDIForestRegressor.from_forest(forest, X, Y, weights=weights)
        model.save(tmp_path / name)
        files.append((tmp_path / name).read_bytes())
    assert files[0] == files[1]


def test_leaves_of_few_trees_exist_at_once(forest, monkeypatch):
    sizes, original = [], LeafIndex.from_blocks

    def from_blocks(blocks, *arguments, **options):
        def spied():
            for leaves, counts in blocks():
                assert counts is None or counts.shape == leaves.shape
                sizes.append(leaves.shape[1])
                yield leaves, counts

        return original(spied, *arguments, **options)

    monkeypatch.setattr(LeafIndex, "from_blocks", staticmethod(from_blocks))
    with blocks_of(1):
        HDIForestRegressor.from_forest(forest, X, Y, weights="inbag", n_jobs=2)
    assert max(sizes) == 2
    assert sum(sizes) == 24


def counts_in_file(model, folder):
    model.save(folder / "model")
    return arrays_of(folder / "model").get("training.counts")


def test_bags_are_those_of_the_fit(forest, tmp_path):
    counts = counts_in_file(HDIForestRegressor.from_forest(forest, X, Y), tmp_path)
    samples = getattr(forest, "estimators_samples_", None)
    if counts is None:
        assert samples is None or not forest.bootstrap
        return
    assert counts.dtype == np.uint8
    np.testing.assert_array_equal(counts, bag_counts(forest, 150))
    loaded = HDIForestRegressor.load(tmp_path / "model")
    np.testing.assert_array_equal(counts_in_file(loaded, tmp_path), counts)


def test_a_later_refit_changes_no_draw():
    forest = RandomForestRegressor(30, warm_start=True, random_state=0).fit(X, Y)
    model = HDIForestRegressor.from_forest(forest, X, Y)
    before = model.oob_.interval(0.5)
    forest.set_params(n_estimators=35).fit(X[:90], Y[:90])
    forest.estimators_[0].random_state = 5
    np.testing.assert_array_equal(model.oob_.interval(0.5), before)


def test_a_weighted_fit_is_drawn_again(tmp_path):
    forest = RandomForestRegressor(20, random_state=0).fit(X, Y, sample_weight=WEIGHT)
    model = HDIForestRegressor.from_forest(forest, X, Y, sample_weight=WEIGHT)
    np.testing.assert_array_equal(counts_in_file(model, tmp_path), bag_counts(forest, 150))


@pytest.mark.skipif(SKLEARN < (1, 9), reason="bootstraps of scikit-learn drew all rows alike")
def test_draws_of_more_than_a_byte_are_counted(tmp_path):
    rows, y = np.resize(X, (600, 3)), np.resize(Y, 600)
    weight = np.where(np.arange(600) == 7, 1.0, 1e-9)
    forest = RandomForestRegressor(2, random_state=0).fit(rows, y, sample_weight=weight)
    counts = counts_in_file(
        HDIForestRegressor.from_forest(forest, rows, y, sample_weight=weight), tmp_path
    )
    assert counts.dtype == np.uint16
    assert counts[7].min() > 300
    np.testing.assert_array_equal(counts, bag_counts(forest, 600))
