# rolling_hdi.pyx: shortest intervals over a sliding window, a loop without Python
# cython: language_level=3, boundscheck=False, wraparound=False
"""Shortest intervals over a sliding window of a series."""

import numpy as np

cimport hdicore


def rolling_hdi(series, Py_ssize_t window, double coverage=0.9, half_life=None):
    """Shortest interval that holds a share of each window of a series.

    Parameters
    ----------
    series : array-like (n,)
        Finite values, in the order of time.
    window : int
        Number of values in a window, at most n.
    coverage : float
        Share of the window's weight that an interval holds, in (0, 1].
    half_life : float, optional
        Number of steps after which a value has half of its weight. Without it all values of a
        window weigh alike.

    Returns
    -------
    intervals : ndarray (n - window + 1, 2)
        Lower and upper ends; the first is that of ``series[:window]``.

    Raises
    ------
    ValueError
        If a value is not finite or an argument is out of range.
    """
    cdef const double[::1] values = np.ascontiguousarray(series, dtype=np.float64)
    cdef Py_ssize_t n = values.shape[0] - window + 1
    if window < 1 or n < 1:
        raise ValueError(f"window must be in 1 to {values.shape[0]}, got {window}")
    cdef const double[::1] decay
    cdef const double *weights = NULL
    if half_life is not None:
        decay = 0.5 ** (np.arange(window - 1, -1, -1) / half_life)
        weights = &decay[0]

    found = np.empty((n, 2))
    cdef double[:, ::1] intervals = found
    cdef Py_ssize_t i
    with nogil:
        for i in range(n):
            # Raises ValueError, with the lock taken only then.
            hdicore.weighted_hdi(&values[i], weights, window, &coverage, 1, &intervals[i, 0])
    return found
