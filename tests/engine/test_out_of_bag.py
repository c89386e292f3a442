"""Out-of-bag means and intervals against their definition, and that no row sees itself."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import hdicore
from hdicore import LeafIndex, OutOfBagScorer

from .. import reference


class Rows:
    """Random training rows of a forest, and what the engine is given of them."""

    def __init__(self, seed, n=40, n_trees=12, n_leaves=4, weighted=False):
        rng = np.random.default_rng(seed)
        self.leaves = rng.integers(0, n_leaves, (n, n_trees))
        self.counts = rng.poisson(1, (n, n_trees))
        self.counts[:, 0] = 0  # each row is out of bag somewhere
        self.counts[0, 0] = 1
        self.counts[0, 1] = 0
        # Each leaf holds a row that was drawn.
        for t in range(n_trees):
            for leaf in range(n_leaves):
                members = np.flatnonzero(self.leaves[:, t] == leaf)
                if len(members) and not self.counts[members, t].any():
                    self.counts[members[0], t] = 1
        self.counts[(self.counts > 0).all(axis=1), 2] = 0
        self.y = rng.normal(size=n)
        self.weight = rng.random(n) + 0.5 if weighted else None
        self.n_leaves = self.leaves.max(axis=0) + 1

    def engine(self, y=None, **options):
        """What answers, given an index of the targets; it uses that or makes one of its own."""
        y = self.y if y is None else y
        index = LeafIndex(self.leaves, y, n_leaves=self.n_leaves)
        weights = {"sample_weight": self.weight, "draw_weight": self.weight}
        return OutOfBagScorer(index, self.leaves, self.counts, y, **weights | options)


KINDS = tuple(hdicore.kinds())


def every(levels):
    """Each level of each kind, as the engine takes them."""
    kinds = [kind for kind in KINDS for _ in levels]
    return list(levels) * len(KINDS), kinds


@pytest.mark.parametrize("stacks", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_are_those_of_the_definition(weighted, stacks):
    rows = Rows(0, n=24, weighted=weighted)
    offsets = np.random.default_rng(0).normal(size=len(rows.y))
    stacked = {"scale": 0.3, "offsets": offsets} if stacks else {}
    coverage, kinds = every([0.3, 0.8, 1.0])
    engine = rows.engine()
    assert engine.has_raw != weighted
    found = engine.intervals(np.arange(len(rows.y)), coverage, kinds, **stacked)
    again = engine.intervals([15, 3], coverage, kinds, n_threads=3, **stacked)
    assert_array_equal(again, found[[15, 3]])
    assert found.shape == (len(rows.y), 2, len(kinds))
    for i in range(len(rows.y)):
        atoms = reference.centred_atoms(
            rows.leaves,
            rows.counts,
            rows.y,
            i,
            draw_weight=rows.weight,
            sample_weight=rows.weight,
            order=None if weighted else np.argsort(rows.y),
            **stacked,
        )
        for k, (level, kind) in enumerate(zip(coverage, kinds, strict=True)):
            expected = reference.interval(atoms, level, kind)
            assert_allclose(found[i, :, k], expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("values", ["distinct", "tied", "constant", "far apart"])
@pytest.mark.parametrize("n_leaves", [1, 16])
def test_one_merge_gives_the_intervals_of_both_families(values, n_leaves):
    rows = Rows(3, n=32, n_leaves=n_leaves)
    y = {"distinct": rows.y, "tied": np.round(rows.y), "constant": 0 * rows.y - 0.0}.get(
        values, np.where(rows.y > 1, 1e300, rows.y * 1e-300)
    )
    coverage, kinds = every([0.5, 0.9])
    engine, asked = rows.engine(y), (np.arange(32), coverage, kinds)
    both = engine.intervals(*asked, ["raw", "centred"])
    assert_array_equal(both[0], engine.intervals(*asked, "raw"))
    assert_array_equal(both[1], engine.intervals(*asked))
    for i in range(len(y)):
        atoms = reference.merge(
            rows.leaves, y, np.where(rows.counts[i] > 0, -1, rows.leaves[i]), leave_out=i
        )
        for k, (level, kind) in enumerate(zip(coverage, kinds, strict=True)):
            if len(atoms.values) == 0:
                assert np.isnan(both[0, i, :, k]).all()
                continue
            expected = reference.interval(atoms, level, kind)
            assert_allclose(both[0, i, :, k], expected, rtol=1e-12)


def test_the_index_that_is_given_changes_no_answer():
    rows = Rows(4, n=60)
    asked = np.arange(60), [0.5, 0.9], "hdi", ["raw", "centred"]
    n_leaves = rows.n_leaves
    given = [
        LeafIndex(rows.leaves, rows.y, n_leaves=n_leaves, keep_row_weights=True),
        LeafIndex(rows.leaves, 0 * rows.y, n_leaves=n_leaves),
        LeafIndex(rows.leaves, rows.y, n_leaves=n_leaves, counts=rows.counts),
        LeafIndex(rows.leaves, rows.y, n_leaves=n_leaves, max_samples_leaf=2),
        LeafIndex(rows.leaves, rows.y, n_leaves=n_leaves, pooled=True),
    ]
    expected = rows.engine().intervals(*asked)
    for index in given:
        engine = OutOfBagScorer(index, rows.leaves, rows.counts, rows.y)
        assert engine.has_raw
        assert_array_equal(engine.intervals(*asked), expected)


def test_leaves_too_large_to_have_no_units():
    rng = np.random.default_rng(0)
    n, leaves = 70_000, np.zeros((70_000, 3), dtype=int)
    leaves[:1300, 1] = 1
    leaves[::2, 2] = 1
    y, counts = rng.normal(size=n), np.ones((n, 3), dtype=int)
    counts[:10] = 0
    counts[10:, 1] = 0
    engine = OutOfBagScorer(LeafIndex(leaves, y), leaves, counts, y)
    assert not engine.has_raw
    few = LeafIndex(leaves, np.arange(n, dtype=float), keep_row_weights=True)
    out = np.where(counts[[20, n - 1]] > 0, -1, leaves[[20, n - 1]])
    atoms = few.weights(out, leave_out=[20, n - 1])
    own = engine.intervals([20, n - 1], [0.5, 1.0], scale=0.0)
    for i in range(2):
        inside = atoms[1][atoms[0][i] : atoms[0][i + 1]]
        assert_array_equal(own[i, :, 1], [y[inside].min(), y[inside].max()])


def test_rows_that_every_tree_drew_weigh_nothing():
    rows = Rows(6, n=50)
    rows.counts[[3, 8]] = 1
    engine = rows.engine()
    assert_array_equal(np.flatnonzero(engine.n_oob == 0), [3, 8])
    assert not engine.has_raw
    without = np.where(np.isin(np.arange(50), [3, 8]), 0.0, 1.0)
    found = engine.intervals(np.arange(50), 0.8)
    assert_array_equal(found, rows.engine(sample_weight=without).intervals(np.arange(50), 0.8))
    assert np.isnan(found[[3, 8]]).all()
    rows.counts[:] = 1
    with pytest.raises(ValueError, match="every tree drew every row, so none is out of bag"):
        rows.engine()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_means_are_those_of_the_definition(weighted, dtype):
    rows = Rows(2, n=90, n_leaves=7, weighted=weighted)
    rows.n_leaves[3] += 2  # leaves without rows
    rows.counts = rows.counts.astype(dtype)
    known = rows.leaves.T, rows.counts.T, rows.y, rows.n_leaves
    expected = reference.out_of_bag_means(*known, rows.weight)
    for n_threads in (1, 3):
        found = rows.engine(n_threads=n_threads)
        assert_array_equal(found.centres, expected[0])
        assert_array_equal(found.n_oob, expected[1])
        assert_array_equal(found.leaf_means, expected[2])
        assert_array_equal(found.leaf_weight, expected[3])
        assert not found.centres.flags.writeable


def test_a_target_moves_no_atom_of_its_own_row():
    rows = Rows(9, n=60, n_trees=30)
    asked = every([0.5, 0.9])
    before = rows.engine().intervals(np.arange(60), *asked)
    for i in (0, 7, 31):
        y = rows.y.copy()
        y[i] += 50
        after = rows.engine(y).intervals([i], *asked)
        assert_allclose(after[0], before[i], atol=1e-12, rtol=0)


def test_arrays_in_fortran_order_are_not_copied_and_may_be_damaged_later():
    rows = Rows(7, n=64)
    rows.leaves = np.asfortranarray(rows.leaves, dtype=np.int32)
    rows.counts = np.asfortranarray(rows.counts, dtype=np.uint8)
    engine = rows.engine()
    expected = engine.intervals([4], 0.8)
    rows.counts[4] = 255
    engine.intervals(np.arange(64), 0.8)  # of other counts, but nothing is read out of bounds
    rows.leaves[9, 3] = 99
    with pytest.raises(ValueError, match="leaves must name leaves of the index, got 99 in tree 3"):
        engine.intervals(np.arange(64), 0.8)
    rows.counts[4] = Rows(7, n=64).counts[4]
    assert_array_equal(engine.intervals([4], 0.8), expected)


def test_arguments_out_of_range_are_named():
    rows = Rows(1)
    index = LeafIndex(rows.leaves, rows.y, n_leaves=rows.n_leaves)
    given = {"index": index, "leaves": rows.leaves, "counts": rows.counts, "y": rows.y}
    two = LeafIndex(rows.leaves, np.column_stack([rows.y, rows.y]), n_leaves=rows.n_leaves)
    nan, large = np.full(len(rows.y), np.nan), np.full(len(rows.y), 1e308)
    wrong = [
        ({"index": two}, "index must be of one output"),
        ({"leaves": rows.leaves + 100}, "leaves must name leaves of the index, got 10"),
        ({"leaves": rows.leaves - 5}, "leaves must name leaves of the index, got -"),
        ({"counts": rows.counts[1:]}, "counts must have shape"),
        ({"counts": -rows.counts}, "counts must hold whole numbers"),
        ({"y": nan}, "y must be finite"),
        ({"y": rows.y[1:]}, "leaves must have shape"),
        ({"y": rows.y[:, None]}, "y must have 1 dimensions"),
        ({"y": large}, "too large to be averaged"),
        ({"draw_weight": nan}, "draw_weight must be finite"),
        ({"draw_weight": -large}, "draw_weight must be finite and not negative"),
        ({"draw_weight": [1.0]}, "draw_weight must have shape"),
        ({"sample_weight": [1.0]}, "sample_weight must have shape"),
        ({"n_threads": -1}, "n_threads must be"),
    ]
    for change, message in wrong:
        with pytest.raises(ValueError, match=message):
            OutOfBagScorer(**given | change)
    with pytest.raises(TypeError, match="index must be a LeafIndex, got list"):
        OutOfBagScorer(**given | {"index": [1]})


def test_questions_out_of_range_are_named():
    rows = Rows(1)
    engine = rows.engine()
    wrong = [
        ({"rows": [len(rows.y), 0]}, "rows must lie below 40, got 40"),
        ({"rows": [-1]}, "rows must hold whole numbers"),
        ({"rows": 1}, "rows must have 1 dimensions"),
        ({"coverage": 0}, "coverage must be above 0"),
        ({"kind": "median"}, "kind must be"),
        ({"family": "pale"}, "family must be 'raw' or 'centred', got 'pale'"),
        ({"scale": np.inf}, "scale must be finite"),
        ({"offsets": np.full(len(rows.y), np.nan)}, "offsets must be finite"),
        ({"offsets": [0.0]}, "offsets must have shape"),
    ]
    for change, message in wrong:
        with pytest.raises(ValueError, match=message):
            engine.intervals(**{"rows": [0, 1]} | change)
    with pytest.raises(ValueError, match="family must be 'centred' for rows that do not weigh"):
        Rows(1, weighted=True).engine().intervals([0], family="raw")
    with pytest.raises(TypeError, match=r"OutOfBagScorer.__init__ was not called"):
        OutOfBagScorer.__new__(OutOfBagScorer).intervals([0])
    with pytest.raises(TypeError, match="OutOfBagScorer cannot be pickled"):
        pickle.dumps(engine)
