# __init__.pxd: what `from hdicore cimport ...` finds
from hdicore._core cimport weighted_hdi_c, weighted_quantile_c
