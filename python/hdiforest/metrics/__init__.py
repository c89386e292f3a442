"""How good intervals and distributions are: coverage, width, proper scores and PIT values."""

from hdiforest.metrics._crps import crps_score, pit_values
from hdiforest.metrics._intervals import (
    GroupCoverage,
    WidthStrata,
    coverage_by_group,
    coverage_by_width,
    coverage_score,
    interval_score,
    mean_width_score,
)
from hdiforest.metrics._scorers import (
    make_coverage_scorer,
    make_crps_scorer,
    make_interval_scorer,
    make_pinball_scorer,
)

__all__ = [
    "GroupCoverage",
    "WidthStrata",
    "coverage_by_group",
    "coverage_by_width",
    "coverage_score",
    "crps_score",
    "interval_score",
    "make_coverage_scorer",
    "make_crps_scorer",
    "make_interval_scorer",
    "make_pinball_scorer",
    "mean_width_score",
    "pit_values",
]
