"""Means as sums of whole numbers: the kernel and its definition, however the leaves are read."""

import pickle
import threading
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdicore import LeafIndex

from .. import reference

LARGEST, LEAST = np.finfo(float).max, 5e-324
TARGETS = {
    "one": [7.25],
    "zero": [0.0, -0.0],
    "largest range": [-LARGEST, LARGEST, 1.0, 0.1],
    "largest": [LARGEST, np.nextafter(LARGEST, 0), 0.0],
    "least": [0.0, LEAST, -LEAST, 3 * LEAST],
    "subnormal": [2.0**-1050, 3 * 2.0**-1060, -(2.0**-1074)],
    "least above others": [3 * LEAST, -1.0, -0.3],
    "far from zero": [1e15 + 0.125, 1e15 + 0.25, 1e15 + 1],
    "neighbours": [1.0, np.nextafter(1.0, 2), np.nextafter(1.0, 0)],
    "one far away": [1e300, 1.1, 1.3, -0.7],
    "decimal": [0.1, 0.2, 0.7, -0.3],
    "powers": [2.0**k for k in range(-60, 60, 7)],
}


def definition(leaves, y, queries, **options):
    return [reference.mean(leaves, y, query, **options) for query in queries]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(("n_trees", "pooled"), [(1, False), (3, True), (64, False), (65, True)])
def test_targets_of_any_size(name, n_trees, pooled):
    rng = np.random.default_rng(n_trees)
    y = rng.choice(TARGETS[name], 20)
    leaves = rng.integers(0, 6, (20, n_trees))
    queries = rng.integers(-1, 6, (15, n_trees))
    index = LeafIndex(leaves, y, pooled=pooled, n_leaves=[6] * n_trees)
    found = index.mean(queries)
    np.testing.assert_array_equal(found, definition(leaves, y, queries, pooled=pooled))
    known = found[~np.isnan(found)]
    assert np.all((known >= y.min()) & (known <= y.max()))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=12),
    st.integers(0, 2**32 - 1),
)
def test_any_targets(targets, seed):
    rng = np.random.default_rng(seed)
    y, n_trees = np.array(targets), int(rng.integers(1, 6))
    leaves = rng.integers(0, 3, (len(y), n_trees))
    counts = rng.integers(0, 3, leaves.shape) if seed % 2 else None
    weights = 10.0 ** rng.integers(-9, 9, len(y)) if seed % 3 else None
    options = {"counts": counts, "sample_weight": weights, "pooled": seed % 5 == 0}
    index = LeafIndex(leaves, y, **options)
    queries = rng.integers(-1, leaves.max(axis=0) + 1, (5, n_trees))
    np.testing.assert_array_equal(index.mean(queries), definition(leaves, y, queries, **options))
    row = int(rng.integers(len(y)))
    kept = LeafIndex(leaves, y, sample_weight=weights, keep_row_weights=True)
    found = kept.mean(leaves[[row]], leave_out=[row])
    expected = definition(leaves, y, leaves[[row]], sample_weight=weights, leave_out=row)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("y", "mean"), [([0, 5, 7], 4), ([9, 2, 1], 4)])
def test_what_is_left_of_a_row_that_counts_twice_is_in_the_mean(y, mean):
    """Its target, the least or the largest, is farther out than those of all others."""
    options = {"counts": [[2], [1], [1]], "keep_row_weights": True}
    index = LeafIndex(np.zeros((3, 1), dtype=int), y, **options)
    assert index.mean([[0]], leave_out=[0]) == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("n_trees", [1, 100, 3000])
def test_the_error_is_a_unit_of_a_leaf_and_two_steps(n_trees):
    rng = np.random.default_rng(n_trees)
    y, leaves = rng.normal(size=50), rng.integers(0, 4, (50, n_trees))
    query = leaves[0]
    exact = sum(
        sum(map(Fraction, y[own].tolist())) / int(own.sum()) for own in (leaves == query).T
    ) / len(query)
    found = LeafIndex(leaves, y).mean([query])[0]
    error = Fraction(np.ptp(y)) * (
        Fraction(1, 2**31) + Fraction(1, 2**51) + Fraction(n_trees, 2**59)
    )
    assert abs(Fraction(found) - exact) <= error + abs(exact) / 2**53


FAR = {
    "ordinary": [0.3, 0.5, 0.0, 0.2, -0.1, 0.1, 0.7, 1e-3],
    "far smaller than the range": [1e-20, 2e-20, -3e-25, 1.0, 0.1, 7e-19, 1e6, 0.0],
    "of all sizes": [LEAST, 1e-300, 0.1, 3e100, LARGEST, -LARGEST, 1 / 3, -1e-9],
    "large": [1e15 + 0.125, 1e15 + 0.25, 1e15 + 0.375, 1e15, 3.0, -2.5, 7e15, 0.7],
}


@pytest.mark.parametrize("targets", FAR)
@pytest.mark.parametrize("options", ["none", "weights", "pooled", "counts"])
@pytest.mark.parametrize("n_trees", [1, 30])
def test_leaves_that_hold_one_target_have_it_as_their_mean(targets, options, n_trees):
    rng = np.random.default_rng(n_trees)
    y = np.repeat(FAR[targets], 3)
    row_leaves = np.column_stack([rng.permutation(8) for _ in range(n_trees)])[np.arange(24) // 3]
    given = {
        "none": {},
        "weights": {"sample_weight": rng.random(24) + 0.1},
        "pooled": {"pooled": True, "sample_weight": rng.random(24) + 0.1},
        "counts": {"counts": rng.integers(1, 4, (24, n_trees))},
    }[options]
    index = LeafIndex(row_leaves, y, **given)
    np.testing.assert_array_equal(index.mean(row_leaves), y)
    np.testing.assert_array_equal(index.mean(np.tile(row_leaves, (40, 1))), np.tile(y, 40))
    if n_trees > 1:
        some = np.where(np.arange(n_trees) == rng.integers(n_trees), -1, row_leaves)
        np.testing.assert_array_equal(index.mean(some), y)
    both = LeafIndex(row_leaves, np.column_stack([y, y[::-1]]), **given)
    np.testing.assert_array_equal(both.mean(row_leaves), np.column_stack([y, y[::-1]]))
    if options in ("none", "weights"):
        kept = LeafIndex(row_leaves, y, keep_row_weights=True, **given)
        np.testing.assert_array_equal(kept.mean(row_leaves, leave_out=np.arange(24)), y)


def test_equal_means_of_leaves_with_several_targets_are_not_taken_for_one():
    """Both leaves have as many steps as that of a single target, 2, would have."""
    index = LeafIndex([[0], [0], [1], [2], [2]], [1.0, 3.0, 2.0, 0.0, 4.0])
    np.testing.assert_array_equal(index.mean([[0], [1], [2]]), [2, 2, 2])
    tiny = LeafIndex([[0, 0], [1, 1], [2, 2], [3, 3]], [1e-20, 3e-20, 1.0, 0.0])
    found = tiny.mean([[0, 1], [1, 0], [0, 3]])
    assert found[0] == found[1]
    assert ((found >= 0) & (found < 1e-17)).all()


def large_index(options):
    rng = np.random.default_rng(3)
    leaves, y = rng.integers(0, 40, (600, 9)), rng.normal(size=(600, 2))
    counts = rng.integers(0, 2, leaves.shape) if options == "counts" else None
    weights = rng.random(600) if options == "weights" else None
    pooled = options == "pooled"
    wide = 2**24 if options == "wide" else 1
    index = LeafIndex(
        leaves, y, counts=counts if wide == 1 else np.full_like(leaves, wide), pooled=pooled,
        sample_weight=weights, n_leaves=[41] * 9
    )  # fmt: skip
    return index, rng.integers(-1, 41, (1000, 9))


@pytest.mark.parametrize("options", ["none", "counts", "weights", "pooled", "wide"])
def test_it_does_not_matter_how_leaves_are_read(options, set_block_rows):
    index, queries = large_index(options)
    before = index.nbytes
    alone = [index.mean(queries[i : i + 1]) for i in range(4)]
    assert index.nbytes == before  # so far each leaf is read
    expected = index.mean(queries, n_threads=1)
    n_places = 2 * 9 * (41 + 1)
    assert index.nbytes == before + n_places * (16 if options == "pooled" else 8)
    np.testing.assert_array_equal(np.concatenate(alone), expected[:4])
    mapped = LeafIndex.from_arrays(index.arrays(), False, lazy=True)
    np.testing.assert_array_equal(mapped.mean(queries[:1]), expected[:1])
    copied = pickle.loads(pickle.dumps(index))
    assert copied.nbytes == before
    for n_threads in (1, 2, 8):
        for block_rows in (1, 7, 1000):
            set_block_rows(block_rows)
            found = np.empty_like(expected)
            for one in (index, copied, mapped):
                np.testing.assert_array_equal(one.mean(queries, n_threads=n_threads), expected)
                one.intervals(queries, [0.2, 0.9], mean=found, n_threads=n_threads)
                np.testing.assert_array_equal(found, expected)
    damaged = dict(index.arrays())
    damaged["ranks"] = np.full_like(damaged["ranks"], 60_000)
    with pytest.raises(ValueError, match="damaged"):
        LeafIndex.from_arrays(damaged, False, lazy=True).mean(queries[:1])


def test_threads_that_ask_first_at_once():
    index, queries = large_index("none")
    expected = large_index("none")[0].mean(queries)
    found, start = [], threading.Barrier(8)

    def ask():
        start.wait()
        found.append(index.mean(queries))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one.tobytes() == expected.tobytes() for one in found)
