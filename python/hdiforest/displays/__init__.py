"""Pictures of intervals and distributions, in scikit-learn's convention of displays."""

from hdiforest.displays._coverage import CalibrationDisplay, MonitorDisplay, WidthDisplay
from hdiforest.displays._distribution import DistributionDisplay, ExplanationDisplay, PITDisplay
from hdiforest.displays._intervals import IntervalDisplay

__all__ = [
    "CalibrationDisplay",
    "DistributionDisplay",
    "ExplanationDisplay",
    "IntervalDisplay",
    "MonitorDisplay",
    "PITDisplay",
    "WidthDisplay",
]
