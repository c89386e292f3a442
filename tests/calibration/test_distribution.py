"""Conformal predictive distributions: quantiles, their levels, bounds, and what they cover."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from hdiforest.calibration._distribution import (
    BASE_LEVELS,
    PredictiveDistribution,
)
from hdiforest.calibration._postprocess import PostProcess

KNOWN = np.array(BASE_LEVELS)
SMOOTH = np.linspace(-4, 4, 400)
GRADES = np.repeat(np.arange(3.0, 9.0), 50)


def base_of(y, n, rng):
    """Base quantiles of n rows among the values y, ascending in each row, some of them tied."""
    return np.sort(rng.choice(y, (n, len(KNOWN))), axis=1)


def distribution_of(y_train, n=150, seed=0, clip=True, weights=None, confidence=None):
    rng = np.random.default_rng(seed)
    base, y = base_of(y_train, n, rng), rng.choice(y_train, n)
    postprocess = PostProcess.from_targets(y_train, clip=clip)
    return PredictiveDistribution.fitted(base, y, postprocess, (0.9,), weights, confidence)


def quantiles(distribution, base, levels):
    """By its reading, which must ask for no more base quantiles than it needs."""
    needed, read = distribution.quantiles(np.asarray(levels, dtype=float))
    return read(base[:, np.searchsorted(KNOWN, needed)])


def q_twin(row, s, unit):
    """Q(x, s): a polygon through the base quantiles, with straight lines beyond them."""
    if s < KNOWN[0]:
        return row[0] - unit * (KNOWN[0] - s)
    if s > KNOWN[-1]:
        return row[-1] + unit * (s - KNOWN[-1])
    return float(np.interp(s, KNOWN, row))


def quantile_twin(distribution, row, level):
    postprocess = distribution.postprocess
    scores = [
        s
        for k, s in zip(distribution.levels, distribution.scores, strict=True)
        if k >= level - 1e-9
    ]
    s = -math.inf if level == 0 else min(scores, default=math.inf)
    unit = (postprocess.high - postprocess.low) / 2 or 1.0
    value = s if math.isinf(s) else q_twin(row, s, unit)
    if postprocess.lattice and not math.isinf(value):
        start, step, _ = postprocess.lattice
        value = start + step * round((value - start) / step)
    return min(max(value, postprocess.low), postprocess.high) if postprocess.clip else value


@pytest.mark.parametrize("clip", [True, False])
@pytest.mark.parametrize("y_train", [SMOOTH, GRADES, np.full(300, 2.0)])
def test_quantiles_equal_their_twin(y_train, clip):
    distribution = distribution_of(y_train, clip=clip)
    base = base_of(y_train, 20, np.random.default_rng(1))
    levels = np.linspace(0, 1, 41)
    found = quantiles(distribution, base, levels)
    wanted = [[quantile_twin(distribution, row, level) for level in levels] for row in base]
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_numbers_by_hand():
    # Base quantiles 0.05, 0.10, ..., 0.95 of three calibration rows, and of the row to predict.
    row = KNOWN[np.newaxis]
    postprocess = PostProcess(-1.0, 1.0, None, clip=False)
    y = np.array([0.5, 1.45, -0.2])  # beyond the outer quantiles by 0.5 and 0.25; the unit is 1
    distribution = PredictiveDistribution.fitted(np.repeat(row, 3, 0), y, postprocess, (0.9,))
    np.testing.assert_allclose(distribution.levels, [0.25, 0.5, 0.75])
    np.testing.assert_allclose(distribution.scores, [-0.2, 0.5, 1.45])
    levels = [0, 0.1, 0.25, 0.3, 0.5, 0.7, 0.8, 1]
    wanted = [-np.inf, -0.2, -0.2, 0.5, 0.5, 1.45, np.inf, np.inf]
    np.testing.assert_allclose(quantiles(distribution, row, levels)[0], wanted)
    points = np.array([[-0.3, -0.2, 0.0, 0.5, 2.0, np.inf]])
    assert_array_equal(distribution.cdf().read(row, points), [[0, 0.25, 0.25, 0.5, 0.75, 1]])
    strictly = distribution.cdf(inclusive=False).read(row, points)
    assert_array_equal(strictly, [[0, 0, 0.25, 0.25, 0.75, 0.75]])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    values=st.sampled_from(["smooth", "grades", "few", "constant", "huge", "tiny"]),
    n=st.integers(1, 60),
    clip=st.booleans(),
    weighted=st.booleans(),
)
def test_properties(seed, values, n, clip, weighted):
    rng = np.random.default_rng(seed)
    y_train = {
        "smooth": rng.normal(size=300),
        "grades": GRADES,
        "few": np.repeat(rng.normal(size=3), 100),
        "constant": np.full(250, 1 / 3),
        "huge": 1e12 + rng.normal(size=300),
        "tiny": 1e-200 * rng.normal(size=300),
    }[values]
    weights = rng.random(n) + 0.01 if weighted else None
    distribution = distribution_of(y_train, n, seed, clip, weights)
    base = base_of(y_train, 8, rng)
    levels = np.unique(np.concatenate([[0, 1], rng.random(30), distribution.levels]))
    found = quantiles(distribution, base, levels)
    assert (found[:, 1:] >= found[:, :-1]).all()
    if clip:
        assert (found[:, 0] == y_train.min()).all()
        assert (found[:, -1] == y_train.max()).all()
        if values in ("grades", "constant"):  # each point of the lattice is a target
            assert np.isin(found, y_train).all()
    else:
        assert np.isinf(found[:, [0, -1]]).all()
    reached = distribution.cdf().read(base, found)
    assert (reached >= levels - 1e-9).all()
    below = distribution.cdf(inclusive=False).read(base, found)
    assert (below <= reached).all()
    assert (below < levels + 1e-9).all()
    points = np.sort(rng.choice(np.append(y_train, [-np.inf, np.inf]), (8, 20)), axis=1)
    cdf = distribution.cdf().read(base, points)
    assert (cdf[:, 1:] >= cdf[:, :-1]).all()
    outside = distribution.cdf().read(base, np.tile([-np.inf, np.inf], (8, 1)))
    assert_array_equal(outside, np.tile([0, 1], (8, 1)))
    draws = distribution.draws().read(base, rng.random((8, 50)))
    assert np.isfinite(draws).all()
    assert (draws[:, :, None] == found[:, None]).any(axis=2).all()


def test_rows_without_a_distribution_are_nan():
    distribution = distribution_of(SMOOTH)
    base = base_of(SMOOTH, 3, np.random.default_rng(3))
    base[1] = np.nan
    empty = [False, True, False]
    assert_array_equal(np.isnan(quantiles(distribution, base, [0.5])[:, 0]), empty)
    assert_array_equal(np.isnan(distribution.cdf().read(base, np.zeros(3))), empty)
    for kind in ("lower", "upper"):
        levels, read = distribution.bounds(np.array([0.9]), kind, 150, None)
        ends = read(base[:, np.searchsorted(KNOWN, levels)])
        assert_array_equal(np.isnan(ends), np.tile(np.array(empty)[:, None, None], (1, 2, 1)))


def model_rows(n, rng):
    """Rows whose base quantiles are wrong: half as wide as they should be, and not centred."""
    scale = np.exp(rng.normal(size=n))
    return 0.3 + scale[:, None] * np.linspace(-0.8, 0.8, len(KNOWN)), scale * rng.normal(size=n)


@pytest.mark.parametrize("kind", ["lower", "upper"])
@pytest.mark.parametrize(("n", "coverage"), [(19, 0.93), (30, 0.8)])
def test_bounds_of_split_cover_what_the_theorem_says(n, coverage, kind):
    # Of continuous scores the k-th smallest covers k / (n + 1) on average, k = ceil((n + 1) c).
    rng = np.random.default_rng(n)
    postprocess = PostProcess(-50.0, 50.0, None, clip=False)
    shares = []
    for _ in range(500):
        base, y = model_rows(n, rng)
        fitted = PredictiveDistribution.fitted(base, y, postprocess, (coverage,))
        base, y = model_rows(60, rng)
        levels, read = fitted.bounds(np.array([coverage]), kind, n, None)
        ends = read(base[:, np.searchsorted(KNOWN, levels)])[..., 0]
        shares.append(np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])))
    error = np.std(shares) / np.sqrt(len(shares))
    expected = math.ceil((n + 1) * coverage - 1e-9) / (n + 1)
    assert coverage <= expected <= coverage + 1 / (n + 1)
    assert abs(np.mean(shares) - expected) < 4 * error


@pytest.mark.parametrize("kind", ["lower", "upper"])
def test_bounds_of_targets_with_atoms_cover_at_least_that(kind):
    rng, n, coverage = np.random.default_rng(4), 40, 0.8
    shares = []
    for _ in range(400):
        base, y = model_rows(n + 60, rng)
        base, y = np.round(base), np.round(y)
        postprocess = PostProcess.from_targets(np.repeat(np.arange(-60.0, 61), 5), clip=False)
        fitted = PredictiveDistribution.fitted(base[:n], y[:n], postprocess, (coverage,))
        levels, read = fitted.bounds(np.array([coverage]), kind, n, None)
        ends = read(base[n:][:, np.searchsorted(KNOWN, levels)])[..., 0]
        shares.append(np.mean((ends[:, 0] <= y[n:]) & (y[n:] <= ends[:, 1])))
    assert np.mean(shares) > coverage - 3 * np.std(shares) / np.sqrt(len(shares))


def test_confidence_takes_a_larger_level():
    rng = np.random.default_rng(5)
    sure = []
    postprocess = PostProcess(-50.0, 50.0, None, clip=False)
    for _ in range(400):
        base, y = model_rows(100, rng)
        fitted = PredictiveDistribution.fitted(base, y, postprocess, (0.9,), confidence=0.95)
        base, y = model_rows(4000, rng)
        levels, read = fitted.bounds(np.array([0.9]), "upper", 100, 0.95)
        ends = read(base[:, np.searchsorted(KNOWN, levels)])[:, 1, 0]
        sure.append(np.mean(y <= ends) >= 0.9)
    assert np.mean(sure) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 400) - 0.01  # 0.01: 4,000 new rows


def test_right_distributions_stay():
    # Scores of right distributions are uniform, so that a level is asked for as it is.
    rng, n = np.random.default_rng(7), 20_000
    base, y = np.tile(KNOWN, (n, 1)), rng.random(n)
    distribution = PredictiveDistribution.fitted(
        base, y, PostProcess(0.0, 1.0, None, clip=True), (0.9,)
    )
    assert 500 <= len(distribution.levels) <= 510
    levels = np.linspace(0.05, 0.95, 19)
    np.testing.assert_allclose(quantiles(distribution, base[:1], levels)[0], levels, atol=0.02)


@pytest.mark.parametrize(
    ("levels", "scores", "message"),
    [
        ([], [], "as many, and some"),
        ([0.5], [1.0, 2.0], "as many"),
        ([0.5, 0.5], [1.0, 2.0], "must ascend between 0 and 1"),
        ([0.5, 1.0], [1.0, 2.0], "must ascend between 0 and 1"),
        ([0.5, np.nan], [1.0, 2.0], "must ascend between 0 and 1"),
        ([0.5, 0.6], [2.0, 1.0], "numbers and ascend"),
        ([0.5, 0.6], [1.0, np.nan], "numbers and ascend"),
    ],
)
def test_wrong_parts(levels, scores, message):
    with pytest.raises(ValueError, match=message):
        PredictiveDistribution(
            np.array(levels), np.array(scores), PostProcess(0.0, 1.0, None, clip=True)
        )
