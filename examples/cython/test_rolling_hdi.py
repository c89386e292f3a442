"""The loop in Cython gives what hdicore gives for each window."""

import numpy as np
import pytest
from rolling_hdi import rolling_hdi

import hdicore

SERIES = np.cumsum(np.random.default_rng(0).normal(size=500))
WINDOWS = np.lib.stride_tricks.sliding_window_view(SERIES, 50)


@pytest.mark.parametrize("coverage", [0.5, 0.9, 1.0])
def test_each_interval_is_that_of_its_window(coverage):
    expected = hdicore.weighted_hdi(WINDOWS, coverage=coverage)
    np.testing.assert_array_equal(rolling_hdi(SERIES, 50, coverage), expected)


def test_recent_values_weigh_more():
    weights = np.broadcast_to(0.5 ** (np.arange(49, -1, -1) / 10), WINDOWS.shape)
    expected = hdicore.weighted_hdi(WINDOWS, weights)
    np.testing.assert_array_equal(rolling_hdi(SERIES, 50, half_life=10), expected)


def test_bad_arguments_are_refused():
    for window in (-1, 0, 501):
        with pytest.raises(ValueError, match=f"window must be in 1 to 500, got {window}"):
            rolling_hdi(SERIES, window)
    with pytest.raises(ValueError, match=r"coverages must lie in \(0, 1\], got 90"):
        rolling_hdi(SERIES, 50, 90)
    with pytest.raises(ValueError, match="values must be finite, got nan"):
        rolling_hdi([1.0, np.nan], 2)
