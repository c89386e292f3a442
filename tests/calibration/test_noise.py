"""Coverage of new rows where candidates are noise, so that nothing can be learnt of them."""

import numpy as np
import pytest

from hdiforest.metrics import coverage_score

from .rows import calibrate_oob
from .twin import BASES, GROUPS, OF_QUANTILES

COVERAGES = (0.5, 0.9)
N_NEW = 1000


def noise(rng, n):
    """Ends by all bases and quantiles, each with its own noise in middle and width, and targets."""
    levels = np.array([base.level for base in BASES])
    middle = 0.5 * rng.normal(size=(n, len(BASES)))
    half = rng.uniform(0.4, 1.6, (n, len(BASES))) * levels
    shifts = 2 * np.array(OF_QUANTILES) - 1
    quantiles = {group: 0.5 * rng.normal(size=(n, 1)) + 2 * shifts for group in GROUPS}
    return np.stack([middle - half, middle + half], axis=1), quantiles, rng.standard_t(4, n)


def share_of_new(calibration, rng):
    """Coverage of new rows, for each level."""
    ends, _, y = noise(rng, N_NEW)
    intervals = calibration.intervals(ends[..., [BASES.index(b) for b in calibration.bases]])
    return coverage_score(y, intervals)


def mean_and_error(values):
    return np.mean(values, axis=0), np.std(values, axis=0, ddof=1) / np.sqrt(len(values))


# How much less than asked new rows may be covered on average, where the best of 3 distributions and
# 3 levels was selected by their noise: nothing below 500 rows, which compare no levels.
@pytest.mark.parametrize(
    ("n", "n_times", "optimism"), [(300, 200, 0), (600, 100, 0.015), (2000, 40, 0.01)]
)
def test_the_optimism_of_a_selection_shows_in_the_cross_check(n, n_times, optimism):
    """Halves of the rows select, so that the cross-check is the more careful figure."""
    rng = np.random.default_rng(n)
    shares, checked = [], []
    for _ in range(n_times):
        ends, quantiles, y = noise(rng, n)
        found = calibrate_oob(ends, y, [-9, 9], COVERAGES, quantiles=quantiles)
        assert all(level.realised >= level.coverage for level in found.levels)
        shares.append(share_of_new(found, rng))
        checked.append([level.cross_check.coverage for level in found.levels])
    (mean, error), (mean_checked, error_checked) = map(mean_and_error, (shares, checked))
    assert (mean > np.array(COVERAGES) - optimism - 3 * error).all()
    both = 3 * np.hypot(error, error_checked)
    assert (mean_checked < mean + 2 / n + both).all()
    assert (mean_checked > mean - optimism - both).all()
