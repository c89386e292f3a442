"""LeafIndex.from_blocks: every bit as from the leaves of all trees, in few passes over blocks."""

import itertools

import numpy as np
import pytest

from hdicore import Forest, LeafIndex

from ..oracle import as_forest

N, N_TREES = 60, 7
RNG = np.random.default_rng(0)
LEAVES = RNG.integers(0, 6, (N, N_TREES)).astype(np.int32)
COUNTS = RNG.poisson(1, (N, N_TREES))
WEIGHT = RNG.random(N)
WEIGHT[::9] = 0
TARGETS = {
    "distinct": RNG.normal(size=N),
    "tied": RNG.integers(0, 3, N) / 2,
    "two outputs": RNG.integers(0, 20, (N, 2)).astype(float),
    "two tied outputs": RNG.integers(0, 3, (N, 2)) / 2,
}
N_LEAVES = np.arange(6, 6 + N_TREES)


class Blocks:
    """Blocks of k trees, as a function that counts how often it is called."""

    def __init__(self, leaves, counts, k):
        self.leaves, self.counts, self.k, self.n_passes = leaves, counts, k, 0

    def __call__(self):
        self.n_passes += 1
        for first in range(0, self.leaves.shape[1], self.k):
            trees = slice(first, first + self.k)
            counts = None if self.counts is None else self.counts[:, trees]
            yield np.asfortranarray(self.leaves[:, trees]), counts


def assert_same(found, expected):
    assert found.arrays().keys() == expected.arrays().keys()
    for name, array in expected.arrays().items():
        assert found.arrays()[name].dtype == array.dtype
        np.testing.assert_array_equal(found.arrays()[name], array, err_msg=name)
    assert found.scalar_output == expected.scalar_output
    assert found.nbytes == expected.nbytes


OPTIONS = [
    {},
    {"keep_row_weights": True},
    {"pooled": True},
    {"max_samples_leaf": 3, "seed": 5},
]


@pytest.mark.parametrize("targets", TARGETS)
@pytest.mark.parametrize("counts", [None, COUNTS, COUNTS == 0, COUNTS * 300])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options))
def test_blocks_of_any_size_give_every_bit(targets, counts, options):
    y = TARGETS[targets]
    for sample_weight, (k, n_threads) in itertools.product(
        (None, WEIGHT), ((1, 3), (3, 1), (7, 3))
    ):
        common = {"sample_weight": sample_weight, "n_threads": n_threads, **options}
        blocks = Blocks(LEAVES, counts, k)
        found = LeafIndex.from_blocks(blocks, y, N_LEAVES, **common)
        assert_same(LeafIndex.from_blocks(list(blocks()), y, N_LEAVES, **common), found)
        expected = LeafIndex(LEAVES, y, counts=counts, n_leaves=N_LEAVES, **common)
        assert_same(found, expected)
        if "keep_row_weights" in options:
            assert_same_left_out(found, expected)
        assert blocks.n_passes <= 3 + (sample_weight is not None and counts is not None)


def assert_same_left_out(found, expected):
    rows = np.arange(N)
    for answer in ("mean", "intervals"):
        ours, theirs = (getattr(each, answer)(LEAVES, leave_out=rows) for each in (found, expected))
        np.testing.assert_array_equal(ours, theirs)


def test_rows_that_weigh_alike_take_one_pass():
    y = RNG.normal(size=(N, 3))
    blocks = Blocks(LEAVES, np.minimum(COUNTS, 1), 2)
    arrays = LeafIndex.from_blocks(blocks, y, N_LEAVES).arrays()
    assert "units" not in arrays
    assert blocks.n_passes == 1
    each = [LeafIndex.from_blocks(blocks, y[:, o], N_LEAVES).arrays() for o in range(3)]
    for name in ("atoms", "ranks", "leaf_begin"):
        np.testing.assert_array_equal(arrays[name], np.concatenate([one[name] for one in each]))


def test_trees_that_differ_are_judged_together():
    """First trees of many ties, or a last one with a large leaf, do not decide alone."""
    n = (1 << 16) + 4
    y = np.repeat(np.arange(n / 4), 4)
    spread = np.arange(n) // 4
    together = np.zeros(n, dtype=int)  # a leaf whose units are stored
    apart = np.arange(n) % (n // 4)  # rows of one target lie in four leaves
    for columns in ([spread, apart, apart, apart], [apart, apart, apart, together]):
        leaves = np.stack(columns, axis=1)
        blocks = Blocks(leaves, None, 1)
        found = LeafIndex.from_blocks(blocks, y, leaves.max(axis=0) + 1)
        assert_same(found, LeafIndex(leaves, y))
        assert blocks.n_passes == 2


def test_more_targets_than_16_bits_hold():
    n = (1 << 16) + 1
    leaves = RNG.integers(0, 4000, (n, 3))
    y = np.stack([RNG.permutation(n), np.arange(n)], axis=1).astype(float)
    found = LeafIndex.from_blocks(Blocks(leaves, None, 2), y, [4000] * 3)
    assert found.arrays()["ranks"].dtype == np.uint32
    assert_same(found, LeafIndex(leaves, y, n_leaves=[4000] * 3))


def some(leaves=LEAVES, counts=None, k=2):
    return list(Blocks(leaves, counts, k)())


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (some()[:-1], "blocks must hold 7 trees in all, got 6"),
        (iter(some(counts=COUNTS * 5000)), "blocks must hold 7 trees in all, got 0"),
        ([*some()[:2], *some(counts=COUNTS)[2:]], "counts must be given for all blocks"),
        (some(LEAVES[1:]), "y must have a row for each row of leaves, 59, got 60"),
        (
            some(np.where(LEAVES == 3, -1, LEAVES)),
            r"leaves\[\d+, \d\] must not be negative, got -1",
        ),
        (some(LEAVES + 5), "leaves names leaf 10 of tree 0, which has 6"),
        (some(counts=COUNTS - 1), r"counts\[\d+, \d\] must not be negative, got -1"),
        ([(LEAVES, COUNTS[:, 1:])], r"counts must have shape \(60, 7\), got \(60, 6\)"),
        ([(LEAVES[0], None)], "leaves must have 2 dimensions"),
        ([(LEAVES + 0.5, None)], "leaves must hold whole numbers"),
    ],
)
def test_hostile_blocks_are_refused(blocks, message):
    with pytest.raises(ValueError, match=message):
        LeafIndex.from_blocks(blocks, TARGETS["distinct"], N_LEAVES)


def test_blocks_that_change_between_passes_are_refused():
    passes = iter([LEAVES, np.where(LEAVES == 5, 4, LEAVES + 1) % 6])

    def blocks():
        return [(next(passes), None)]

    with pytest.raises(ValueError, match="changed while they were read"):
        LeafIndex.from_blocks(blocks, TARGETS["tied"], N_LEAVES)


@pytest.mark.parametrize("blocks", [[LEAVES[0]], [5], [(LEAVES, None, None)], 5])
def test_what_is_no_block_is_a_type_error(blocks):
    with pytest.raises(TypeError):
        LeafIndex.from_blocks(blocks, TARGETS["distinct"], N_LEAVES)


def test_errors_of_the_iterable_pass_through():
    def blocks():
        yield from some()[:1]
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        LeafIndex.from_blocks(blocks, TARGETS["distinct"], N_LEAVES)


def grown_forest():
    from sklearn.ensemble import RandomForestRegressor

    X = RNG.normal(size=(3000, 4)).astype(np.float32)
    X[::50, 1] = np.nan
    forest = RandomForestRegressor(6, random_state=0).fit(X[:500], X[:500, 0])
    return as_forest(forest), X


@pytest.mark.parametrize("n", [0, 1, 5, 3000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_leaves_of_some_trees_are_columns_of_all(n, dtype):
    forest, X = grown_forest()
    rows = X[:n].astype(dtype)
    expected = forest.leaves(rows)
    for first, last in ((0, 6), (2, 5), (5, 6), (3, 3)):
        found = forest.leaves_of_trees(rows, first, last, n_threads=2)
        assert found.flags.f_contiguous
        np.testing.assert_array_equal(found, expected[:, first:last])
        order = RNG.permutation(n)
        found = forest.leaves_of_trees(rows, first, last, order=order, n_threads=2)
        np.testing.assert_array_equal(found, expected[:, first:last])


@pytest.mark.parametrize(
    ("trees", "message"),
    [((-1, 2), "first must be"), ((0, 7), "last must be"), ((4, 3), r"last must be .* \[4, 6\]")],
)
def test_trees_that_do_not_exist_are_refused(trees, message):
    forest, X = grown_forest()
    assert isinstance(forest, Forest)
    with pytest.raises(ValueError, match=message):
        forest.leaves_of_trees(X, *trees)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (np.arange(7), r"order must have shape \(8,\)"),
        ([0, 1, 2, 3, 4, 5, 6, 8], "order must hold each row number below 8 once, got 8"),
        ([0, 1, 2, 3, 4, 5, 6, 6], "order must hold each row number below 8 once, got 6 twice"),
        ([-1, 1, 2, 3, 4, 5, 6, 7], "order must hold whole numbers"),
    ],
)
def test_orders_that_are_no_permutations_are_refused(order, message):
    forest, X = grown_forest()
    with pytest.raises(ValueError, match=message):
        forest.leaves_of_trees(X[:8], 0, 2, order=order)
