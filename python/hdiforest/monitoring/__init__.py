"""Monitoring: whether intervals cover labelled rows as these come, and quantiles that follow."""

from hdiforest.monitoring._monitor import CoverageMonitor, CoverageState
from hdiforest.monitoring._recalibrate import recalibrate

__all__ = ["CoverageMonitor", "CoverageState", "recalibrate"]
