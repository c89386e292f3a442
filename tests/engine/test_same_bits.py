"""Answers have the same bits by every door, thread, block, neighbour, instruction and order.

Rows that are equal, or have the same leaves, are scored once, but answered each.
"""

import functools
import itertools

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import hdicore
from hdicore import LeafIndex, Scorer

from ..oracle import answers_by_instructions, as_forest

RNG = np.random.default_rng(0)
KINDS = tuple(hdicore.kinds())


def draw_rows(kind, n=300):
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


ROWS = ("many equal", "all equal", "none equal", "missing", "zeros", "equal as float32")
ONE_OUTPUT = ("small leaves", "large leaves", "ties")
SCORERS = (*ONE_OUTPUT, "several outputs", "censored")


@functools.cache
def make(name):
    """A scorer, and what its index is made of."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 4, (900, 3)).astype(np.float32)
    y = X @ [3.0, 2, 1] + rng.normal(size=900)
    if name == "ties":
        y = y.round()
    if name == "several outputs":
        y = np.stack([y, -2 * y, rng.normal(size=900)], 1)
    least = 60 if name == "large leaves" else 2
    forest = as_forest(RandomForestRegressor(11, min_samples_leaf=least, random_state=0).fit(X, y))
    options = {"n_leaves": forest.n_leaves, "keep_row_weights": True}
    if name == "censored":
        options = {"n_leaves": forest.n_leaves, "event": rng.random(900) < 0.6}
    leaves = forest.leaves(X)
    return Scorer(forest, LeafIndex(leaves, y, **options)), {"leaves": leaves, "y": y} | options


@pytest.fixture(params=SCORERS)
def scorer(request):
    return make(request.param)[0]


def answers(scorer, rows, numbers, **how):
    """What is asked of rows, of which `numbers` decide what depends on the row."""
    index = getattr(scorer, "index", scorer)
    outputs = (3,) if index.n_outputs == 3 else ()
    shares = (numbers % 97 / 97)[(...,) + (None,) * len(outputs)] + np.zeros(outputs)
    kinds = ["hdi", "equal_tailed", "lower"]
    found = [
        scorer.intervals(rows, [0.9, 0.5, 0.8], kinds, **how),
        scorer.intervals(rows, 0.9, **how),
        scorer.quantiles(rows, [0.1, 0.5], **how),
        scorer.cdf(rows, 12 * shares, **how),
        scorer.draws(rows, shares, **how),
    ]
    if index.censored:
        return found
    mean = np.empty((len(rows), *outputs))
    found += [
        scorer.intervals(rows, [0.9, 0.5, 0.8], kinds, mean=mean, **how),
        mean,
        scorer.mean(rows, **how),
        scorer.quantiles(rows, [0.1, 0.5], "linear", **how),
        *scorer.priced_intervals(rows, [0.5, 2.0], **how),
        *scorer.priced_intervals(rows, [0.5, 20.0], 0.8, **how),
        scorer.n_samples(rows, **how),
    ]
    for grid in (None, (-5.0, 20.0, 50, 0.7)):
        offsets, ends, bounds = scorer.regions(rows, 0.8, 3, grid=grid, **how)
        found += [np.diff(offsets), ends, bounds]
    if not outputs:
        centres = np.random.default_rng(5).normal(size=sum(index.n_leaves))
        found.append(scorer.intervals(rows, 0.9, centres=centres, **how))
    return found


def assert_same(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert a.tobytes() == b.tobytes()


def in_pieces(call, rows, n=10):
    """The same of n rows at a time, of which none are looked for that are equal."""
    numbers = np.arange(len(rows))
    pieces = [call(rows[k : k + n], numbers[k : k + n]) for k in range(0, len(rows), n)]
    return [np.concatenate(parts) for parts in zip(*pieces, strict=True)]


@pytest.mark.parametrize("kind", ROWS)
def test_rows_have_the_answers_that_they_have_alone(scorer, kind, set_block_rows):
    X = draw_rows(kind)
    leaves = scorer.forest.leaves(X)
    leaves[RNG.random(leaves.shape) < 0.001] = -1
    for asked, rows in ((scorer, X), (scorer.index, leaves)):
        alone = 1 if kind == "none equal" else 10
        expected = in_pieces(lambda r, k, a=asked: answers(a, r, k, n_threads=1), rows, alone)
        for n_threads, block_rows in ((1, 0), (3, 0), (1, 17), (3, 100), (0, 10**18)):
            set_block_rows(block_rows)
            assert_same(answers(asked, rows, np.arange(len(rows)), n_threads=n_threads), expected)
        set_block_rows(0)


def test_leaves_in_any_order_of_the_trees_are_answered_as_rows(scorer, request):
    """The centre of a row alone is a sum in the order of the trees."""
    name = request.node.callspec.params["scorer"]
    X, numbers, order = draw_rows("none equal", 200), np.arange(200), RNG.permutation(11)
    leaves, made = scorer.forest.leaves(X), make(name)[1]
    expected = answers(scorer, X, numbers)
    assert_same(answers(scorer.index, leaves, numbers), expected)
    changed = {"leaves": made["leaves"][:, order], "n_leaves": made["n_leaves"][order]}
    found = answers(LeafIndex(**made | changed), leaves[:, order], numbers)
    n = len(found) - (name in ONE_OUTPUT)
    assert_same(found[:n], expected[:n])


@pytest.mark.parametrize("name", ONE_OUTPUT)
def test_what_depends_on_the_row_is_its_own(name):
    """Rows left out, weights, spread and mass."""
    scorer = make(name)[0]
    X = draw_rows("none equal", 150)
    X[50:] = draw_rows("many equal", 100)
    left_out = RNG.integers(0, 900, 150)

    def call(rows, numbers):
        ends = np.stack([numbers % 7, numbers % 7 + numbers % 5], 1).astype(float)
        leaves, out = scorer.forest.leaves(rows), {"leave_out": left_out[numbers]}
        spread, mass = scorer.index.spread_and_mass(leaves, ends)
        found = [spread, mass]
        for asked, each in ((scorer, rows), (scorer.index, leaves)):
            priced, units = asked.priced_intervals(each, [0.5, 20.0], 0.2, **out)
            offsets, *regions = asked.regions(each, 0.8, **out)
            found += [asked.intervals(each, [0.9, 0.5], ["hdi", "equal_tailed"], **out)]
            found += [asked.mean(each, **out), priced, units, np.diff(offsets), *regions]
        n = len(found) // 2 + 1
        assert_same(found[2:n], found[n:])
        full = scorer.intervals(rows, [0.9, 0.5], ["hdi", "equal_tailed"])
        assert len(rows) == 1 or (found[2] != full).any()
        for indptr, _, data in (
            scorer.weights(rows),
            scorer.proximities(rows),
            scorer.weights(rows, **out),
        ):
            sums = np.array([np.sum(part) for part in np.split(data, indptr[1:-1])])
            found.append(np.diff(indptr) * 1.0 + sums)
        return found

    assert_same(call(X, np.arange(150)), in_pieces(call, X, 1))


def test_a_kind_for_each_coverage_equals_separate_calls(scorer):
    """Beside other levels more is gathered, and all of it beside the mean."""
    X = draw_rows("none equal", 50)
    kinds = [kind for kind in KINDS if kind != "averaged" or not scorer.index.censored]
    alone = {
        (level, kind): scorer.intervals(X, level, kind)
        for level, kind in itertools.product((0.9, 0.4, 1.0), kinds)
    }
    for chosen in itertools.product(kinds, repeat=3):
        together = scorer.intervals(X, (0.9, 0.4, 1.0), list(chosen))
        for k, (level, kind) in enumerate(zip((0.9, 0.4, 1.0), chosen, strict=True)):
            assert together[..., k].tobytes() == alone[level, kind].tobytes()
    levels = [0.0, 0.01, 0.1, 0.5, 0.95, 1.0]
    together = scorer.quantiles(X, levels)
    for k, level in enumerate(levels):
        assert scorer.quantiles(X, level).tobytes() == together[..., k].tobytes()


OF_INSTRUCTIONS = """
import hashlib
import numpy as np
from hdicore import LeafIndex

rng = np.random.default_rng(0)
found = []
for n_leaves in (500, 60, 4):
    leaves = rng.integers(0, n_leaves, (4000, 12))
    index = LeafIndex(leaves, rng.normal(size=4000))
    found += [index.intervals(leaves[:700], level) for level in (0.7, 0.9, 0.99)]
    for least in (0.0, 0.5, 0.9):
        found += index.priced_intervals(leaves[:300], np.geomspace(0.1, 100, 13), least)
    for k, grid in ((1, None), (2, None), (8, None), (2, (-3, 3, 100, 0.1)), (3, (-3, 3, 50, 0))):
        found += index.regions(leaves[:100], 0.8, k, 0.01, grid=grid)
leaves = rng.integers(0, 9, (300, 40))
index = LeafIndex(leaves, rng.integers(0, 90, 300), event=rng.random(300) < 0.6)
found += [index.intervals(leaves, [0.5, 0.8, 1], kind) for kind in ("hdi", "equal_tailed", "lower")]
found.append(index.cdf(leaves, np.tile(np.arange(90.0), (300, 1))))
print(hashlib.sha256(b"".join(map(np.ndarray.tobytes, found))).hexdigest())
"""


def test_no_bit_depends_on_the_instructions():
    assert len(answers_by_instructions(OF_INSTRUCTIONS)) == 1
