"""Scorer: where results are written, what they are of no rows, and what is refused."""

import sys

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from hdicore import Forest, LeafIndex, Scorer

from ..oracle import as_forest, run_python


@pytest.fixture(scope="module")
def scorer():
    rng = np.random.default_rng(0)
    X = rng.random((300, 4), dtype=np.float32)
    y = X[:, 0] + rng.normal(size=300)
    forest = as_forest(RandomForestRegressor(25, min_samples_leaf=4, random_state=0).fit(X, y))
    return Scorer(forest, LeafIndex(forest.leaves(X), y, n_leaves=forest.n_leaves))


def test_out_is_filled_and_returned(scorer):
    X = np.random.default_rng(5).random((20, 4))
    calls = {
        (20,): lambda out: scorer.mean(X, out=out),
        (20, 2): lambda out: scorer.intervals(X, out=out),
        (20, 2, 3): lambda out: scorer.intervals(X, [0.1, 0.5, 1.0], out=out),
        (20, 4): lambda out: scorer.quantiles(X, [0, 0.2, 0.4, 1], out=out),
        (20, 1): lambda out: scorer.cdf(X, np.zeros((20, 1)), out=out),
        (20, 5): lambda out: scorer.draws(X, np.zeros((20, 5)), out=out),
    }
    for shape, call in calls.items():
        out = np.full(shape, -1e300)
        assert call(out) is out
        np.testing.assert_array_equal(out, call(None))
        for bad in (np.empty((21, *shape[1:])), np.empty(shape, np.float32), np.empty(shape)[::-1]):
            if bad.flags.c_contiguous and bad.shape == shape and bad.dtype == float:
                continue  # a single column reversed is contiguous again
            with pytest.raises(ValueError, match="out must"):
                call(bad)


def test_an_unaligned_or_read_only_out_is_refused(scorer):
    X = np.zeros((2, 4))
    unaligned = np.zeros(33, dtype=np.uint8)[1:].view(np.float64).reshape(2, 2)
    readonly = np.zeros((2, 2))
    readonly.flags.writeable = False
    for bad in (unaligned, readonly):
        with pytest.raises(ValueError, match="out must be aligned and writeable"):
            scorer.intervals(X, out=bad)
    with pytest.raises(ValueError, match="mean must have shape"):
        scorer.intervals(X, mean=np.zeros(3))


def test_no_rows_give_empty_results(scorer):
    X = np.zeros((0, 4))
    assert scorer.mean(X).shape == (0,)
    assert scorer.intervals(X).shape == (0, 2)
    assert scorer.intervals(X, [0.5]).shape == (0, 2, 1)
    assert scorer.quantiles(X, 0.5).shape == (0,)
    assert scorer.quantiles(X, [0.5, 0.6]).shape == (0, 2)
    assert scorer.cdf(X, np.zeros((0, 3))).shape == (0, 3)
    assert scorer.draws(X, np.zeros(0)).shape == (0,)
    assert [array.tolist() for array in scorer.weights(X)] == [[0], [], []]


def test_no_points_for_a_row_give_an_empty_axis(scorer):
    assert scorer.cdf(np.zeros((3, 4)), np.zeros((3, 0))).shape == (3, 0)


@pytest.mark.parametrize(
    ("coverage", "message"),
    [
        *((bad, "coverage must") for bad in (0, -1, np.nan, "0.9", [], None, [[0.9]], [0.5, 0.0])),
        *((bad, "coverage must") for bad in (True, 0.9j)),
        (90, r"coverage must be above 0 and at most 1, got .* \(did you mean 0.9\?\)$"),
        ([50, 80], r"coverage must be above 0 and at most 1, got .* \(did you mean 0.5\?\)$"),
    ],
)
def test_what_is_no_coverage_is_refused_by_name(scorer, coverage, message):
    with pytest.raises(ValueError, match=message):
        scorer.intervals(np.zeros((1, 4)), coverage)


def test_coverage_of_any_number_type_is_accepted(scorer):
    X = np.full((1, 4), 0.5)
    expected = scorer.intervals(X, 1.0)
    for whole in (1, np.int8(1), np.float32(1), np.array(1)):
        np.testing.assert_array_equal(scorer.intervals(X, whole), expected)
    assert scorer.intervals(X, np.array([0.5, 1.0])).shape == (1, 2, 2)
    assert scorer.intervals(X, (0.5,)).shape == (1, 2, 1)


def test_other_bad_arguments_are_refused(scorer):
    X = np.zeros((1, 4))
    with pytest.raises(ValueError, match=r"kind must be 'hdi'.*got 'shortest'"):
        scorer.intervals(X, 0.9, "shortest")
    for value in (-1, 1.5, "2", None, 2**70):
        with pytest.raises(ValueError, match="n_threads must be a whole number in"):
            scorer.intervals(X, n_threads=value)
    for value in (None, 3, b"hdi"):
        with pytest.raises(ValueError, match="kind must be 'hdi'"):
            scorer.intervals(X, kind=value)
    with pytest.raises(ValueError, match="X has 3 features, but the forest expects 4"):
        scorer.intervals(X[:, :3])
    with pytest.raises(ValueError, match="leave_out needs an index"):
        scorer.intervals(X, leave_out=[0])


def test_an_index_that_does_not_know_every_leaf_of_the_forest_is_refused():
    forest = Forest([1, -1, -1], [2, -1, -1], [0, -2, -2], [0.5, 0, 0], [0, 0, 0], [0, 3], 1)
    with pytest.raises(ValueError, match="no training row in leaf 0 of tree 0"):
        Scorer(forest, LeafIndex.from_leaves([[1], [1]], [1.0, 2.0]))
    Scorer(forest, LeafIndex.from_leaves([[0], [1]], [1.0, 2.0]))


def test_a_forest_and_an_index_of_other_trees_are_refused(scorer):
    index = LeafIndex(np.zeros((3, 24), dtype=int), [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="index must be of the forest's 25 trees, got 24"):
        Scorer(scorer.forest, index)
    index = LeafIndex(np.zeros((3, 25), dtype=int), [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="index has 1 leaves in tree 0, but the forest has"):
        Scorer(scorer.forest, index)


MEMORY = """
import resource
import numpy as np
from hdicore import Forest, LeafIndex, Scorer, instructions

rng = np.random.default_rng(0)
m, n = 60, 500_000
tree = [[1, -1, -1], [2, -1, -1], [0, -2, -2], [0.5, 0, 0], [0, 0, 0]]
forest = Forest(*(np.tile(column, m) for column in tree), 3 * np.arange(m + 1), 1)
x = rng.random((20, 1))
scorer = Scorer(forest, LeafIndex(forest.leaves(x), x[:, 0]))
X, out = rng.random((n, 1)), np.ones((n, 2))
scorer.intervals(X[:5000], out=out[:5000])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
scorer.intervals(X, out=out)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has other units elsewhere")
@pytest.mark.memory
def test_memory_does_not_grow_with_the_rows():
    # All leaves at once would take 120 MB.
    assert int(run_python(MEMORY)) < 12_000
