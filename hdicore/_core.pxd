# _core.pxd: C functions of the compiled module, found at import through its __pyx_capi__

# Shortest interval that holds the share `coverage` of a weighted sample (n,), into interval (2,).
# weights may be NULL: all values weigh alike. Returns 0, or -1 where hdicore.weighted_hdi raises
# ValueError; never throws.
cdef int weighted_hdi_c(
    const double *values, const double *weights, Py_ssize_t n, double coverage, double *interval
) noexcept nogil

# Quantile of the same at a level in [0, 1], into quantile (1,). interpolation is a number of
# hdicore_interpolation in hdicore/c_api.h: 0 is the inverse of the distribution function, 2 linear.
cdef int weighted_quantile_c(
    const double *values, const double *weights, Py_ssize_t n, double level, int interpolation,
    double *quantile
) noexcept nogil
