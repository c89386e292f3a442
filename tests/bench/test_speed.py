"""The speed benchmark runs on a tiny case, agrees with the reference, and shows what it found."""

import importlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from hdicore import _reference
from hdiforest import HDIForestRegressor

from ..oracle import scripts_of

quantile_forest = pytest.importorskip("quantile_forest")

MODULES = ("cases", "checks", "default_fit", "goals", "measure", "memory", "peers", "report", "run")
MODULES += ("store",)
TIMES = {"hdi", "hdi_half", "hdi_5", "quantiles", "mean", "routing", "routing_float64"}
TIMES |= {"command", "forest", "onnx", "lightgbm", "xgboost"}


@pytest.fixture(scope="module")
def bench():
    """The modules of bench/speed, which find each other as scripts do."""
    with scripts_of("speed"):
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})


@pytest.fixture(scope="module")
def tiny(bench):
    return bench.cases.Case("tiny", rows=300, trees=5, queries=200, peer_queries=50)


def test_a_tiny_case_is_measured_and_shown(bench, tiny, tmp_path, capsys):
    result = bench.run.described("tiny", lambda: bench.measure.measure(tiny, [1, 2], 1))
    bench.store.write("tiny", result, tmp_path)
    assert result["left_out"] == {}
    assert set(result["us_per_row"]["1"]) == TIMES
    assert set(result["us_per_row"]["2"]) == TIMES | {"peer_exact", "peer_default"}
    assert all(
        len(times) == 1 for kinds in result["us_per_row"].values() for times in kinds.values()
    )

    bench.report.report(tmp_path)
    assert "HDI / routing" in capsys.readouterr().out
    table = (tmp_path / "table.md").read_text()
    assert all(title in table for title in ("Kinds of work", "One row per call", "Build"))
    assert (tmp_path / "ratios.png").stat().st_size > 10_000
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "ratios.png",
        "results.json",
        "table.md",
    ]


def test_several_outputs_and_what_a_peer_refuses(bench):
    several = bench.cases.Case("several", rows=200, trees=3, outputs=2, queries=20)
    result = bench.measure.measure(several, [1], 1)
    assert set(result["left_out"]) == {"lightgbm", "xgboost"}
    gaps = bench.cases.Case("gaps", data="communities", leaf=200, trees=2, queries=20)
    result = bench.measure.measure(gaps, [1], 1)
    assert "NaN" in result["left_out"]["peer_exact"]
    assert result["bytes"]["peer_exact"] is None


def test_the_default_fit_is_measured_and_shown(bench, tmp_path, capsys):
    case = bench.cases.Case("20k", rows=600, trees=60, queries=200)
    result = bench.default_fit.measure_default_fit(case, 1, 2)
    for clock in ("seconds", "processor_seconds"):
        times = [result[clock][step] for step in bench.default_fit.STEPS]
        assert (np.array(times) > 0).all()
        assert (bench.default_fit.times_forest(result, clock) > 1).all()
    bench.store.write(
        "default_fit_20k", bench.run.described("default_fit_20k", lambda: result), tmp_path
    )
    bench.report.report(tmp_path)
    shown = capsys.readouterr().out
    assert "Default fit, whole" in shown
    assert "Calibrated scoring" in shown


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs the /proc of Linux")
def test_memory_is_measured_and_shown(bench, tiny, tmp_path, capsys):
    result = bench.run.described("m", lambda: bench.memory.measure_memory(tiny, 300_000))
    assert result["score_float32"]["increase"] >= result["score_float32"]["output"]
    bench.store.write("m", result, tmp_path)
    bench.report.report(tmp_path)
    assert "Peak memory" in capsys.readouterr().out


def test_wrong_answers_are_not_timed(bench, tiny):
    X, y, queries = bench.cases.load(tiny)
    forest = RandomForestRegressor(5, min_samples_leaf=5, random_state=0).fit(X, y)
    model = HDIForestRegressor.from_forest(forest, X, y)
    bench.checks.check_answers(model, forest, X, y, queries)
    with pytest.raises(AssertionError):
        bench.checks.check_answers(model, forest, X, y + 1, queries)
    other = RandomForestRegressor(5, min_samples_leaf=5, random_state=1).fit(X, y)
    with pytest.raises(AssertionError):
        bench.checks.check_answers(model, other, X, y, queries)


def test_running_sums_find_what_the_reference_enumerates(bench):
    rng = np.random.default_rng(0)
    for _ in range(200):
        values = rng.integers(0, 12, 30).astype(float)
        atoms = _reference.weighted_atoms(values, rng.integers(1, 4, 30))
        for level in (0.1, 0.5, 0.9, 1.0):
            assert bench.checks.swept_hdi(atoms, level) == _reference.hdi(atoms, level)


@pytest.mark.parametrize("most_rows", [None, 1])
def test_peers_are_what_quantile_forest_fits_itself(bench, tiny, most_rows):
    X, y, queries = bench.cases.load(tiny)
    settings = {"n_estimators": 5, "min_samples_leaf": 5, "random_state": 0}
    forest = RandomForestRegressor(**settings).fit(X, y)
    made, _ = bench.peers.peers_of(forest, X, y)
    peer = made["peer_exact" if most_rows is None else "peer_default"]
    own = quantile_forest.RandomForestQuantileRegressor(max_samples_leaf=most_rows, **settings).fit(
        X, y
    )
    found, expected = (each.predict(queries, quantiles=[0.05, 0.95]) for each in (peer, own))
    np.testing.assert_array_equal(found, expected)
    stored = np.asarray(peer.forest_.y_train_leaves).nbytes
    assert bench.peers.leaf_store_bytes(forest, most_rows) == stored


def test_goals(bench):
    goals = bench.goals.goals_of("friedman_20k_leaf5")
    assert goals["forest"].met(3)
    assert not goals["forest"].met(2.9)
    assert goals["hdi_5"].met(2)
    assert not goals["hdi_5"].met(2.01)
    assert {*bench.goals.AGAINST, *bench.goals.OUTPUTS} <= set(bench.run.SPEED)
