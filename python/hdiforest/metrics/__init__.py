"""How good intervals and weighted samples are: coverage, width and proper scores."""

from hdiforest.metrics._crps import crps_score
from hdiforest.metrics._intervals import (
    WidthStrata,
    coverage_by_width,
    coverage_score,
    interval_score,
    mean_width_score,
)
from hdiforest.metrics._scorers import coverage_scorer, crps_scorer, interval_scorer, pinball_scorer

__all__ = [
    "WidthStrata",
    "coverage_by_width",
    "coverage_score",
    "coverage_scorer",
    "crps_score",
    "crps_scorer",
    "interval_score",
    "interval_scorer",
    "mean_width_score",
    "pinball_scorer",
]
