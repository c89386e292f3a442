"""Conformal quantiles: the order statistic, its weighted form, and exact laws that they promise."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdiforest.calibration._quantiles import conformal_quantile, rank, rows_needed

SHARES = [0.05, 0.3, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999]
shares = st.sampled_from(SHARES)


@pytest.mark.parametrize("coverage", SHARES)
def test_ranks_are_exact_where_n_plus_1_times_c_is_whole(coverage):
    decimal = Fraction(str(coverage))
    for n in range(1, 1500):
        assert rank(n, coverage) == min(n + 1, math.ceil((n + 1) * decimal))


@pytest.mark.parametrize("coverage", SHARES)
def test_rows_needed_is_the_least_number_with_a_finite_quantile(coverage):
    n = rows_needed(coverage)
    assert rank(n, coverage) <= n
    assert n == 1 or rank(n - 1, coverage) == n
    assert math.isfinite(conformal_quantile(np.zeros(n), coverage))
    assert n == 1 or math.isinf(conformal_quantile(np.zeros(n - 1), coverage))


@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=40, unique=True), shares)
def test_among_n_plus_1_scores_the_left_out_one_is_covered_as_promised(scores, coverage):
    """The whole of split conformal prediction: exactly k of n + 1, and c <= k / (n + 1) <= ..."""
    scores, n = np.array(scores, dtype=float), len(scores) - 1
    covered = sum(
        int(own <= conformal_quantile(np.delete(scores, i), coverage))
        for i, own in enumerate(scores)
    )
    assert covered == rank(n, coverage)
    c = Fraction(str(coverage))
    assert c <= Fraction(covered, n + 1) <= c + Fraction(1, n + 1)


@given(
    st.lists(st.tuples(st.integers(-9, 9).map(float), st.integers(1, 6)), min_size=2, max_size=25),
    shares,
)
def test_the_weighted_pad_covers_the_share_of_the_weight(rows, coverage):
    """Tibshirani et al. 2019, lemma 3, counted out: a row left out weighs no more than others."""
    scores, weights = np.array(rows).T
    weights[:2] = weights.max()
    covered = sum(
        int(weight)
        for i, (own, weight) in enumerate(zip(scores, weights, strict=True))
        if own <= conformal_quantile(np.delete(scores, i), coverage, weights=np.delete(weights, i))
    )
    assert covered >= Fraction(str(coverage)) * int(weights.sum())


@given(
    st.lists(st.tuples(st.integers(-9, 9).map(float), st.integers(1, 6)), min_size=1, max_size=25),
    shares,
)
def test_the_weighted_pad_equals_its_definition(rows, coverage):
    scores, weights = np.array(rows).T
    total = int(weights.sum() + weights.max())
    reached = [
        q
        for q in sorted(scores)
        if int(weights[scores <= q].sum()) >= Fraction(str(coverage)) * total
    ]
    assert conformal_quantile(scores, coverage, weights=weights) == (
        reached[0] if reached else math.inf
    )


def test_many_candidates_at_once():
    rng = np.random.default_rng(0)
    scores = rng.integers(-9, 9, (3, 4, 50)).astype(float)
    weights = rng.integers(1, 5, 50).astype(float)
    for options in ({}, {"weights": weights}, {"confidence": 0.9}):
        each = [[conformal_quantile(row, 0.8, **options) for row in block] for block in scores]
        np.testing.assert_array_equal(conformal_quantile(scores, 0.8, **options), each)


@pytest.mark.parametrize("coverage", [0.3, 0.5, 0.8, 0.9, 0.99])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95])
@pytest.mark.parametrize("n", [1, 20, 29, 100])
def test_the_rank_with_confidence_is_the_least_by_the_beta_law(n, coverage, confidence):
    """P(Beta(k, n + 1 - k) >= c) is the chance of fewer than k of n uniforms below c."""
    c, chance, k = Fraction(str(coverage)), Fraction(0), 0
    while k <= n and chance < Fraction(str(confidence)):
        chance += math.comb(n, k) * c**k * (1 - c) ** (n - k)
        k += 1
    least = k if k <= n else n + 1
    assert rank(n, coverage, confidence=confidence) == max(least, rank(n, coverage))


@pytest.mark.parametrize("coverage", [0.3, 0.5, 0.8, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("confidence", [0.01, 0.5, 0.9, 0.95, 0.999])
def test_rows_needed_with_confidence(coverage, confidence):
    n = rows_needed(coverage, confidence=confidence)
    assert rank(n, coverage, confidence=confidence) <= n
    assert n == 1 or rank(n - 1, coverage, confidence=confidence) == n
