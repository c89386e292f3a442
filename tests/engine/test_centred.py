"""Centred out-of-bag intervals against their definition, and that no row sees itself."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hdicore import LeafIndex, _reference
from hdicore._core import (
    _centred_oob_intervals,
    _count_drawn,
    _out_of_bag_means,
    _relabel,
)


class Rows:
    """Random training rows of a forest, and what the kernel is given of them."""

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

    def given(self, coverage, kinds, y=None, rows=None, order=None):
        """Arguments of the kernel; without an order of the rows, the index keeps their weights."""
        y, n = self.y if y is None else y, len(self.y)
        sizes = {"n_leaves": self.n_leaves, "draw_weight": self.weight}
        means = _out_of_bag_means(self.leaves.T, self.counts.T, y, **sizes)
        centres, n_oob, _, leaf_weight = means
        atoms = np.arange(n) if order is None else order
        index = LeafIndex(
            self.leaves,
            np.argsort(atoms).astype(float),
            sample_weight=self.weight,
            keep_row_weights=order is None,
        )
        rows = np.arange(n) if rows is None else np.asarray(rows)
        return {
            "index": index,
            "rows_of_atoms": atoms,
            "drawn": np.packbits(self.counts[atoms].T > 0, axis=1, bitorder="little"),
            "y": y,
            "centres": centres,
            "n_oob": n_oob,
            "leaf_weight": leaf_weight,
            "rows": rows,
            "leaves": self.leaves[rows],
            "counts": self.counts[rows],
            "coverage": coverage,
            "kinds": kinds,
            "families": ["centred"],
            "draw_weight": self.weight,
        }

    def intervals(self, coverage, kinds, n_threads=1, stacked=None, **options):
        given = self.given(coverage, kinds, **options) | (stacked or {})
        return _centred_oob_intervals(**given, n_threads=n_threads)[0]


KINDS = ("hdi", "equal_tailed", "lower", "upper")


@pytest.mark.parametrize("stacks", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_intervals_are_those_of_the_definition(seed, weighted, stacks):
    rows = Rows(seed, weighted=weighted)
    check_definition(rows, None, stacks)


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_weigh_alike_need_no_row_weights(seed):
    rows = Rows(seed, n=45 + seed)
    check_definition(rows, np.random.default_rng(seed).permutation(len(rows.y)), seed == 1)


def check_definition(rows, order, stacks):
    levels = [0.3, 0.8, 1.0]
    offsets = np.random.default_rng(0).normal(size=len(rows.y))
    stacked = {"scale": 0.3, "offsets": offsets} if stacks else {}
    found = rows.intervals(levels, KINDS, stacked=stacked, order=order)
    assert found.shape == (len(KINDS), len(rows.y), 2, 3)
    for i in range(len(rows.y)):
        atoms = _reference.centred_atoms(
            rows.leaves,
            rows.counts,
            rows.y,
            i,
            draw_weight=rows.weight,
            sample_weight=rows.weight,
            order=order,
            **stacked,
        )
        for k, kind in enumerate(KINDS):
            for j, level in enumerate(levels):
                expected = _reference.interval(atoms, level, kind)
                assert_allclose(found[k, i, :, j], expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("values", ["distinct", "tied", "constant", "far apart"])
@pytest.mark.parametrize("n_leaves", [1, 4, 30])
def test_one_merge_gives_the_intervals_of_both_families(values, n_leaves):
    rows = Rows(3, n=70, n_leaves=n_leaves)
    y = {"distinct": rows.y, "tied": np.round(rows.y), "constant": 0 * rows.y - 0.0}.get(
        values, np.where(rows.y > 1, 1e300, rows.y * 1e-300)
    )
    order = np.argsort(y, kind="stable")
    given = rows.given([0.5, 0.9], KINDS, y=y, order=order)
    both = _centred_oob_intervals(**given | {"families": ["raw", "centred"]})
    assert_array_equal(both[1], _centred_oob_intervals(**given)[0])
    for i in range(len(y)):
        atoms = _reference.merge(
            rows.leaves, y, np.where(rows.counts[i] > 0, -1, rows.leaves[i]), leave_out=i
        )
        for k, kind in enumerate(KINDS):
            for j, level in enumerate([0.5, 0.9]):
                if len(atoms.values) == 0:
                    assert np.isnan(both[0, k, i, :, j]).all()
                    continue
                expected = _reference.interval(atoms, level, kind)
                assert_allclose(both[0, k, i, :, j], expected, rtol=1e-12)


def test_leaves_of_any_size_serve_without_row_weights():
    rng = np.random.default_rng(0)
    n, leaves = 2500, np.zeros((2500, 3), dtype=int)
    leaves[:1300, 1] = 1
    leaves[::2, 2] = 1
    y, order = rng.normal(size=n), rng.permutation(n)
    counts = np.zeros((n, 3), dtype=int)
    counts[0, 0] = 1
    ranks = np.argsort(order).astype(float)
    given = {
        "y": y,
        "centres": rng.normal(size=n),
        "n_oob": np.full(n, 3.0),
        "leaf_weight": np.ones(5),
        "rows": [1, 2, n - 1],
        "leaves": leaves[[1, 2, n - 1]],
        "counts": counts[[1, 2, n - 1]],
        "coverage": [0.5, 0.9],
        "kinds": ["hdi", "equal_tailed"],
        "families": ["centred"],
    }
    found = [
        _centred_oob_intervals(
            LeafIndex(leaves, ranks, keep_row_weights=keep),
            order,
            np.packbits(counts[order].T > 0, axis=1, bitorder="little"),
            **given,
        )
        for keep in (False, True)
    ]
    assert_array_equal(*found)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_sums_of_leaves_are_those_of_the_definition(weighted, dtype):
    rows = Rows(2, n=90, n_leaves=7, weighted=weighted)
    rows.n_leaves[3] += 2  # leaves without rows
    leaves, counts = rows.leaves.T, rows.counts.T.astype(dtype)
    given = (leaves, counts, rows.y, rows.n_leaves)
    expected = _reference.out_of_bag_means(*given, rows.weight)
    for n_threads in (1, 3):
        found = _out_of_bag_means(*given, draw_weight=rows.weight, n_threads=n_threads)
        for one, other in zip(found, expected, strict=True):
            assert_array_equal(one, other)
        assert_array_equal(
            _count_drawn(leaves, counts, rows.n_leaves, n_threads=n_threads),
            _reference.count_drawn(leaves, counts, rows.n_leaves),
        )
        new_leaves = np.random.default_rng(0).integers(0, 3, rows.n_leaves.sum())
        assert_array_equal(
            _relabel(leaves, new_leaves, rows.n_leaves, n_threads=n_threads),
            _reference.relabel(leaves, new_leaves, rows.n_leaves),
        )


def test_arguments_of_sums_out_of_range_are_named():
    rows = Rows(1)
    leaves, counts = rows.leaves.T, rows.counts.T
    given = {"leaves": leaves, "counts": counts, "n_leaves": rows.n_leaves}
    wrong = [
        ({"leaves": leaves + 100}, "leaves must name leaves of the forest, got 10"),
        ({"leaves": leaves - 5}, "leaves must name leaves of the forest, got -"),
        ({"leaves": leaves[0]}, "leaves must have 2 dimensions"),
        ({"counts": counts[1:]}, "counts must have shape"),
        ({"counts": -counts}, "counts must"),
        ({"n_leaves": rows.n_leaves[1:]}, "n_leaves must have shape"),
        ({"n_leaves": -rows.n_leaves}, "n_leaves must lie in"),
    ]
    for change, message in wrong:
        with pytest.raises(ValueError, match=message):
            _count_drawn(**given | change)
        with pytest.raises(ValueError, match=message):
            _out_of_bag_means(**given | change, y=rows.y)
    with pytest.raises(ValueError, match="y must have shape"):
        _out_of_bag_means(**given, y=rows.y[1:])
    with pytest.raises(ValueError, match="draw_weight must have shape"):
        _out_of_bag_means(**given, y=rows.y, draw_weight=[1.0])
    with pytest.raises(ValueError, match="new_leaves must have shape"):
        _relabel(leaves, [0], rows.n_leaves)
    with pytest.raises(ValueError, match="leaves must name"):
        _relabel(leaves + 100, np.zeros(rows.n_leaves.sum(), dtype=int), rows.n_leaves)


def test_a_target_moves_no_atom_of_its_own_row():
    rows = Rows(9, n=60, n_trees=30)
    before = rows.intervals([0.5, 0.9], KINDS)
    for i in (0, 7, 31):
        y = rows.y.copy()
        y[i] += 50
        after = rows.intervals([0.5, 0.9], KINDS, y=y, rows=[i])
        assert_allclose(after[:, 0], before[:, i], atol=1e-12, rtol=0)


def test_threads_and_the_choice_of_rows_change_no_bit():
    rows = Rows(5, n=200, n_trees=20)
    found = rows.intervals(0.8, ["hdi"])
    assert found.shape == (1, 200, 2)
    assert_array_equal(rows.intervals(0.8, ["hdi"], n_threads=3), found)
    assert_array_equal(rows.intervals(0.8, ["hdi"], rows=[150, 3]), found[:, [150, 3]])


def test_arguments_out_of_range_are_named():
    rows = Rows(1)
    given = rows.given(0.9, ["hdi"], rows=[0, 1])
    assert _centred_oob_intervals(**given).shape == (1, 1, 2, 2)
    centres, leaf_weight, n_oob = given["centres"], given["leaf_weight"], given["n_oob"]
    targets = np.arange(len(rows.y), dtype=float)
    nan = np.full(len(rows.y), np.nan)
    heavy = LeafIndex(rows.leaves, targets, sample_weight=targets + 1)
    wrong = [
        ({"index": heavy}, "keep_row_weights, or of rows that weigh alike"),
        ({"index": LeafIndex(rows.leaves, 0 * targets)}, "a target for each row"),
        ({"rows_of_atoms": np.arange(40)[::-1]}, "must name the row of each atom"),
        ({"rows_of_atoms": np.zeros(40, dtype=int)}, "must name the row of each atom"),
        ({"rows_of_atoms": np.arange(40) + 1}, "must name the row of each atom"),
        ({"rows_of_atoms": [0]}, "rows_of_atoms must have shape"),
        ({"families": ["raw"]}, "rows_of_atoms must ascend in y"),
        ({"families": ["pale"]}, "family must be 'raw' or 'centred', got 'pale'"),
        ({"drawn": given["drawn"][:, 1:]}, "drawn must have shape"),
        ({"leaves": given["leaves"] + 100}, r"leaves\[0, 0\] is no leaf"),
        ({"leaves": given["leaves"][:, 1:]}, "leaves must have shape"),
        ({"counts": given["counts"][1:]}, "counts must have shape"),
        ({"n_oob": 0 * n_oob}, "row 0 was drawn by every tree"),
        ({"n_oob": nan}, "n_oob must be finite"),
        ({"y": nan}, "y must be finite"),
        ({"centres": centres[1:]}, "centres must have shape"),
        ({"leaf_weight": leaf_weight[1:]}, "leaf_weight must have shape"),
        ({"counts": -given["counts"]}, "counts must not be negative"),
        ({"leaf_weight": 0 * leaf_weight}, "leaf_weight must be positive"),
        ({"rows": [len(rows.y), 0]}, "rows must lie below 40, got 40"),
        ({"coverage": 0}, "coverage must be above 0"),
        ({"kinds": ["median"]}, "kind must be"),
        ({"scale": np.inf}, "scale must be finite"),
        ({"offsets": nan}, "offsets must be finite"),
        ({"offsets": [0.0]}, "offsets must have shape"),
    ]
    for change, message in wrong:
        with pytest.raises(ValueError, match=message):
            _centred_oob_intervals(**given | change)
