"""Pictures of intervals and distributions, in scikit-learn's convention of displays."""

from hdiforest.displays._calibration import CalibrationDisplay
from hdiforest.displays._distribution import DistributionDisplay
from hdiforest.displays._intervals import IntervalDisplay
from hdiforest.displays._widths import WidthDisplay

__all__ = ["CalibrationDisplay", "DistributionDisplay", "IntervalDisplay", "WidthDisplay"]
