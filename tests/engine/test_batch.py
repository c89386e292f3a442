"""Batches at one price: exact answers, hulls, the certified bound, streams, limits."""

import re
from itertools import product

import numpy as np
import pytest

from hdicore import LeafIndex, batch
from hdicore.batch import Reading, Sums, find_rule, predict_batch

# Values and weights, 10 in all, of three rows.
ROWS = [([0, 1, 2, 3], [4, 3, 2, 1]), ([0, 5, 6, 10], [1, 5, 3, 1]), ([0, 2, 9, 30], [2, 5, 2, 1])]


def index_of(rows):
    """One tree with a leaf for each row, and the leaves of the rows."""
    values = np.concatenate([values for values, _ in rows]).astype(float)
    weights = np.concatenate([weights for _, weights in rows]).astype(float)
    leaves = np.repeat(np.arange(len(rows)), [len(values) for values, _ in rows])[:, None]
    return LeafIndex(leaves, values, sample_weight=weights), np.arange(len(rows))[:, None]


def random_rows(rng):
    """One to four rows of five atoms and a mass of 20 each."""
    cuts = [
        np.sort(rng.choice(np.arange(1, 20), 4, replace=False)) for _ in range(rng.integers(1, 5))
    ]
    return [
        (np.cumsum(rng.integers(1, 9, 5)).tolist(), np.diff([0, *cut, 20]).tolist()) for cut in cuts
    ]


def intervals_of(values, weights, least):
    """Mass and width of each interval between atoms that holds `least`."""
    up_to = np.cumsum([0, *weights]).tolist()
    pairs = [(i, j) for i in range(len(values)) for j in range(i, len(values))]
    found = [(up_to[j + 1] - up_to[i], values[j] - values[i]) for i, j in pairs]
    return [each for each in found if each[0] >= least]


def exact(rows, target, least):
    """Least total width, of all combinations of the rows' intervals."""
    best = []
    for row in rows:
        of_mass = {}
        for mass, width in intervals_of(*row, least):
            of_mass[mass] = min(width, of_mass.get(mass, np.inf))
        best.append(list(of_mass.items()))
    together = (list(zip(*pick, strict=True)) for pick in product(*best))
    return min(sum(widths) for masses, widths in together if sum(masses) >= target)


@pytest.mark.parametrize(
    ("least", "total", "bound", "ends"),
    [
        (0.0, 6, 5, [(0, 3), (5, 6), (0, 2)]),
        (0.7, 5, 5, [(0, 2), (5, 6), (0, 2)]),
    ],
)
def test_three_rows_that_hold_24_of_30(least, total, bound, ends):
    found = predict_batch(*index_of(ROWS), 0.8, least)
    np.testing.assert_array_equal(found.interval, ends)
    assert found.total_width == total
    assert found.bound == pytest.approx(bound, abs=1e-6)
    assert found.bound <= exact(ROWS, 24, 10 * least) <= total
    assert found.price == pytest.approx(10)  # 1 for each tenth; of the segment that was cut
    assert found.mass.mean() >= 0.8 - 1e-9


@pytest.mark.filterwarnings("ignore:min_coverage=.* alone holds")
def test_bound_and_total_enclose_the_exact_answer():
    rng = np.random.default_rng(0)
    for _ in range(15):
        rows = random_rows(rng)
        least, n = int(rng.choice([0, 6, 10])), len(rows)
        target = int(np.ceil(rng.uniform(0.5, 0.99) * 20 * n))
        index, leaves = index_of(rows)
        coverage = min(target / (20 * n), 1 - 1e-9)
        found = predict_batch(index, leaves, coverage, least / 20)
        optimum = exact(rows, target, least)
        assert found.bound <= optimum <= found.total_width
        assert found.mass.mean() >= coverage - 1e-9
        assert found.mass.min() >= least / 20 - 1e-9
        widths = found.interval[:, 1] - found.interval[:, 0]
        assert widths.sum() == found.total_width


def stream(index, parts, coverage, least):
    """Intervals and shares of rows that come in parts."""

    def read(part, prices):
        return Reading.of(index, part, prices, least, 1)

    rule = find_rule(
        lambda prices: [Sums.read(index, part, prices, least, 1) for part in parts],
        index,
        coverage,
        least,
    )
    found = [
        rule.choose(read(part, rule.prices), missing)[:2]
        for part, missing in zip(parts, rule.missing, strict=True)
    ]
    return rule, *map(np.concatenate, zip(*found, strict=True))


def test_streams_have_the_total_of_the_batch_to_within_a_row():
    rng = np.random.default_rng(1)
    rows = [(np.cumsum(rng.integers(1, 9, 6)).tolist(), [4, 1, 5, 2, 3, 5]) for _ in range(400)]
    index, leaves = index_of(rows)
    for least in (0.0, 0.5):
        whole = predict_batch(index, leaves, 0.9, least)
        for parts in ([leaves], [leaves[:100], leaves[100:]], np.array_split(leaves, 7)):
            rule, ends, shares = stream(index, parts, 0.9, least)
            widths = ends[:, 1] - ends[:, 0]
            assert abs(widths.sum() - whole.total_width) <= widths.max()
            assert rule.bound <= widths.sum()
            assert shares.mean() >= 0.9 - 1e-9
            assert shares.sum() - 0.9 * 400 < 1  # no more than one row too many
    again = stream(index, [leaves[300:], leaves[:300]], 0.9, 0.0)[0]
    np.testing.assert_array_equal(again.prices, stream(index, [leaves], 0.9, 0.0)[0].prices)


def test_equal_rows_take_the_dear_interval_in_their_order():
    index, leaves = index_of(ROWS[:1])
    found = predict_batch(index, np.repeat(leaves, 10, axis=0), 0.85, 0.0)
    assert found.total_width == pytest.approx(found.bound, abs=1)
    widths = np.diff(found.interval)[:, 0]
    assert (np.diff(widths) <= 0).all()


def test_one_row_gets_its_shortest_interval():
    index, leaves = index_of(ROWS[2:])
    found = predict_batch(index, leaves, 0.8, 0.5)
    np.testing.assert_array_equal(found.interval, index.intervals(leaves, 0.8))
    assert found.bound <= found.total_width


def test_the_last_row_holds_no_more_than_the_others_leave_it():
    found = predict_batch(*index_of([([0, 3, 4], [5, 1, 4])] * 2), 0.79, 0.0)
    np.testing.assert_array_equal(found.interval, [(0, 4), (0, 3)])  # 1.0 and 0.6 for 0.79 each


def test_rows_without_a_distribution_do_not_count():
    index, leaves = index_of(ROWS)
    with_empty = np.concatenate([[[-1]], leaves])
    found = predict_batch(index, with_empty, 0.8, 0.7)
    assert np.isnan(found.interval[0]).all()
    assert np.isnan(found.mass[0])
    assert found.total_width == 5
    for none in (with_empty[:1], leaves[:0]):
        found = predict_batch(index, none, 0.8, 0.7)
        assert found.interval.shape == (len(none), 2)
        assert (found.total_width, found.bound) == (0, 0)


def test_a_floor_that_holds_enough_gives_the_shortest_intervals_that_hold_it():
    index, leaves = index_of(ROWS)
    says = r"min_coverage=0\.7 alone holds 0\.\d+ on average, more than coverage=0\.5"
    with pytest.warns(UserWarning, match=says):
        found = predict_batch(index, leaves, 0.5, 0.7)
    np.testing.assert_array_equal(found.interval, index.intervals(leaves, 0.7))
    assert found.bound == pytest.approx(found.total_width, abs=1e-5)
    with pytest.warns(UserWarning, match=says):
        find_rule(lambda prices: [Sums.read(index, leaves, prices, 0.7)], index, 0.5, 0.7)


def test_targets_that_are_all_equal():
    index, leaves = index_of([([3, 3], [1, 1])])
    found = predict_batch(index, leaves, 0.9, 0.5)
    assert (found.total_width, found.bound) == (0, 0)


def test_blocks_and_threads_change_nothing(monkeypatch):
    rng = np.random.default_rng(3)
    rows = [(np.cumsum(rng.integers(1, 9, 6)).tolist(), [4, 1, 5, 2, 3, 5]) for _ in range(50)]
    index, leaves = index_of(rows)
    whole = predict_batch(index, leaves, 0.8, n_threads=1)
    monkeypatch.setattr(batch, "_ROWS_AT_ONCE", 7)
    in_blocks = predict_batch(index, leaves, 0.8, n_threads=2)
    for one, other in zip(whole, in_blocks, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    np.testing.assert_array_equal(whole.interval, in_blocks.interval)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coverage": 0}, "coverage must be a number above 0 and below 1, got 0"),
        ({"coverage": np.nan}, "coverage must be a number above 0 and below 1, got nan"),
        ({"coverage": [0.5, 0.9]}, "coverage must be a number above 0 and below 1"),
        ({"min_coverage": 1}, "min_coverage must be a number from 0 on and below 1, got 1"),
        ({"min_coverage": -0.1}, "min_coverage must be a number from 0 on and below 1, got -0.1"),
        ({"rows": np.zeros((2, 3), int)}, "leaves must have shape"),
    ],
)
def test_bad_arguments(options, message):
    index, leaves = index_of(ROWS)
    with pytest.raises(ValueError, match=re.escape(message)):
        predict_batch(index, **({"rows": leaves} | options))
    if "rows" not in options:
        with pytest.raises(ValueError, match=re.escape(message)):
            find_rule(lambda _: [], index, **options)


def test_several_targets_and_too_wide_or_narrow_a_range_are_refused():
    leaves = np.zeros((2, 1), int)
    several = LeafIndex(leaves, np.array([[0.0, 1.0], [2.0, 3.0]]))
    with pytest.raises(ValueError, match="source must be of one target, got 2"):
        predict_batch(several, leaves)
    for ends in ([-1e300, 1e308], [-1e308, 1e308], [0, 3e-320], [0, 5e-324], [1e-290, 2e-290]):
        with pytest.raises(ValueError, match=re.escape("range from 2**-900 to 2**900, or of 0")):
            predict_batch(LeafIndex(leaves, np.array(ends)), leaves)
