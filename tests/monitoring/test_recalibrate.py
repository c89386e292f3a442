"""`recalibrate`: quantiles that follow new rows by a rolling window, or adaptively."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hdicore import moving_quantiles
from hdiforest import ForestSearchOOB, HDIForestRegressor, from_leaves
from hdiforest.calibration import CVPlus, Split
from hdiforest.monitoring import recalibrate

from .. import reference
from ..oracle import families, leaf_sizes

RNG = np.random.default_rng(0)
N = 600
X = RNG.normal(size=(3 * N, 3))
Y = X[:, 0] + 0.5 * RNG.normal(size=3 * N)
TRAIN, LATER = slice(0, N), slice(N, None)
COVERAGES = [0.5, 0.9]


FOREST = RandomForestRegressor(80, min_samples_leaf=3, random_state=0)


def fitted(**options):
    model = HDIForestRegressor(FOREST, calibration=False).fit(X[TRAIN], Y[TRAIN])
    return model.calibrate(**({"coverage": COVERAGES} | options))


@pytest.fixture
def model():
    return pickle.loads(SAVED)


SAVED = pickle.dumps(fitted())


def test_moving_quantiles_are_those_of_the_definition():
    for case in range(300):
        m, n, size = RNG.integers(0, 12), RNG.integers(0, 30), int(RNG.integers(1, 15))
        start, scores = RNG.integers(0, 5, m) * 1.0, RNG.integers(0, 5, n) * 1.0
        scores[: case % 2] = np.inf
        options = (size, 0.1, RNG.choice([0.1, 0.5, -0.1, 1.2]), RNG.choice([0, 0.01, 0.3]))
        found, last = moving_quantiles(start, scores, *options)
        expected, miss = reference.moving_quantiles(start.tolist(), scores.tolist(), *options)
        assert_array_equal(found, expected)
        assert last == miss


@pytest.mark.parametrize("rate", [0.01, 0.05])
def test_bound_of_adaptive_misses_for_scores_that_nobody_drew(rate):
    scores = np.r_[np.linspace(0, 50, 2000), np.linspace(50, 0, 2000)]
    quantiles, _ = moving_quantiles(RNG.normal(size=200), scores, 200, 0.1, 0.1, rate)
    assert (scores > quantiles).mean() - 0.1 <= (0.1 + rate) / (rate * len(scores))


def base_ends(model, rows):
    """The ends (n, 2, m) of raw bases."""
    of_bases = []
    for base in model.calibration_.bases:
        kinds = ("hdi", "equal_tailed") if base.kind == "averaged" else (base.kind,)
        ends = [model.predict_interval(rows, base.level, kind=kind) for kind in kinds]
        of_bases.append(np.mean(ends, axis=0))
    return np.stack(of_bases, axis=-1)


@pytest.mark.parametrize("method", ["rolling", "aci"])
def test_quantiles_are_those_of_the_definition(method):
    with families("raw"), leaf_sizes(1):
        model = fitted()
    rows, y = X[LATER][:150], Y[LATER][:150] + np.linspace(0, 2, 150)
    started, coverages = model.calibration_.recent.scores, np.array(model.calibration_.coverages)
    lower, upper = np.moveaxis(base_ends(model, rows), 1, 0)
    scores = np.maximum(lower - y[:, None], y[:, None] - upper)
    rate = 0.05 if method == "aci" else 0
    found = np.array([
        reference.moving_quantiles(started[:, j], [*scores[:, j], 0], 60, 1 - c, 1 - c, rate)[0]
        for j, c in enumerate(coverages)
    ]).T  # fmt: skip
    recalibrate(model, rows, y, method=method, window=60, rate=0.05)
    (step,) = model.calibration_.history
    assert_allclose(step.q_hat, found[-1])  # of the row after the last
    assert_allclose(step.coverage, (scores <= found[:-1]).mean(axis=0))
    assert [level.q_hat for level in model.calibration_.levels] == list(step.q_hat)
    assert (step.method, step.window, step.rate, step.n) == (method, 60, 0.05, 150)


@pytest.mark.parametrize("method", ["rolling", "aci"])
def test_coverage_comes_back_after_a_shift(model, method):
    y = Y[LATER] + 1.5
    static = model.predict_interval(X[LATER], 0.9)
    assert ((static[:, 0] <= y) & (y <= static[:, 1])).mean() < 0.5
    recalibrate(model, X[LATER][:800], y[:800], method=method)
    lower, upper = model.predict_interval(X[LATER][800:], 0.9).T
    assert 0.8 < ((lower <= y[800:]) & (y[800:] <= upper)).mean() < 0.97
    narrow, wide = np.moveaxis(model.predict_interval(X[LATER], COVERAGES), -1, 0)
    assert (wide[:, 0] <= narrow[:, 0]).all()
    assert (narrow[:, 1] <= wide[:, 1]).all()
    assert "recalibrated by 800 rows" in repr(model.calibration_)
    words = {"rolling": "the last 500 rows", "aci": "exceeds 1 - c by at most"}[method]
    assert words in model.calibration_.guarantee


@pytest.mark.parametrize("method", ["rolling", "aci"])
def test_batches_do_as_one_call_and_files_keep_all(model, tmp_path, method):
    other = recalibrate(pickle.loads(SAVED), X[LATER], Y[LATER], method=method, window=120)
    for begin, end in ((0, 1), (1, 70), (70, 600), (600, 2 * N)):
        rows = X[LATER][begin:end], Y[LATER][begin:end]
        recalibrate(model, *rows, method=method, window=120)
        model.save(tmp_path / "model")
        model = HDIForestRegressor.load(tmp_path / "model")
    assert_array_equal(model.predict_interval(X, COVERAGES), other.predict_interval(X, COVERAGES))
    history = model.calibration_.history
    assert [step.n for step in history] == [1, 69, 530, 600]
    assert history[-1].q_hat == other.calibration_.history[0].q_hat
    weights = np.array([step.n for step in history]) / (2 * N)
    coverage = weights @ [step.coverage for step in history]
    assert_allclose(coverage, other.calibration_.history[0].coverage)


def test_weights_and_rows_held_out():
    more_trees = clone(FOREST).set_params(n_estimators=200)  # heavy rows are left out seldom
    weighted = HDIForestRegressor(more_trees, calibration=False)
    weighted.fit(X[TRAIN], Y[TRAIN], sample_weight=RNG.integers(1, 4, N))
    weighted.calibrate(coverage=0.8)
    split = fitted(X=X[LATER][:300], y=Y[LATER][:300], method=Split(confidence=0.9))
    for model in (weighted, split):
        recalibrate(model, X[LATER][300:900], Y[LATER][300:900])
        (step,) = model.calibration_.history
        assert abs(step.coverage[0] - model.calibration_.coverages[0]) < 0.08


def test_targets_beyond_the_training_range_are_covered(model):
    y = Y[LATER] + 30
    recalibrate(model, X[LATER], y, window=100)
    lower, upper = model.predict_interval(X[LATER], 0.9).T
    assert np.isfinite(upper).all()
    assert ((lower <= y) & (y <= upper)).mean() > 0.8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 8}, "window must be at least 9 for a coverage of 0.9, got 8"),
        ({"rate": 0}, "rate must be a number above 0 and at most 1, got 0"),
        ({"method": "pid"}, "method must be 'rolling' or 'aci'"),
        ({"y": np.full(3, np.nan)}, "y must be finite, got .* that are not"),
        ({"y": np.zeros(4)}, r"y must have shape \(3,\), got \(4,\)"),
    ],
)
def test_what_is_refused(model, options, message):
    before = model.calibration_
    with pytest.raises(ValueError, match=message):
        recalibrate(model, **({"X": X[:3], "y": Y[:3]} | options))
    assert model.calibration_ is before


def test_models_that_are_refused(model):
    with pytest.raises(AttributeError, match="no calibration_; call calibrate first"):
        recalibrate(HDIForestRegressor(FOREST, calibration=False).fit(X[TRAIN], Y[TRAIN]), X, Y)
    two = HDIForestRegressor(FOREST, calibration=0.8).fit(X[:100], np.c_[Y, -Y][:100])
    with pytest.raises(ValueError, match=r"a model of one target .* this one has 2"):
        recalibrate(two, X[:3], np.c_[Y, Y][:3])
    with pytest.raises(ValueError, match=r"by method 'oob' or 'split', .* was by 'cv\+'"):
        recalibrate(fitted(method=CVPlus(2)), X[:3], Y[:3])
    with pytest.raises(ValueError, match="calibrate without by"):
        recalibrate(fitted(by=RNG.integers(0, 2, N)), X[:3], Y[:3])


def test_models_inside_others_are_moved(model):
    """Oracle: the model itself, and rows that are scaled by hand."""
    scaler = StandardScaler().fit(X[:50])
    rows, y = X[LATER][:200], Y[LATER][:200] + 1
    expected = recalibrate(pickle.loads(SAVED), scaler.transform(rows), y, window=60)
    pipeline = make_pipeline(FrozenEstimator(scaler), FrozenEstimator(model))
    assert recalibrate(pipeline, rows, y, window=60) is pipeline
    assert model.calibration_.history == expected.calibration_.history
    search = ForestSearchOOB([FOREST], random_state=0).fit(X[TRAIN], Y[TRAIN])
    recalibrate(search, rows, y)
    assert search.best_estimator_.calibration_.history == search.calibration_.history
    assert len(search.calibration_.history) == 1


def test_models_of_other_kinds_are_refused_by_their_class():
    leaves = from_leaves(clone(FOREST).fit(X[TRAIN], Y[TRAIN]).apply, X[TRAIN], Y[TRAIN])
    with pytest.raises(ValueError, match="such as HDIForestRegressor, got LeafModel"):
        recalibrate(leaves, X[LATER], Y[LATER])
    with pytest.raises(NotFittedError, match="HDIForestRegressor"):
        recalibrate(HDIForestRegressor(), X[LATER], Y[LATER])
    with pytest.raises(TypeError, match=r"^recalibrate\(\) got an unexpected .* 'coverage'"):
        recalibrate(HDIForestRegressor(), X[LATER], Y[LATER], coverage=0.9)
