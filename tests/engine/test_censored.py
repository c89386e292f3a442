"""Censored targets: Kaplan-Meier of the weights of a row against fractions, and what is refused."""

import pickle
from fractions import Fraction
from math import inf

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from hdicore import LeafIndex, OutOfBagScorer, Scorer

from ..oracle import as_forest, bag_counts, damaged, one_leaf_index
from .survival_twin import Survival, rounding_bound, weights_of

KINDS = ("hdi", "equal_tailed", "lower", "upper")
LEVELS = (Fraction(1, 10), Fraction(1, 2), Fraction(4, 5), Fraction(9, 10), Fraction(1))


def random_forest(rng):
    """Leaves, counts, times and events of training rows, and leaves of some rows to ask for."""
    n, n_trees, n_leaves = (int(rng.integers(*ends)) for ends in ((2, 60), (1, 12), (1, 8)))
    leaves = rng.integers(0, n_leaves, (n, n_trees))
    counts = None if rng.random() < 0.2 else rng.integers(0, rng.choice([2, 4]), (n, n_trees))
    times = rng.integers(0, int(rng.choice([3, 30])), n) / rng.choice([1, 2])
    event = rng.random(n) < rng.choice([0.1, 0.5, 0.9])
    event[rng.integers(n)] = True
    queries = rng.integers(-1, n_leaves, (3, n_trees))  # -1: a tree that does not contribute
    return leaves, counts, times, event, queries, [n_leaves] * n_trees


def made(rng, n_trees=7):
    """A forest whose rows tie, as random_forest, with many rows to ask for."""
    while True:
        leaves, counts, times, event, _, n_leaves = random_forest(rng)
        if leaves.shape[1] >= n_trees and counts is not None:
            queries = rng.integers(-1, n_leaves, (150, len(n_leaves)))
            return leaves, counts, times, event, queries, n_leaves


def answers(index, rows, **how):
    """All that a censored index answers, by question."""
    uniforms = np.tile(np.linspace(0, 0.999, 5), (len(rows), 1))
    points = np.tile([-1.0, 1.5, 2.0, 7.0, 1e9], (len(rows), 1))
    levels = [float(level) for level in LEVELS]
    found = {kind: index.intervals(rows, levels, kind, **how) for kind in KINDS}
    found["quantiles"] = index.quantiles(rows, [0, 0.25, 0.5, 0.75, 1], **how)
    found["cdf"] = index.cdf(rows, points, **how)
    found["cdf below"] = index.cdf(rows, points, inclusive=False, **how)
    found["draws"] = index.draws(rows, uniforms, **how)
    found["indptr"], found["indices"], found["data"] = index.weights(rows, **how)
    return found


def assert_same_bits(found, expected):
    assert found.keys() == expected.keys()
    for name in expected:
        assert found[name].tobytes() == expected[name].tobytes(), name


def steps_of(index, query, times):
    """P(T <= t) and P(T < t) of one row at each time."""
    both = [index.cdf([query], [times], inclusive=inclusive)[0] for inclusive in (True, False)]
    return np.transpose(both)


# The definition.


def test_random_forests_are_those_of_fractions():
    rng = np.random.default_rng(1)
    n_compared, n_not_reached, n_without, worst = 0, 0, 0, 0.0
    for _ in range(120):
        leaves, counts, times, event, queries, n_leaves = random_forest(rng)
        index = LeafIndex(leaves, times, event=event, counts=counts, n_leaves=n_leaves)
        levels = [float(level) for level in LEVELS]
        found = {kind: index.intervals(queries, levels, kind) for kind in KINDS}
        quantiles = index.quantiles(queries, [0.0, *levels])
        for row, query in enumerate(queries.tolist()):
            weights = weights_of(leaves.tolist(), query, counts)
            if not sum(weights):
                assert all(np.isnan(found[kind][row]).all() for kind in KINDS)
                assert np.isnan(quantiles[row]).all()
                n_without += 1
                continue
            twin = Survival.of(times.tolist(), event.tolist(), weights)
            at = sorted({*times.tolist(), -1.0, 0.25, 99.0})
            exact = [[twin.below(time), twin.below(time, inclusive=False)] for time in at]
            bound = rounding_bound(leaves.tolist(), query, counts, len(twin.times), index.shift)
            error = np.abs(steps_of(index, query, at) - np.array(exact, dtype=float)).max()
            worst = max(worst, error / float(bound))
            for kind in KINDS:
                expected = [getattr(twin, kind)(level) for level in LEVELS]
                np.testing.assert_array_equal(found[kind][row].T, expected, err_msg=kind)
            expected = [twin.quantile(level) for level in (Fraction(0), *LEVELS)]
            np.testing.assert_array_equal(quantiles[row], expected)
            assert found["lower"][row, 0].max() <= twin.horizon
            n_compared += 1
            n_not_reached += np.isinf(quantiles[row]).any()
    assert worst <= 1
    assert n_compared > 280
    assert min(n_not_reached, n_compared - n_not_reached) > 80
    assert n_without > 0


def test_weights_of_rows_may_be_any():
    rng = np.random.default_rng(2)
    for _ in range(40):
        leaves, counts, times, event, queries, n_leaves = random_forest(rng)
        weight = rng.choice([0.0, 0.1, 1.0, 2.5], len(times))
        if not (event & (weight > 0)).any():
            continue
        how = {"event": event, "counts": counts, "n_leaves": n_leaves}
        index = LeafIndex(leaves, times, sample_weight=weight, **how)
        of_rows = np.ones(leaves.shape) if counts is None else counts
        whole = np.round(10 * weight[:, None] * of_rows).astype(int)
        for query in queries.tolist():
            weights = weights_of(leaves.tolist(), query, whole)
            if not sum(weights):
                continue
            twin = Survival.of(times.tolist(), event.tolist(), weights)
            exact = [[twin.below(time), twin.below(time, inclusive=False)] for time in times]
            np.testing.assert_allclose(
                steps_of(index, query, times), np.array(exact, dtype=float), atol=1e-6
            )


def test_weights_are_those_of_pairs_of_time_and_event():
    leaves, counts, times, event, queries, n_leaves = made(np.random.default_rng(3))
    index = LeafIndex(leaves, times, event=event, counts=counts, n_leaves=n_leaves)
    atoms, events = index.atoms(), index.arrays()["events"]
    pairs = list(zip(atoms.tolist(), (events == 0).tolist(), strict=True))
    assert pairs == sorted({*zip(times.tolist(), (~event).tolist(), strict=True)})
    indptr, indices, data = index.weights(queries)
    for row, query in enumerate(queries.tolist()):
        expected = {}
        for weight, pair in zip(
            weights_of(leaves.tolist(), query, counts),
            zip(times.tolist(), (~event).tolist(), strict=True),
            strict=True,
        ):
            if weight:
                expected[pair] = expected.get(pair, 0) + float(weight)
        here = slice(*indptr[row : row + 2])
        assert [pairs[k] for k in indices[here]] == sorted(expected)
        np.testing.assert_allclose(data[here], [expected[p] for p in sorted(expected)], atol=1e-8)


def test_draws_are_quantiles_and_infinite_beyond():
    leaves, counts, times, event, queries, n_leaves = made(np.random.default_rng(4))
    index = LeafIndex(leaves, times, event=event, counts=counts, n_leaves=n_leaves)
    uniforms = np.random.default_rng(5).random((len(queries), 20))
    draws = index.draws(queries, uniforms)
    seen = ~np.isnan(draws).all(axis=1)
    reached = index.cdf(queries, np.full(len(queries), 1e9))
    np.testing.assert_array_equal(np.isinf(draws[seen]), (uniforms >= reached[:, None])[seen])
    for row in np.flatnonzero(seen):
        expected = index.quantiles(queries[[row]], uniforms[row])[0]
        np.testing.assert_array_equal(draws[row], expected)


def test_what_is_not_reached_is_infinite_and_lower_ends_are_not():
    index = one_leaf_index([1.0, 2.0, 3.0, 4.0], event=[True, False, False, False])
    assert index.quantiles([[0]], [0.25, 0.26, 1.0]).tolist() == [[1.0, inf, inf]]
    for kind in ("hdi", "equal_tailed", "lower"):
        lower, upper = index.intervals([[0]], [0.1, 0.5, 0.75, 0.9, 1.0], kind)[0]
        assert np.isfinite(lower).all()
        assert lower.max() <= 4.0
        assert np.isinf(upper[1:]).all()
    assert index.intervals([[0]], [0.75, 0.76], "lower")[0, 0].tolist() == [4.0, 1.0]
    assert index.cdf([[0]], [[0.5, 1.0, 99.0]]).tolist() == [[0.0, 0.25, 0.25]]


def test_an_event_one_step_after_a_censored_row_is_after_it():
    after = np.nextafter(1.0, 2.0)
    index = one_leaf_index([1.0, 1.0, after], event=[False, True, True])
    np.testing.assert_allclose(index.cdf([[0]], [[1.0, after]]), [[1 / 3, 1.0]], atol=1e-8)


def test_zeros_of_both_signs_are_one_time():
    index = one_leaf_index([0.0, -0.0, -0.0, 0.0], event=[True, False, True, False])
    assert index.atoms().tolist() == [0.0, 0.0]
    assert index.arrays()["events"].tolist() == [1, 0]


# All rows events.


def test_without_censored_rows_all_answers_are_those_of_an_index_without_event():
    rng = np.random.default_rng(6)
    for _ in range(40):
        leaves, counts, times, _, queries, n_leaves = random_forest(rng)
        how = {"counts": counts, "n_leaves": n_leaves}
        plain = LeafIndex(leaves, times, **how)
        index = LeafIndex(leaves, times, event=np.ones(len(times), bool), **how)
        assert index.censored
        assert not plain.censored
        found, expected = answers(index, queries), answers(plain, queries)
        for name in expected:
            if name in ("cdf", "cdf below"):
                np.testing.assert_allclose(found[name], expected[name], atol=1e-7)
            else:
                np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


# The same bits.


def grown():
    """A forest on features with its draws, times that tie, events, and rows."""
    rng = np.random.default_rng(8)
    X = rng.random((400, 3), dtype=np.float32)
    time = np.ceil(8 * rng.exponential(1 + X[:, 0])) / 8
    event = rng.random(len(X)) < 0.5
    trees = ExtraTreesRegressor(20, min_samples_leaf=4, bootstrap=True, random_state=0)
    trees.fit(X, time)
    return as_forest(trees), X, time, event, bag_counts(trees, len(X))


@pytest.mark.parametrize("options", [{}, {"max_samples_leaf": 3, "seed": 5}])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_way_to_build_gives_every_bit(options, weighted):
    forest, X, time, event, counts = grown()
    leaves = forest.leaves(X)
    weight = np.random.default_rng(10).random(len(X)) if weighted else None
    options = options | {"event": event, "sample_weight": weight}
    index = LeafIndex(leaves, time, counts=counts, n_leaves=forest.n_leaves, **options)

    def blocks():
        for first in range(0, leaves.shape[1], 6):
            trees = slice(first, first + 6)
            yield np.asfortranarray(leaves[:, trees]), counts[:, trees]

    others = [
        LeafIndex.from_blocks(blocks, time, forest.n_leaves, n_threads=2, **options),
        LeafIndex.from_leaves(leaves, time, counts=counts, n_threads=3, **options),
    ]
    rows = forest.leaves(np.random.default_rng(11).random((60, 3)))
    assert_same_bits(others[0].arrays(), index.arrays())
    for other in others:
        assert_same_bits(answers(other, rows), answers(index, rows))


# What is refused.


SMALL = {"leaves": [[0, 0], [0, 1], [1, 0]], "y": [1.0, 2.0, 3.0], "event": [True, False, True]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"event": [False] * 3}, "all rows are censored"),
        ({"event": [True, False]}, "event"),
        ({"event": [[True], [False], [True]]}, "event"),
        ({"event": [1, 0, 1]}, "event must be an array of booleans, got dtype int64"),
        ({"event": [1.0, 0.0, 1.0]}, "event must be an array of booleans, got dtype float64"),
        ({"y": [1.0, np.inf, 3.0]}, r"y\[1\] is not finite"),
        ({"y": [[1.0, 2.0], [2.0, 3.0], [4.0, 5.0]]}, "event needs one output"),
        ({"pooled": True}, "event needs one output, not pooled"),
        ({"keep_row_weights": True}, "event must not be given with keep_row_weights"),
    ],
)
def test_training_rows_that_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        LeafIndex(**SMALL | change)
    with pytest.raises(ValueError, match=message):
        LeafIndex.from_leaves(**SMALL | change)
    blocks = SMALL | change
    leaves = blocks.pop("leaves")
    with pytest.raises(ValueError, match=message):
        LeafIndex.from_blocks([(np.array(leaves), None)], n_leaves=[2, 2], **blocks)


MEAN = "the mean of censored targets is not known"
PRICED = "no priced intervals and no regions"
METHOD = "quantiles of censored targets are those of method 'inverted_cdf'"


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda each, rows: each.mean(rows), MEAN),
        (lambda each, rows: each.intervals(rows, mean=np.empty(len(rows))), MEAN),
        (lambda each, rows: each.priced_intervals(rows, [0.1]), PRICED),
        (lambda each, rows: each.regions(rows, 0.8), PRICED),
        (lambda each, rows: each.quantiles(rows, 0.5, "linear"), METHOD),
        (lambda each, rows: each.quantiles(rows, 0.5, "averaged_inverted_cdf"), METHOD),
        (lambda each, rows: each.quantiles(rows, 0.5, "closest_observation"), METHOD),
        (
            lambda each, rows: each.spread_and_mass(rows, np.zeros((len(rows), 2))),
            "leaves of censored targets have no mean to spread",
        ),
        (lambda each, rows: each.intervals(rows, leave_out=np.zeros(len(rows), int)), "leave_out"),
    ],
)
def test_questions_without_an_answer_are_refused(ask, message):
    forest, X, time, event, _ = grown()
    index = LeafIndex(forest.leaves(X), time, event=event, n_leaves=forest.n_leaves)
    scorer = Scorer(forest, index)
    for n_rows in (1, 30):
        with pytest.raises(ValueError, match=message):
            ask(index, forest.leaves(X[:n_rows]))
        if "spread" in message:
            continue  # a question to leaves alone
        with pytest.raises(ValueError, match=message):
            ask(scorer, X[:n_rows])


# Arrays and files.


def test_arrays_and_pickles_give_the_index_again():
    leaves, counts, times, event, queries, n_leaves = made(np.random.default_rng(12))
    index = LeafIndex(leaves, times, event=event, counts=counts, n_leaves=n_leaves)
    arrays = index.arrays()
    assert arrays["events"].dtype == np.uint8
    assert len(arrays["events"]) == len(arrays["atoms"])
    assert "events" not in LeafIndex(leaves, times, n_leaves=n_leaves).arrays()
    copies = [pickle.loads(pickle.dumps(index, protocol)) for protocol in (2, 5)]
    for copy in (False, True):
        for lazy in (False, True):
            copies.append(LeafIndex.from_arrays(arrays, True, copy=copy, lazy=lazy))
    expected = answers(index, queries)
    few = answers(index, queries[:2])
    for again in copies:
        assert again.censored
        assert again.nbytes == index.nbytes
        assert_same_bits(answers(again, queries[:2]), few)  # a lazy one checks few leaves first
        assert_same_bits(answers(again, queries), expected)
        assert_same_bits(again.arrays(), arrays)


@pytest.mark.parametrize("lazy", [False, True])
def test_damaged_events_are_refused(lazy):
    index = one_leaf_index([1.0, 1.0, 2.0, 3.0], event=[True, False, False, True])
    whole = index.arrays()
    assert whole["events"].tolist() == [1, 0, 0, 1]
    for events in ([1, 0, 0], [1, 0, 0, 1, 1], [1, 0, 0, 2], [255, 0, 0, 1], [0] * 4, []):
        with pytest.raises(ValueError, match="events is damaged"):
            LeafIndex.from_arrays(whole | {"events": np.array(events, np.uint8)}, True, lazy=lazy)
    out_of_order = {
        "events": np.array([0, 1, 0, 1], np.uint8),  # censored before events
        "atoms": np.array([1.0, 2.0, 2.0, 3.0]),  # twice censored
    }
    for name, array in out_of_order.items():
        with pytest.raises(ValueError, match="atoms is damaged"):
            LeafIndex.from_arrays(whole | {name: array}, True, lazy=lazy)
    for atoms in ([1.0, 0.5, 2.0, 3.0], [1.0, 1.0, np.nan, 3.0], [1.0, 1.0, 2.0, np.inf]):
        with pytest.raises(ValueError, match="atoms is damaged"):
            LeafIndex.from_arrays(whole | {"atoms": np.array(atoms)}, True, lazy=lazy)
    with pytest.raises(ValueError, match="atoms is damaged"):  # times that are not pairs
        LeafIndex.from_arrays({k: whole[k] for k in whole.keys() - {"events"}}, True, lazy=lazy)
    with pytest.raises(ValueError, match="events must have dtype"):
        LeafIndex.from_arrays(whole | {"events": np.ones(4)}, True, lazy=lazy)


def test_events_of_several_outputs_or_pooled_leaves_are_refused():
    several = LeafIndex([[0], [0]], [[1.0, 2.0], [3.0, 4.0]])
    pooled = LeafIndex([[0], [0]], [1.0, 2.0], pooled=True)
    for index in (several, pooled):
        events = np.ones(len(index.arrays()["atoms"]), np.uint8)
        with pytest.raises(ValueError, match="events is damaged"):
            LeafIndex.from_arrays(index.arrays() | {"events": events}, index.scalar_output)


def test_hundreds_of_damaged_arrays_are_refused_or_score_safely():
    rng = np.random.default_rng(13)
    leaves, counts, times, event, _, n_leaves = made(rng)
    index = LeafIndex(leaves, times, event=event, counts=counts, n_leaves=n_leaves)
    refused = 0
    for _ in range(600):
        arrays = damaged(rng, index.arrays())
        try:
            other = LeafIndex.from_arrays(arrays, True, lazy=bool(rng.integers(2)))
            queries = rng.integers(0, other.n_leaves, (6, other.n_trees))
            found = answers(other, queries, n_threads=1)  # which checks the leaves of a lazy one
        except ValueError:
            refused += 1
            continue
        for kind in KINDS:
            lower, upper = np.moveaxis(found[kind], -2, 0)
            assert np.all((lower <= upper) | np.isnan(lower))
    assert 200 < refused < 600


def test_an_out_of_bag_scorer_takes_no_censored_index():
    forest, X, time, event, counts = grown()
    index = LeafIndex(forest.leaves(X), time, event=event, counts=counts, n_leaves=forest.n_leaves)
    with pytest.raises(ValueError, match="index must not be of censored targets"):
        OutOfBagScorer(index, forest.leaves(X), counts, time)
