"""Regions: unions of a few intervals, where the distributions of rows have several modes."""

from hdiforest.regions._calibrate import RegionCalibration, calibrate_region
from hdiforest.regions._predict import predict_region

__all__ = ["RegionCalibration", "calibrate_region", "predict_region"]
