"""Regions as offsets and ends: what they hold, how far targets are, and what padding leaves."""

import numpy as np
import pytest

from hdicore.regions import Regions

SOME = Regions([0, 2, 2, 3], [0.0, 5.0, -1.0], [1.0, 7.0, -1.0])


def test_they_read_as_a_list_of_arrays():
    assert len(SOME) == 3
    np.testing.assert_array_equal(SOME[0], [[0, 1], [5, 7]])
    np.testing.assert_array_equal(SOME[-1], [[-1, -1]])
    assert SOME[1].shape == (0, 2)
    assert [len(pieces) for pieces in SOME] == SOME.n_pieces.tolist() == [2, 0, 1]
    np.testing.assert_array_equal(SOME.length, [3, np.nan, 0])
    assert repr(SOME) == "Regions(3 rows, 3 pieces)"
    with pytest.raises(IndexError):
        SOME[3]


def test_what_they_hold_and_how_far_targets_are():
    for y, distance in ((0.25, -0.25), (6.5, -0.5), (1.0, 0.0), (2.0, 1.0), (4.5, 0.5), (-3, 3)):
        np.testing.assert_array_equal(SOME.distance([y, 0, -1]), [distance, np.nan, 0])
        assert SOME.contains([y, 0, -1]).tolist() == [distance <= 0, False, True]


@pytest.mark.parametrize("seed", range(12))
def test_padding_is_all_values_within_a_distance(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 5, 15)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    pieces = [np.sort(rng.choice(60, 2 * k, replace=False)).reshape(k, 2) for k in counts]
    ends = np.concatenate(pieces).astype(float)
    regions = Regions(offsets, ends[:, 0], ends[:, 1])
    by = float(rng.choice([-40.0, -2.5, -0.5, 0.0, 0.5, 3.0, np.inf]))
    padded = regions.padded(by)
    np.testing.assert_array_equal(padded.n_pieces == 0, counts == 0)
    places = np.arange(-10, 70, 0.25)
    for i, own in enumerate(regions):
        if counts[i] == 0:
            continue
        inside = [((own[:, 0] - by <= y) & (y <= own[:, 1] + by)).any() for y in places]
        found = [((padded[i][:, 0] <= y) & (y <= padded[i][:, 1])).any() for y in places]
        if any(inside):
            assert found == inside
        else:  # nothing is left: the middle of the longest piece stays, the first of several
            longest = own[np.argmax(own[:, 1] - own[:, 0])]
            np.testing.assert_array_equal(padded[i], [[longest.mean()] * 2])
        assert (np.diff(padded[i].ravel()) >= 0).all()
        assert (padded[i][1:, 0] > padded[i][:-1, 1]).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [1.0, 2.0], [2.0, 3.0]), "offsets must be from 0 to 2, the number of pieces"),
        (([], [], []), "offsets must be from 0 to 0"),
        (([0, 2, 1, 2], [1.0, 2.0], [2.0, 3.0]), "offsets must not descend"),
        (([0, 1], [1.0], [2.0, 3.0]), r"must have shape \(m,\), got \(1,\) and \(2,\)"),
    ],
)
def test_arrays_that_do_not_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        Regions(*arguments)


def test_targets_of_another_number():
    with pytest.raises(ValueError, match=r"y must have shape \(3,\), got \(2,\)"):
        SOME.contains([1.0, 2.0])


def test_hulls_and_some_of_the_rows():
    np.testing.assert_array_equal(SOME.hull, [[0, 7], [np.nan, np.nan], [-1, -1]])
    some = SOME.take([2, -3, 1, 0])
    first, last = [[0, 1], [5, 7]], [[-1, -1]]
    assert [pieces.tolist() for pieces in some] == [last, first, [], first]
    assert len(SOME.take([])) == 0
    with pytest.raises(IndexError):
        SOME.take([3])
