"""Intervals of one kind for each coverage, and ends shifted by the mean of numbers of leaves."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import hdicore
from hdicore import LeafIndex, Scorer

from ..oracle import as_forest

KINDS = tuple(hdicore.kinds())


@pytest.fixture(scope="module", params=["small leaves", "large leaves", "tied targets"])
def made(request):
    """A scorer whose index keeps row weights, its training leaves, and rows to score."""
    rng = np.random.default_rng(3)
    X = rng.random((1500, 4), dtype=np.float32)
    y = 5 * X[:, 0] + rng.normal(size=len(X))
    if request.param == "tied targets":
        y = y.round()
    least = 60 if request.param == "large leaves" else 3
    forest = as_forest(RandomForestRegressor(17, min_samples_leaf=least, random_state=0).fit(X, y))
    leaves = forest.leaves(X)
    index = LeafIndex(leaves, y, n_leaves=forest.n_leaves, keep_row_weights=True)
    return Scorer(forest, index), leaves, rng.random((300, 4), dtype=np.float32)


def centre_of(scorer, centres, leaves):
    """Mean of a row's leaves over the trees that contribute, added tree after tree."""
    first = np.cumsum([0, *scorer.forest.n_leaves])
    means = np.full(len(leaves), np.nan)
    for i, row in enumerate(leaves):
        numbers = [centres[first[t] + leaf] for t, leaf in enumerate(row) if leaf >= 0]
        if numbers:
            means[i] = sum(numbers, 0.0) / len(numbers)
    return means


@pytest.mark.parametrize("kind", KINDS)
def test_the_mean_of_the_leaves_is_added_to_both_ends(made, kind):
    scorer, _, X = made
    centres = np.random.default_rng(5).normal(size=scorer.forest.n_leaves.sum())
    expected = scorer.intervals(X, [0.9, 0.5], kind)
    expected += centre_of(scorer, centres, scorer.forest.leaves(X))[:, None, None]
    mean = np.empty(len(X))
    shifted = scorer.intervals(X, [0.9, 0.5], kind, centres=centres, mean=mean)
    np.testing.assert_array_equal(shifted, expected)
    np.testing.assert_array_equal(mean, scorer.mean(X))  # the mean is not shifted


def test_trees_that_are_left_out_do_not_count_in_the_centre(made):
    scorer, leaves, _ = made
    rng = np.random.default_rng(6)
    some = np.where(rng.random(leaves.shape) < 0.4, leaves, -1)[:200]
    some[7] = -1
    centres = rng.normal(size=scorer.forest.n_leaves.sum())
    shifted = scorer.index.intervals(some, 0.8, centres=centres)
    expected = scorer.index.intervals(some, 0.8) + centre_of(scorer, centres, some)[:, None]
    np.testing.assert_array_equal(shifted, expected)
    assert np.isnan(shifted[7]).all()


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (["hdi"], "kind must be one name, or one for each of 2 coverages, got 1"),
        (["hdi"] * 3, "one for each of 2 coverages, got 3"),
        (["hdi", "shortest"], r"kind must be 'hdi'.*got 'shortest'"),
        (["hdi", 3], r"kind must be 'hdi'.*got 3"),
    ],
)
def test_kinds_that_do_not_fit_the_coverages_are_refused(made, kind, message):
    scorer, _, X = made
    with pytest.raises(ValueError, match=message):
        scorer.intervals(X, [0.5, 0.9], kind)


def test_centres_that_are_not_numbers_of_the_leaves_are_refused(made):
    scorer, _, X = made
    n = int(scorer.forest.n_leaves.sum())
    for centres, message in [
        (np.zeros(n - 1), "centres must have shape"),
        (np.zeros((n, 1)), "centres must have shape"),
        (np.full(n, np.nan), "centres must be finite"),
        (["a"] * n, "centres must"),
    ]:
        with pytest.raises(ValueError, match=message):
            scorer.intervals(X, centres=centres)


def test_results_must_not_lie_in_the_memory_of_the_centres(made):
    scorer, _, X = made
    centres = np.zeros(int(scorer.forest.n_leaves.sum()))
    rows = X[: min(len(X), len(centres) // 2)]
    out = centres[: 2 * len(rows)].reshape(-1, 2)
    with pytest.raises(ValueError, match="out must not"):
        scorer.intervals(rows, out=out, centres=centres)


def test_centres_need_one_output():
    index = LeafIndex(np.zeros((4, 2), dtype=int), np.arange(8.0).reshape(4, 2))
    with pytest.raises(ValueError, match="centres needs an index of one output"):
        index.intervals([[0, 0]], centres=[0.0, 0.0])
