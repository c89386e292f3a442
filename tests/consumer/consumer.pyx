# consumer.pyx: what an author of a Cython module writes to use hdicore's C functions
# cython: language_level=3
from libc.stdint cimport intptr_t

from hdicore cimport weighted_hdi_c, weighted_quantile_c


def shortest(double[::1] values, double[::1] weights, double coverage):
    """The interval, or None if the sample is refused."""
    cdef double interval[2]
    cdef const double *given = NULL if weights is None else &weights[0]
    cdef int status
    with nogil:
        status = weighted_hdi_c(&values[0], given, values.shape[0], coverage, interval)
    return None if status else (interval[0], interval[1])


def median(double[::1] values, double[::1] weights):
    """The smallest value with half of the weight, or None if the sample is refused."""
    cdef double found
    if weighted_quantile_c(&values[0], &weights[0], values.shape[0], 0.5, 0, &found):
        return None
    return found


def refuses_nothing():
    """Whether null pointers and an empty sample are refused without a crash."""
    cdef double interval[2]
    cdef double value = 1.0
    return (
        weighted_hdi_c(NULL, NULL, 1, 0.9, interval) == -1
        and weighted_hdi_c(&value, NULL, 1, 0.9, NULL) == -1
        and weighted_hdi_c(&value, NULL, 0, 0.9, interval) == -1
        and weighted_hdi_c(&value, NULL, -1, 0.9, interval) == -1
        and weighted_quantile_c(&value, NULL, 1, 0.5, 99, interval) == -1
    )


# For scipy.ndimage.generic_filter: the width of the shortest half of a window.
cdef api int shortest_half(
    double *window, intptr_t n, double *result, void *unused
) noexcept nogil:
    cdef double interval[2]
    cdef int status = weighted_hdi_c(window, NULL, n, 0.5, interval)
    result[0] = interval[1] - interval[0]
    return status == 0
