"""Rows that are equal, or have the same leaves, are scored once, but answered each."""

import functools
import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestRegressor

from hdicore import LeafIndex, Scorer

from .. import reference
from ..oracle import as_forest

RNG = np.random.default_rng(0)


def draw_rows(kind, n=700):
    """Rows to score: many, all or none equal, with missing values, with zeros of both signs.

    Of those of which none are equal many have the same leaves.
    """
    rng = np.random.default_rng(7)
    X = rng.integers(0, 3, (n, 3)).astype(np.float32)
    if kind == "all equal":
        X[:] = X[0]
    if kind == "none equal":
        X = rng.random((n, 3), dtype=np.float32)
    if kind == "missing":
        X[rng.random(X.shape) < 0.3] = np.nan
    if kind == "zeros":
        X = np.where(rng.random(X.shape) < 0.5, -0.0, 0.0).astype(np.float32)
    if kind == "equal as float32":
        X = X + rng.random(X.shape) * 1e-12
    return X


KINDS = ("many equal", "all equal", "none equal", "missing", "zeros", "equal as float32")


@functools.cache
def make(name):
    """A scorer, and the leaves and targets of its training rows."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 4, (900, 3)).astype(np.float32)
    y = X @ [3.0, 2, 1] + rng.normal(size=900)
    if name == "ties":
        y = y.round()
    if name == "several outputs":
        y = np.stack([y, -2 * y, rng.normal(size=900)], 1)
    least = 60 if name == "large leaves" else 2
    forest = as_forest(RandomForestRegressor(11, min_samples_leaf=least, random_state=0).fit(X, y))
    leaves = forest.leaves(X)
    index = LeafIndex(leaves, y, n_leaves=forest.n_leaves, keep_row_weights=True)
    return Scorer(forest, index), leaves, y


ONE_OUTPUT = ("small leaves", "large leaves", "ties")


@pytest.fixture(params=[*ONE_OUTPUT, "several outputs"])
def scorer(request):
    return make(request.param)[0]


def answers(scorer, rows, numbers, **how):
    """What is asked of rows, of which `numbers` decide what depends on the row."""
    index = getattr(scorer, "index", scorer)
    outputs = (3,) if index.n_outputs == 3 else ()
    shares = (numbers % 97 / 97)[(...,) + (None,) * len(outputs)] + np.zeros(outputs)
    mean = np.empty((len(rows), *outputs))
    kinds = ["hdi", "equal_tailed", "lower"]
    found = [
        scorer.intervals(rows, [0.9, 0.5, 0.8], kinds, mean=mean, **how),
        scorer.intervals(rows, 0.9, **how),
        mean,
        scorer.quantiles(rows, [0.1, 0.5], **how),
        scorer.quantiles(rows, [0.1, 0.5], "linear", **how),
        *scorer.priced_intervals(rows, [0.5, 2.0], **how),
        scorer.cdf(rows, 12 * shares, **how),
        scorer.draws(rows, shares, **how),
        scorer.n_samples(rows, **how),
    ]
    offsets, ends, bounds = scorer.regions(rows, 0.8, 3, **how)
    found += [np.diff(offsets), ends, bounds]
    if not outputs:
        centres = np.random.default_rng(5).normal(size=sum(index.n_leaves))
        found.append(scorer.intervals(rows, 0.9, centres=centres, **how))
    return found


def in_pieces(call, rows, n=10):
    """The same of n rows at a time, of which none are looked for that are equal."""
    numbers = np.arange(len(rows))
    pieces = [call(rows[k : k + n], numbers[k : k + n]) for k in range(0, len(rows), n)]
    return [np.concatenate(parts) for parts in zip(*pieces, strict=True)]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_have_the_answers_that_they_have_alone(scorer, kind, set_block_rows):
    X = draw_rows(kind)
    leaves = scorer.forest.leaves(X)
    leaves[RNG.random(leaves.shape) < 0.001] = -1
    for asked, rows in ((scorer, X), (scorer.index, leaves)):
        alone = 1 if kind == "none equal" else 10
        expected = in_pieces(lambda r, k, a=asked: answers(a, r, k, n_threads=1), rows, alone)
        for n_threads, block_rows in itertools.product((1, 3), (0, 17, 100)):
            set_block_rows(block_rows)
            found = answers(asked, rows, np.arange(len(rows)), n_threads=n_threads)
            for a, b in zip(found, expected, strict=True):
                assert a.tobytes() == b.tobytes()
        set_block_rows(0)


def test_the_order_of_rows_changes_nothing(scorer):
    X = draw_rows("missing")
    order = RNG.permutation(len(X))
    assert_array_equal(scorer.intervals(X[order]), scorer.intervals(X)[order])


@pytest.mark.parametrize("name", ONE_OUTPUT)
def test_equal_rows_have_the_answers_of_the_definition(name):
    scorer, leaves, y = make(name)
    X = draw_rows("missing", 60)
    found, quantiles = scorer.intervals(X, 0.8), scorer.quantiles(X, 0.3)
    for i, query in enumerate(scorer.forest.leaves(X)):
        atoms = reference.merge(leaves, y, query)
        assert tuple(found[i]) == reference.hdi(atoms, 0.8)
        assert quantiles[i] == reference.quantile(atoms, 0.3)


@pytest.mark.parametrize("name", ONE_OUTPUT)
def test_what_depends_on_the_row_is_its_own(name):
    """Rows left out, weights, spread and mass."""
    scorer = make(name)[0]
    X = draw_rows("none equal", 300)
    X[100:] = draw_rows("many equal", 200)
    left_out = RNG.integers(0, 900, 300)

    def call(rows, numbers):
        ends = np.stack([numbers % 7, numbers % 7 + numbers % 5], 1).astype(float)
        spread, mass = scorer.index.spread_and_mass(scorer.forest.leaves(rows), ends)
        return [
            scorer.intervals(rows, 0.9, leave_out=left_out[numbers]),
            spread,
            mass,
            *(
                np.diff(indptr)[:, None] * 1.0
                + np.array([np.sum(part) for part in np.split(data, indptr[1:-1])])[:, None]
                for indptr, _, data in (
                    scorer.weights(rows),
                    scorer.proximities(rows),
                    scorer.weights(rows, leave_out=left_out[numbers]),
                )
            ),
        ]

    for a, b in zip(call(X, np.arange(300)), in_pieces(call, X, 1), strict=True):
        assert a.tobytes() == b.tobytes()
