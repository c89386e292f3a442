# consumer.pyx: what an author of a Cython module writes to use hdicore's C function
# cython: language_level=3
from hdicore cimport weighted_hdi_c


def shortest(double[::1] values, double[::1] weights, double coverage):
    """The interval, or None if the sample is refused."""
    cdef double interval[2]
    cdef const double *given = NULL if weights is None else &weights[0]
    cdef int status
    with nogil:
        status = weighted_hdi_c(&values[0], given, values.shape[0], coverage, interval)
    return None if status else (interval[0], interval[1])


def refuses_nothing():
    """Whether null pointers and an empty sample are refused without a crash."""
    cdef double interval[2]
    cdef double value = 1.0
    return (
        weighted_hdi_c(NULL, NULL, 1, 0.9, interval) == -1
        and weighted_hdi_c(&value, NULL, 1, 0.9, NULL) == -1
        and weighted_hdi_c(&value, NULL, 0, 0.9, interval) == -1
        and weighted_hdi_c(&value, NULL, -1, 0.9, interval) == -1
    )
