"""Centred out-of-bag intervals against their definition, and that no row sees itself."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hdicore import LeafIndex, _reference
from hdicore._core import _centred_oob_intervals


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

    def prepare(self, y):
        """Centres (n,) and weights of the leaves."""
        draw = np.ones(len(y)) if self.weight is None else self.weight
        drawn = self.counts * draw[:, None]
        leaf_weight, means = [], []
        for t in range(self.leaves.shape[1]):
            totals = np.bincount(self.leaves[:, t], drawn[:, t], self.n_leaves[t])
            sums = np.bincount(self.leaves[:, t], drawn[:, t] * y, self.n_leaves[t])
            leaf_weight.append(totals)
            means.append((sums / np.where(totals > 0, totals, 1))[self.leaves[:, t]])
        out = self.counts == 0
        return (np.array(means).T * out).sum(1) / out.sum(1), np.concatenate(leaf_weight)

    def intervals(self, coverage, kinds, y=None, rows=None, n_threads=1, **stacked):
        y = self.y if y is None else y
        centres, leaf_weight = self.prepare(y)
        index = LeafIndex(
            self.leaves,
            np.arange(len(y), dtype=float),
            sample_weight=self.weight,
            keep_row_weights=True,
        )
        rows = np.arange(len(y)) if rows is None else rows
        return _centred_oob_intervals(
            index,
            self.leaves,
            self.counts,
            y,
            centres,
            leaf_weight,
            rows,
            coverage,
            kinds,
            draw_weight=self.weight,
            n_threads=n_threads,
            **stacked,
        )

    def local(self, penalty=0.05, share=0.6, y=None):
        """Arguments for local regressions in the centres, and those of their definition."""
        y = self.y if y is None else y
        n = len(y)
        features = np.random.default_rng(0).normal(size=(n, 2))
        features[:, 0] += self.y
        drawn = LeafIndex.from_blocks(
            lambda: iter([(self.leaves.astype(np.int32), self.counts.astype(np.uint32))]),
            np.arange(float(n)),
            self.n_leaves,
            sample_weight=self.weight,
        )
        fits = np.empty((n, 1, 10))
        out = np.where(self.counts > 0, -1, self.leaves)
        values = drawn.local_linear(out, features, features, y, [penalty], fits=fits)[:, 0]
        bounds = (-0.8, 0.9)  # some values are clipped
        offsets = share * np.clip(values, *bounds)
        own = {"fits": fits[:, 0], "features": features, "bounds": bounds, "share": share}
        definition = _reference.LocalCentres(features, penalty, share, bounds)
        return {"scale": 1 - share, "offsets": offsets}, own, definition


KINDS = ("hdi", "equal_tailed", "lower", "upper", "smoothed_hdi")


@pytest.mark.parametrize("stacks", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_intervals_are_those_of_the_definition(seed, weighted, stacks):
    rows = Rows(seed, weighted=weighted)
    levels = [0.3, 0.8, 1.0]
    offsets = np.random.default_rng(seed).normal(size=len(rows.y))
    stacked = {"scale": 0.3, "offsets": offsets} if stacks else {}
    found = rows.intervals(levels, KINDS, **stacked)
    assert found.shape == (5, len(rows.y), 2, 3)
    for i in range(len(rows.y)):
        atoms = _reference.centred_atoms(
            rows.leaves,
            rows.counts,
            rows.y,
            i,
            draw_weight=rows.weight,
            sample_weight=rows.weight,
            **stacked,
        )
        for k, kind in enumerate(KINDS):
            for j, level in enumerate(levels):
                expected = _reference.interval(atoms, level, kind)
                assert_allclose(found[k, i, :, j], expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_local_regressions_leave_the_row_out(seed, weighted):
    rows = Rows(seed, weighted=weighted)
    stacked, own, definition = rows.local()
    found = rows.intervals([0.4, 0.9], KINDS, **stacked, **own)
    options = {"draw_weight": rows.weight, "sample_weight": rows.weight, **stacked}
    for i in range(len(rows.y)):
        atoms = _reference.centred_atoms(
            rows.leaves, rows.counts, rows.y, i, **options, local=definition
        )
        for k, kind in enumerate(KINDS):
            for j, level in enumerate((0.4, 0.9)):
                expected = _reference.interval(atoms, level, kind)
                assert_allclose(found[k, i, :, j], expected, atol=1e-7, rtol=0)


def test_a_target_moves_no_atom_of_its_own_row_with_local_regressions():
    rows = Rows(9, n=200, n_trees=60)  # none decides a regression
    stacked, own, _ = rows.local(share=1.0, penalty=1.0)
    before = rows.intervals([0.5, 0.9], KINDS, **stacked, **own)
    for i in (0, 7, 31):
        y = rows.y.copy()
        y[i] += 50
        stacked, own, _ = rows.local(share=1.0, penalty=1.0, y=y)
        after = rows.intervals([0.5, 0.9], KINDS, y=y, rows=[i], **stacked, **own)
        assert_allclose(after[:, 0], before[:, i], atol=1e-7, rtol=0)


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
    centres, leaf_weight = rows.prepare(rows.y)
    targets = np.arange(len(rows.y), dtype=float)
    index = LeafIndex(rows.leaves, targets, keep_row_weights=True)
    given = {
        "index": index,
        "leaves": rows.leaves,
        "counts": rows.counts,
        "y": rows.y,
        "centres": centres,
        "leaf_weight": leaf_weight,
        "rows": [0],
        "coverage": 0.9,
        "kinds": ["hdi"],
    }
    assert _centred_oob_intervals(**given).shape == (1, 1, 2)
    nan = np.full(len(rows.y), np.nan)
    wrong = [
        ({"index": LeafIndex(rows.leaves, targets)}, "keep_row_weights"),
        ({"index": LeafIndex(rows.leaves, -targets, keep_row_weights=True)}, "targets 0, 1"),
        ({"leaves": rows.leaves + 100}, r"leaves\[0, 0\] is no leaf"),
        ({"leaves": rows.leaves[:, 1:]}, "leaves must have shape"),
        ({"counts": rows.counts[1:]}, "counts must have shape"),
        ({"counts": rows.counts + 1}, "row 0 was drawn by every tree"),
        ({"y": nan}, "y must be finite"),
        ({"centres": centres[1:]}, "centres must have shape"),
        ({"leaf_weight": leaf_weight[1:]}, "leaf_weight must have shape"),
        ({"counts": -rows.counts}, "counts must not be negative"),
        ({"leaf_weight": 0 * leaf_weight}, "leaf_weight must be positive"),
        ({"rows": [len(rows.y)]}, "rows must lie below 40, got 40"),
        ({"coverage": 0}, "coverage must be above 0"),
        ({"kinds": ["median"]}, "kind must be"),
        ({"scale": np.inf}, "scale must be finite"),
        ({"offsets": nan}, "offsets must be finite"),
        ({"offsets": [0.0]}, "offsets must have shape"),
    ]
    for change, message in wrong:
        with pytest.raises(ValueError, match=message):
            _centred_oob_intervals(**given | change)
