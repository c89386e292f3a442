"""`CoverageMonitor`: two kinds of evidence, valid at any time, and what it says."""

import pickle
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hdiforest import ForestSearchOOB, HDIForestRegressor, from_leaves
from hdiforest.monitoring import CoverageMonitor, recalibrate

from ..model_files import arrays_of, rewritten

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2000, 2))
Y = X[:, 0] + RNG.normal(size=2000)
NEW, NEW_Y = X[500:], Y[500:]


@pytest.fixture(scope="module")
def model():
    forest = RandomForestRegressor(80, min_samples_leaf=5, random_state=0)
    return HDIForestRegressor(forest).fit(X[:500], Y[:500])


def over_starts(wealth, n):
    """Capital of which a share 1 / (s (s + 1)) is put in before row s, from 1 on."""
    shares = 1 / (np.arange(1, n + 1) * np.arange(2, n + 2))
    return shares @ [wealth(start) for start in range(n)] + 1 / (n + 1)


@pytest.fixture
def seen(model, tmp_path):
    """The state after rows of which a file tells what side they missed, or 0, and a score."""
    path = tmp_path / "monitor.hdi"
    monitor = CoverageMonitor(model)
    monitor.update(NEW[:1], NEW_Y[:1])
    monitor.save(path)

    def state(sides, scores, miss=0.1):
        arrays = {"coverage_and_miss": np.array([0.9, miss])}
        arrays |= {"sides": np.asarray(sides, np.int32), "scores": np.asarray(scores, float)}
        changed = rewritten(path, lambda held: held.update(arrays), to=tmp_path / "changed.hdi")
        return CoverageMonitor.load(changed, model).state

    return state


@pytest.mark.parametrize(("miss", "bets"), [(0.1, (0.5, 1, 2, 4)), (0.5, (0.5, 1))])
def test_evidence_of_misses_is_that_of_the_definition(seen, miss, bets):
    missed = RNG.random(60) < 2 * miss

    def wealth(start):
        return np.mean([np.prod(1 + bet * (missed[start:] - miss)) for bet in bets])

    assert_allclose(seen(missed, np.zeros(60), miss).evidence, over_starts(wealth, 60))


def test_misses_beyond_two_standard_errors_of_the_calibration_are_bet_on(model, tmp_path):
    monitor = CoverageMonitor(model)
    monitor.update(NEW[:5], NEW_Y[:5])
    monitor.save(tmp_path / "monitor.hdi")
    error = np.sqrt(0.09 / model.calibration_.n)
    coverage_and_miss = arrays_of(tmp_path / "monitor.hdi")["coverage_and_miss"]
    assert_allclose(coverage_and_miss, [0.9, 0.1 + 2 * error])


def test_evidence_of_drift_is_that_of_the_definition(seen):
    scores, uniform = RNG.integers(0, 5, 260).astype(float), np.random.default_rng(0)
    ranks = []
    for i in range(200, 260):
        before = scores[:i]
        above, tied = (before > scores[i]).sum(), (before == scores[i]).sum()
        ranks.append((above + uniform.random() * (tied + 1)) / (i + 1))

    def wealth(start):
        capital = np.ones(3) / 3
        for rank in ranks[start:]:
            capital = 0.99 * capital + 0.01 * capital.sum() / 3
            capital *= 1 + np.array([-1, 0, 1]) * (rank - 0.5)
        return capital.sum()

    assert_allclose(seen(np.zeros(260), scores).drift, over_starts(wealth, 60))


def test_false_alarms_are_rare(seen):
    alarms = Counter()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        alarms.update(seen(rng.random(700) < 0.1, rng.normal(size=700)).alarms.keys())
    assert max(alarms.values(), default=0) <= 2


def test_state_of_rows_that_are_alike(model):
    monitor = CoverageMonitor(model)
    state = monitor.update(NEW, NEW_Y)
    lower, upper = model.predict_interval(NEW, 0.9).T
    assert (state.n, state.nominal) == (1500, 0.9)
    assert state.below == (lower > NEW_Y).sum()
    assert state.above == (upper < NEW_Y).sum()
    covered = (lower <= NEW_Y) & (upper >= NEW_Y)
    assert (state.coverage, state.recent) == (covered.mean(), covered[-200:].mean())
    assert_allclose(state.recent_band, np.array(binom.interval(0.95, 200, 0.9)) / 200)
    assert state.alarms == {}
    assert str(state).startswith("1,500 rows, 0.")


def test_noise_that_doubles_is_found(model):
    later = NEW[:, 0] + 2.2 * (NEW_Y - NEW[:, 0])
    monitor = CoverageMonitor(model)
    monitor.update(NEW[:400], NEW_Y[:400])
    state = monitor.update(NEW[400:], later[400:])
    assert set(state.alarms) == {"coverage", "drift"}
    assert min(state.alarms.values()) > 400
    assert "alarm (drift) since row" in str(state)


def test_batches_pickles_and_refused_rows_change_nothing(model):
    whole = CoverageMonitor(model).update(NEW, NEW_Y)
    monitor = CoverageMonitor(model)
    for begin, end in ((0, 1), (1, 300), (300, 1500)):
        monitor.update(NEW[begin:end], NEW_Y[begin:end])
        monitor = pickle.loads(pickle.dumps(monitor))
        for y in (np.full(5, np.nan), NEW_Y[:4]):
            with pytest.raises(ValueError, match="y must"):
                monitor.update(NEW[:5], y)
    assert monitor.state == whole


def test_targets_in_another_unit_are_told(model):
    state = CoverageMonitor(model).update(NEW, NEW_Y * 100 + 5000)
    assert "1,500 of 1,500 misses are targets above their intervals" in str(state)


def test_evidence_of_drift_stays_where_the_model_is_recalibrated(model):
    moved, still = CoverageMonitor(pickle.loads(pickle.dumps(model))), CoverageMonitor(model)
    for begin in range(0, 600, 200):
        rows = NEW[begin : begin + 200], NEW_Y[begin : begin + 200] + begin / 300
        for monitor in (moved, still):
            monitor.update(*rows)
        recalibrate(moved.model, *rows, window=200)
    assert moved.state.drift == still.state.drift
    assert moved.state.coverage > still.state.coverage


def test_models_inside_others_and_of_leaves_are_watched(model):
    """Oracle: the intervals of the model itself, of rows that are scaled by hand."""
    scaler = StandardScaler().fit(X[:50])
    expected = CoverageMonitor(model).update(scaler.transform(NEW), NEW_Y)
    pipeline = make_pipeline(FrozenEstimator(scaler), FrozenEstimator(model))
    assert CoverageMonitor(pipeline).update(NEW, NEW_Y) == expected
    search = ForestSearchOOB([clone(model.estimator_)], random_state=0).fit(X[:500], Y[:500])
    assert CoverageMonitor(search).update(NEW, NEW_Y) == CoverageMonitor(
        search.best_estimator_
    ).update(NEW, NEW_Y)
    leaves = from_leaves(model.estimator_.apply, X[:500], Y[:500])
    leaves.calibrate(X[500:900], Y[500:900], coverage=0.9)
    state = CoverageMonitor(leaves).update(X[900:], Y[900:])
    lower, upper = leaves.predict_interval(X[900:], 0.9).T
    assert state.coverage == ((lower <= Y[900:]) & (Y[900:] <= upper)).mean()


def test_models_that_are_refused(model):
    with pytest.raises(ValueError, match="such as HDIForestRegressor, got RandomForestRegressor"):
        CoverageMonitor(model.estimator_)
    forest = RandomForestRegressor(60, random_state=0)
    with pytest.raises(AttributeError, match="call calibrate first"):
        CoverageMonitor(HDIForestRegressor(forest, calibration=False).fit(X[:50], Y[:50]))
    with pytest.raises(ValueError, match="coverage must be one that was calibrated"):
        CoverageMonitor(model, 0.85)
    with pytest.raises(ValueError, match="model must be of one target, this one has 2"):
        CoverageMonitor(HDIForestRegressor(forest, calibration=0.9).fit(X[:99], np.c_[Y, Y][:99]))
    with pytest.raises(ValueError, match="seen no rows yet"):
        CoverageMonitor(model).plot()


def test_plot(model):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monitor = CoverageMonitor(model)
    monitor.update(NEW, NEW_Y + np.linspace(0, 6, 1500))
    display = monitor.plot()
    share = display.line_.get_ydata()
    lower, upper = model.predict_interval(NEW, 0.9).T
    moved = NEW_Y + np.linspace(0, 6, 1500)
    covered = (lower <= moved) & (moved <= upper)
    assert share[-1] == covered[-200:].mean()
    assert share[2] == covered[:3].mean()
    assert len(display.alarms_) == 2


def test_a_saved_monitor_goes_on_where_it_stopped(model, tmp_path):
    path = tmp_path / "monitor.hdi"
    whole, begun = CoverageMonitor(model, 0.8), CoverageMonitor(model, 0.8)
    whole.update(NEW, NEW_Y)
    begun.update(NEW[:700], NEW_Y[:700] + 5)
    begun.save(path)
    assert path.stat().st_size < 12 * 700 + 2000
    loaded = CoverageMonitor.load(path, model)
    assert loaded.state == begun.state
    assert loaded.state.alarms
    assert loaded.update(NEW[700:], NEW_Y[700:]) == begun.update(NEW[700:], NEW_Y[700:])


def test_a_saved_monitor_belongs_to_a_model_with_its_coverage(model, tmp_path):
    path = tmp_path / "monitor.hdi"
    with pytest.raises(ValueError, match="no rows yet"):
        CoverageMonitor(model).save(path)
    monitor = CoverageMonitor(model)
    monitor.update(NEW[:5], NEW_Y[:5])
    monitor.save(path)
    forest = RandomForestRegressor(80, min_samples_leaf=5, random_state=0).fit(X[:500], Y[:500])
    other = HDIForestRegressor.from_forest(forest, X[:500], Y[:500])
    with pytest.raises(AttributeError, match="calibrat"):
        CoverageMonitor.load(path, other)
    with pytest.raises(ValueError, match=r"0\.9"):
        CoverageMonitor.load(path, other.calibrate(coverage=0.7))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"sides": np.array([2, 0, 0], np.int32)}, "sides must be"),
        ({"scores": np.array([np.nan, 0, 1])}, "scores finite"),
        ({"scores": np.zeros(2)}, "as many"),
        ({"coverage_and_miss": np.array([0.9, 0.0])}, "between 0 and 1"),
        ({"more": np.zeros(3)}, "tensor 'more', which"),
    ],
)
def test_damaged_files_of_monitors_are_refused(model, tmp_path, change, what):
    path = tmp_path / "monitor.hdi"
    monitor = CoverageMonitor(model)
    monitor.update(NEW[:3], NEW_Y[:3])
    monitor.save(path)
    rewritten(path, lambda arrays: arrays.update(change))
    with pytest.raises(ValueError, match=what):
        CoverageMonitor.load(path, model)
