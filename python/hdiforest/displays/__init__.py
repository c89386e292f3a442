"""Pictures of intervals and distributions, in scikit-learn's convention of displays."""

from hdiforest.displays.calibration import CalibrationDisplay
from hdiforest.displays.distribution import DistributionDisplay
from hdiforest.displays.intervals import IntervalDisplay
from hdiforest.displays.widths import WidthDisplay

__all__ = ["CalibrationDisplay", "DistributionDisplay", "IntervalDisplay", "WidthDisplay"]
