# leaf_quantiles.pyx: quantile-forest's loop over stored leaves, written on hdicore's C functions
# cython: language_level=3, boundscheck=False, wraparound=False
import numpy as np

import hdicore

cimport hdicore as hc
from libc.stdint cimport int32_t, int64_t


def gather_and_sort(const double[::1] y, const int64_t[:, :, ::1] stored,
                    const int64_t[:, :] leaves, const double[::1] levels):
    """Quantiles (n, n_levels) of the samples that the trees store in each row's leaves.

    y (n_train,) are training targets and stored (n_trees, n_nodes, size) one more than the rows
    of y in each leaf, 0 for none; leaves (n, n_trees).
    """
    samples_ = np.empty(stored.shape[0] * stored.shape[2])
    found_ = np.empty((len(leaves), len(levels)))
    cdef double[::1] samples = samples_
    cdef double[:, ::1] found = found_
    cdef Py_ssize_t i, tree, k, n
    cdef int64_t row
    with nogil:
        for i in range(leaves.shape[0]):
            n = 0
            for tree in range(stored.shape[0]):
                for k in range(stored.shape[2]):
                    row = stored[tree, leaves[i, tree], k]
                    if row > 0:
                        samples[n] = y[row - 1]
                        n += 1
            hc.weighted_quantiles(
                &samples[0], NULL, n, &levels[0], levels.shape[0], hc.hdicore_linear, &found[i, 0])
    return found_


cdef class LeafQuantiles:
    """The same from an index, which is built once."""

    cdef hc.hdicore_index *index

    def __cinit__(self, const double[::1] y, const int64_t[:, :, ::1] stored):
        leaves_, counts_ = np.zeros((2, y.shape[0], stored.shape[0]), dtype=np.int32)
        cdef int32_t[:, ::1] leaves = leaves_, counts = counts_
        cdef Py_ssize_t tree, leaf, k
        cdef int64_t row
        with nogil:
            for tree in range(stored.shape[0]):
                for leaf in range(stored.shape[1]):
                    for k in range(stored.shape[2]):
                        row = stored[tree, leaf, k] - 1
                        if row >= 0:
                            leaves[row, tree] = <int32_t>leaf
                            counts[row, tree] += 1
        # pooled: samples weigh alike, whatever the size of their leaves.
        index = hdicore.LeafIndex(
            leaves_, y, counts=counts_, n_leaves=[stored.shape[1]] * stored.shape[0], pooled=True)
        self.index = hc.index_from(index)

    def __dealloc__(self):
        hc.index_release(self.index)

    def predict(self, const int64_t[:, :] leaves, const double[::1] levels):
        """Quantiles (n, n_levels) of rows in leaves (n, n_trees)."""
        found_ = np.empty((len(leaves), len(levels)))
        cdef const int32_t[:, ::1] ids = np.ascontiguousarray(leaves, dtype=np.int32)
        cdef double[:, ::1] found = found_
        with nogil:
            hc.index_quantiles(
                self.index, &ids[0, 0], ids.shape[0], &levels[0], levels.shape[0],
                hc.hdicore_linear, 1, &found[0, 0])
        return found_
