"""Local linear centres: their definition out of bag, what is kept of them, and what is refused."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_friedman1
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from hdicore import _reference
from hdicore._means import LocalColumns
from hdiforest import HDIForestRegressor
from hdiforest._model.out_of_bag import OutOfBagIntervals
from hdiforest._model.residuals import OutOfBagMeans
from hdiforest._model.stacking import best_share
from hdiforest._model.training_rows import TrainingRows
from hdiforest.calibration import CVPlus
from hdiforest.metrics import coverage_score, mean_width_score

X, Y = make_friedman1(600, 7, noise=0.5, random_state=0)
X_NEW, Y_NEW = make_friedman1(1000, 7, noise=0.5, random_state=1)


def fitted(X=X, y=Y, sample_weight=None, forest=None):
    forest = (
        forest if forest is not None else ExtraTreesRegressor(80, bootstrap=True, random_state=0)
    )
    model = HDIForestRegressor(forest, n_jobs=1, calibration=False)
    return model.fit(X, y, sample_weight)


def source_of(model):
    return OutOfBagIntervals(model.fitted_forest(), 1, "local_linear")


def calibrated(model, **options):
    return model.calibrate(coverage=[0.5, 0.9], mean="local_linear", random_state=0, **options)


MODEL = calibrated(fitted())


def drawn_weights(source, row):
    """Weights of the rows that trees drew into the leaves of a row that they did not draw."""
    draw = np.ones(len(source.leaves))
    dense = np.zeros(len(draw))
    for j, weight in _reference.centre(source.leaves, source.counts, row, draw).items():
        dense[j] = weight
    return dense


def test_no_row_is_its_own_neighbour():
    source = source_of(fitted(X[:60], Y[:60]))
    stacking = source.stacking
    mean = stacking.mean
    for row in range(20):
        weights = drawn_weights(source, row)
        assert weights[row] == 0
        expected = _reference.local_linear(
            weights, mean.features[row], mean.features, Y[:60], mean.penalty
        )
        expected = np.clip(expected, Y[:60].min(), Y[:60].max())
        assert_allclose(stacking.out_of_fold[row], expected, atol=1e-7)


def test_a_target_changes_no_interval_of_its_own_row_but_through_the_share():
    model = fitted()
    source, rows = source_of(model), np.array([3, 50])
    a, g = source.stacking.share, source.stacking.out_of_fold
    index = source.stacking.mean.scorer.index
    y = Y.copy()
    y[3] += 5
    out = np.where(source.counts > 0, -1, source.leaves)
    mean = source.stacking.mean
    changed = index.local_linear(out, mean.features, mean.features, y, [mean.penalty])[:, 0]
    unclipped = index.local_linear(out, mean.features, mean.features, Y, [mean.penalty])[:, 0]
    assert 0 < a <= 1
    assert changed[3] == unclipped[3] == g[3]
    assert (changed != unclipped).any()
    assert len(source.intervals(rows, MODEL.calibration_.bases)) == 2


def test_five_features_that_explain_most_are_used():
    source = source_of(fitted())
    assert set(source.stacking.mean.columns.columns) == {0, 1, 2, 3, 4}


def test_fewer_features_and_constant_ones():
    rows = np.column_stack([X[:, 3], np.ones(len(X))])
    columns = source_of(fitted(rows)).stacking.mean.columns
    assert columns.columns.tolist() == [0]
    alone = source_of(fitted(np.ones((600, 1)))).stacking  # no tree has a split
    assert alone.mean.columns.scale.tolist() == [1]
    assert alone.share == 0 or np.ptp(alone.mean.predict(np.ones((3, 1)), 1)) == 0


def test_missing_values_are_at_the_mean():
    rows = np.array([[1, 5], [np.nan, 5], [3, np.nan]], dtype=np.float32)
    columns = LocalColumns.of_rows(rows, np.array([0, 1]))
    assert_array_equal(columns.centre, [2, 5])
    assert_array_equal(columns.read(rows), [[-1, 0], [0, 0], [1, 0]])
    nothing = LocalColumns.of_rows(np.full((2, 1), np.nan, np.float32), np.array([0]))
    assert_array_equal(nothing.read(np.ones((1, 1), np.float32)), [[1]])
    far = LocalColumns.of_rows(np.array([[0], [1e-30]], np.float32), np.array([0]))
    assert np.isfinite(far.read(np.array([[3e38]], np.float32))).all()


def test_a_model_of_rows_with_missing_values():
    rng = np.random.default_rng(0)
    rows = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    model = calibrated(fitted(rows, forest=RandomForestRegressor(80, random_state=0)))
    assert np.isfinite(model.predict_interval(rows[:50] * 100, 0.9)).all()


@pytest.mark.parametrize("y", [Y * 0 + 3, np.round(Y), Y * 1e150])
def test_strange_targets(y):
    found = calibrated(fitted(y=y)).predict_interval(X_NEW[:50], 0.9)
    assert ((y.min() <= found) & (found <= y.max())).all()


def test_few_rows():
    model = calibrated(fitted(X[:60], Y[:60]))
    assert np.isfinite(model.predict_interval(X_NEW[:20], 0.9)).all()


def test_rows_of_no_weight_are_not_there():
    weight = np.where(np.arange(600) < 400, 1.0, 0.0)
    y = np.where(weight > 0, Y, 1e6)
    source = source_of(fitted(y=y, sample_weight=weight))
    assert source.stacking.out_of_fold[:400].max() <= Y[:400].max()
    found = source.stacking.mean.predict(X_NEW, 1)
    assert found.max() <= Y[:400].max() + 1e-9


def test_the_share_is_that_of_least_squares():
    rows = TrainingRows(np.zeros((3, 1), np.float32), np.array([1.0, 2.0, 4.0]), None, None, True)
    forest, linear = np.array([1.5, 2.0, 3.0]), np.array([2.0, 2.5, 3.5])
    means = OutOfBagMeans(forest, np.ones(3), np.empty(0), np.empty(0))
    assert best_share(linear, rows, means) == pytest.approx(1 / 3)


def test_smooth_targets_have_narrower_intervals_that_cover():
    plain = fitted().calibrate(coverage=[0.5, 0.9], random_state=0)
    assert {base.family for base in MODEL.calibration_.bases} == {"stacked"}
    found = MODEL.predict_interval(X_NEW, 0.9)
    assert abs(coverage_score(Y_NEW, found) - 0.9) < 0.03
    assert mean_width_score(found) < 0.95 * mean_width_score(plain.predict_interval(X_NEW, 0.9))


def test_where_it_does_not_help_nothing_changes():
    rng = np.random.default_rng(0)
    y = (X[:, 0] > 0.5) + 0.1 * rng.exponential(size=600)
    local, plain = (
        fitted(y=y).calibrate(coverage=0.9, mean=mean, random_state=0)
        for mean in ("local_linear", None)
    )
    assert local.calibration_.levels[0].base == plain.calibration_.levels[0].base
    found = local.predict_interval(X_NEW, 0.9)
    assert_array_equal(found, plain.predict_interval(X_NEW, 0.9))
    assert local.fitted_forest().centred is None or local.fitted_forest().centred.mean is None


def test_threads_and_blocks_change_no_bit():
    mean = MODEL.fitted_forest().centred.mean
    found = mean.predict(X_NEW, 1)
    assert_array_equal(mean.predict(X_NEW, 2), found)
    assert_array_equal(
        np.concatenate([mean.predict(X_NEW[:1], 1), mean.predict(X_NEW[1:], 1)]), found
    )
    assert_array_equal(
        calibrated(fitted()).predict_interval(X_NEW, 0.9), MODEL.predict_interval(X_NEW, 0.9)
    )


@pytest.mark.parametrize("training_rows", [False, True])
def test_a_file_needs_no_training_rows(tmp_path, training_rows):
    pytest.importorskip("safetensors")
    pd = pytest.importorskip("pandas")
    MODEL.save(tmp_path / "m.hdi", training_rows=training_rows)
    loaded = HDIForestRegressor.load(tmp_path / "m.hdi")
    expected = MODEL.predict_interval(X_NEW, [0.5, 0.9])
    assert_array_equal(loaded.predict_interval(X_NEW, [0.5, 0.9]), expected)
    copy = pickle.loads(pickle.dumps(loaded))
    assert_array_equal(copy.predict_interval(X_NEW, [0.5, 0.9]), expected)
    from hdiforest.serving import BatchScorer

    scorer = BatchScorer(tmp_path / "m.hdi", [0.5, 0.9])
    scored = scorer(pd.DataFrame(X_NEW)).to_numpy()[:, -4:]
    assert_array_equal(scored.reshape(-1, 2, 2), expected.transpose(0, 2, 1))


def test_folds_have_local_means_too(tmp_path):
    pytest.importorskip("safetensors")
    model = calibrated(fitted(), method=CVPlus(2))
    model.save(tmp_path / "m.hdi")
    loaded = HDIForestRegressor.load(tmp_path / "m.hdi")
    assert_array_equal(loaded.predict_interval(X_NEW, 0.9), model.predict_interval(X_NEW, 0.9))


@pytest.mark.parametrize("sizes", [(1,), (5,)])
def test_training_rows_have_calibrated_intervals_out_of_bag(tmp_path, sizes):
    pytest.importorskip("safetensors")
    model = calibrated(fitted(), min_samples_leaf=sizes)
    assert model.calibration_.bases[0].family == "stacked"
    found = model.oob_interval(0.9)
    level = model.calibration_.levels[1]
    assert coverage_score(Y, found) == pytest.approx(level.realised, abs=0.01)
    model.save(tmp_path / "m.hdi", training_rows=True)
    loaded = HDIForestRegressor.load(tmp_path / "m.hdi")
    assert_array_equal(loaded.oob_interval(0.9), found)


def test_distributions_of_training_rows_leave_their_regressions_out():
    levels = np.array([0.1, 0.5, 0.9])
    assert {base.family for base in MODEL.calibration_.bases} == {"stacked"}
    quantiles = MODEL.oob_quantiles(levels)
    assert_allclose((Y[:, None] <= quantiles).mean(axis=0), levels, atol=0.02)
    assert_allclose(
        (Y_NEW[:, None] <= MODEL.predict_quantiles(X_NEW, levels)).mean(0), levels, atol=0.05
    )
    upper = MODEL.oob_interval(0.9, kind="upper")[:, 1]
    assert_array_equal(upper, quantiles[:, 2])
