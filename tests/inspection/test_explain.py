"""`explain`: intervals without each training row, and widths with other values of features."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestRegressor

from hdicore import LeafIndex
from hdicore.explain import intervals_without_each
from hdiforest import HDIForestRegressor
from hdiforest.inspection import explain

from ..oracle import bag_counts

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3)).astype(np.float32)
Y = np.round(3 * X[:, 0] + RNG.normal(size=80), 0)  # with ties
WEIGHT = RNG.integers(1, 4, 80).astype(float)
NEW = RNG.normal(size=(2, 3)).astype(np.float32)


def fitted(weights="all", sample_weight=None, **options):
    forest = RandomForestRegressor(30, min_samples_leaf=3, random_state=0)
    options = {"weights": weights, "calibration": False, **options}
    return HDIForestRegressor(forest, **options).fit(X, Y, sample_weight)


def test_the_worked_example():
    y = np.array([1.0, 2.0, 3.0, 7.0, 8.0, 20.0])
    leaves = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1], [1, 0, 0], [1, 1, 0]])
    counts = (leaves == 0).astype(np.uint8)
    whole, *without = intervals_without_each(counts, y, None, [0.7], ["hdi"], 1)[..., 0]
    assert whole.tolist() == [1, 7]
    changes = [[1, 1], [0, 0], [0, 1], [0, -4], [0, 0], [0, 0]]
    assert_array_equal(np.array(without) - whole, changes)


@pytest.mark.parametrize("weights", ["all", "inbag", "oob"])
@pytest.mark.parametrize("weighted", [False, True])
def test_ends_without_a_row_are_those_of_an_index_without_it(weights, weighted):
    model = fitted(weights, WEIGHT if weighted else None)
    forest = model.estimator_
    leaves = forest.apply(X)
    drawn = bag_counts(forest, 80)
    counts = {"all": np.ones_like(drawn), "inbag": drawn, "oob": (drawn == 0).astype(int)}[weights]
    own = WEIGHT if weighted and weights != "inbag" else None
    why = explain(model, NEW, 0.8)
    rows = why.rows
    assert_array_equal(why.interval, model.predict_interval(NEW, 0.8))
    dense = model.predict_weights(NEW).toarray()
    assert_array_equal(np.bincount(rows["row"]), np.count_nonzero(dense, axis=1))
    assert_array_equal(rows["weight"], dense[rows["row"], rows["training_row"]])
    assert_array_equal(rows["target"], Y[rows["training_row"]])
    for at, (i, j) in enumerate(zip(rows["row"], rows["training_row"], strict=True)):
        left = counts.copy()
        left[j] = 0
        n_leaves = leaves.max(axis=0) + 1
        index = LeafIndex(leaves, Y, counts=left, sample_weight=own, n_leaves=n_leaves)
        expected = index.intervals(forest.apply(NEW[[i]]), 0.8)[0]
        assert_array_equal([rows["lower_without"][at], rows["upper_without"][at]], expected)
        lower, upper = why.interval[i] == Y[j]
        expected = "both" if lower and upper else "lower" * int(lower) + "upper" * int(upper)
        assert rows["pins"][at] == expected


def test_calibrated_ends_move_around_the_interval():
    forest = RandomForestRegressor(100, random_state=0)
    model = HDIForestRegressor(forest, calibration=[0.5, 0.8]).fit(X, Y + 0.01 * X[:, 1])
    for coverage in (0.5, 0.8):
        why = explain(model, NEW, coverage)
        assert_array_equal(why.interval, model.predict_interval(NEW, coverage))
        rows = why.rows
        assert np.isfinite(rows["lower_without"]).all()
        same = np.isclose(rows["lower_without"], why.interval[rows["row"], 0])
        assert same.mean() > 0.3
        assert {"lower", "upper"} <= set(rows["pins"])


def test_features_are_those_of_brute_force():
    model = fitted()
    why = explain(model, NEW, 0.8, background=80, random_state=0)
    table = why.features
    assert table["feature"].tolist().count("x0") == 2
    for row, name, change, value, least, _ in zip(*table.values(), strict=True):
        rows = np.repeat(NEW[[row]], 80, axis=0)
        rows[:, int(name[-1])] = X[:, int(name[-1])]
        widths = np.diff(model.predict_interval(rows[::-1].copy(), 0.8))
        assert_allclose(change, np.diff(why.interval[row]) - widths.mean())
        assert least == widths.min()
        rows[0, int(name[-1])] = value
        assert np.diff(model.predict_interval(rows[:1], 0.8)[0]) == least


def test_without_training_rows(tmp_path):
    pytest.importorskip("safetensors")
    fitted().save(tmp_path / "model", training_rows=False)
    why = explain(HDIForestRegressor.load(tmp_path / "model"), NEW)
    assert len(why.features["feature"]) == 6
    with pytest.raises(ValueError, match="save it with training_rows=True"):
        _ = why.rows


def test_refusals():
    model = fitted()
    with pytest.raises(ValueError, match="1 to 1,000 rows, got 1,001"):
        explain(model, np.zeros((1001, 3)))
    with pytest.raises(ValueError, match="background must be a whole number"):
        explain(model, NEW, background=0)
    with pytest.raises(ValueError, match="coverage must be"):
        explain(model, NEW, 90)
    several = HDIForestRegressor(RandomForestRegressor(5), calibration=False)
    with pytest.raises(ValueError, match="one target, got 2"):
        explain(several.fit(X, np.column_stack([Y, Y])), NEW)


def test_plot_and_rows_unlike_the_training_rows():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1)) * [1, -1] + 0.01 * rng.normal(size=(300, 2))
    model = HDIForestRegressor(random_state=0).fit(X, X[:, 0] + rng.normal(size=300))
    why = explain(model, [[2.0, -2.0], [0.0, 0.0]], random_state=0)
    assert why.features["unlike"][:2].min() > 0.5  # such values do not occur together
    display = why.plot(1)
    assert len(display.bars_) == 2
    assert len(display.pins_.get_segments()) == (why.rows["pins"][why.rows["row"] == 1] != "").sum()
    with pytest.raises(ValueError, match="row must be below 2, got 2"):
        why.plot(2)
