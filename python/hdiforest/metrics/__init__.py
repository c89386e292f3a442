"""How good intervals and weighted samples are: coverage, width and proper scores."""

from hdiforest.metrics.intervals import (
    WidthStrata,
    coverage_by_width,
    coverage_score,
    interval_score,
    mean_width_score,
)
from hdiforest.metrics.samples import crps_score

__all__ = [
    "WidthStrata",
    "coverage_by_width",
    "coverage_score",
    "crps_score",
    "interval_score",
    "mean_width_score",
]
