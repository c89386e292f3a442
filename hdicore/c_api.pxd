# c_api.pxd: the C table for Cython; compile with hdicore.get_include(), hdicore/c_api.h explains it
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_Import
from libc.stdint cimport int32_t, int64_t, uint32_t


cdef extern from "hdicore/c_api.h" nogil:
    enum: HDICORE_API_VERSION

    ctypedef enum hdicore_status:
        hdicore_ok
        hdicore_invalid
        hdicore_no_memory
        hdicore_failed

    ctypedef struct hdicore_error:
        char message[256]

    ctypedef enum hdicore_kind:
        hdicore_hdi
        hdicore_equal_tailed
        hdicore_lower
        hdicore_upper

    ctypedef enum hdicore_interpolation:
        hdicore_inverted_cdf
        hdicore_averaged_inverted_cdf
        hdicore_linear
        hdicore_lower_atom
        hdicore_higher_atom
        hdicore_midpoint
        hdicore_nearest
        hdicore_closest_observation
        hdicore_interpolated_inverted_cdf
        hdicore_hazen
        hdicore_weibull
        hdicore_median_unbiased
        hdicore_normal_unbiased

    ctypedef struct hdicore_index:
        pass

    ctypedef struct hdicore_training_rows:
        int64_t n_rows
        int64_t n_trees
        int64_t n_outputs
        const int32_t *leaves
        const double *y
        const int32_t *counts
        const double *sample_weight

    ctypedef struct hdicore_api:
        uint32_t version
        uint32_t size
        int (*weighted_hdi)(
            const double *values, const double *weights, int64_t n, const double *coverages,
            int64_t n_levels, double *intervals, hdicore_error *error) noexcept nogil
        int (*weighted_quantiles)(
            const double *values, const double *weights, int64_t n, const double *levels,
            int64_t n_levels, int interpolation, double *quantiles, hdicore_error *error) noexcept nogil
        int (*index_build)(
            const hdicore_training_rows *rows, int n_threads, hdicore_index **index,
            hdicore_error *error) noexcept nogil
        hdicore_index *(*index_share)(const hdicore_index *index) noexcept nogil
        void (*index_release)(hdicore_index *index) noexcept nogil
        int64_t (*index_n_trees)(const hdicore_index *index) noexcept nogil
        int64_t (*index_n_outputs)(const hdicore_index *index) noexcept nogil
        int (*index_mean)(
            const hdicore_index *index, const int32_t *leaves, int64_t n_rows, int n_threads,
            double *means, hdicore_error *error) noexcept nogil
        int (*index_intervals)(
            const hdicore_index *index, const int32_t *leaves, int64_t n_rows,
            const double *coverages, int64_t n_levels, int kind, int n_threads, double *intervals,
            hdicore_error *error) noexcept nogil
        int (*index_quantiles)(
            const hdicore_index *index, const int32_t *leaves, int64_t n_rows,
            const double *levels, int64_t n_levels, int interpolation, int n_threads,
            double *quantiles, hdicore_error *error) noexcept nogil
        int (*index_cdf)(
            const hdicore_index *index, const int32_t *leaves, int64_t n_rows,
            const double *points, int64_t n_points, int n_threads, double *cdf,
            hdicore_error *error) noexcept nogil


cdef inline const hdicore_api *import_c_api() except NULL:
    """The table of the installed hdicore; ImportError if it is older than this file."""
    cdef const hdicore_api *api = <const hdicore_api *>PyCapsule_Import("hdicore._core.c_api", 0)
    if api.version < HDICORE_API_VERSION:
        raise ImportError(f"hdicore has C API version {api.version}: upgrade it")
    return api


cdef inline hdicore_index *share_index(const hdicore_api *api, index) except NULL:
    """Handle of an hdicore.LeafIndex, to be released; TypeError or AttributeError if it is none."""
    capsule = index.__hdicore_index__()
    cdef hdicore_index *shared = api.index_share(
        <const hdicore_index *>PyCapsule_GetPointer(capsule, "hdicore.index"))
    if shared == NULL:
        raise MemoryError()
    return shared
