# __init__.pxd: the C table of hdicore/c_api.h for `cimport hdicore`; needs no include folder
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_Import
from libc.stdint cimport int32_t, int64_t, uint32_t

# Types and numbers, as hdicore/c_api.h declares and explains them.

cdef enum:
    HDICORE_API_VERSION = 8

ctypedef enum hdicore_status:
    hdicore_ok = 0
    hdicore_invalid = 1
    hdicore_no_memory = 2
    hdicore_failed = 3

ctypedef struct hdicore_error:
    char message[256]

ctypedef enum hdicore_kind:
    hdicore_hdi = 0
    hdicore_equal_tailed = 1
    hdicore_lower = 2
    hdicore_upper = 3
    hdicore_averaged = 5

ctypedef enum hdicore_interpolation:
    hdicore_inverted_cdf = 0
    hdicore_averaged_inverted_cdf = 1
    hdicore_linear = 2
    hdicore_lower_atom = 3
    hdicore_higher_atom = 4
    hdicore_midpoint = 5
    hdicore_nearest = 6
    hdicore_closest_observation = 7
    hdicore_interpolated_inverted_cdf = 8
    hdicore_hazen = 9
    hdicore_weibull = 10
    hdicore_median_unbiased = 11
    hdicore_normal_unbiased = 12

cdef extern from *:
    """
    struct hdicore_index;
    struct hdicore_model;
    """
    struct hdicore_index:
        pass
    struct hdicore_model:
        pass

ctypedef struct hdicore_training_rows:
    int64_t n_rows
    int64_t n_trees
    int64_t n_outputs
    const int32_t *leaves
    const double *y
    const int32_t *counts
    const double *sample_weight

ctypedef struct hdicore_grid:
    double low
    double high
    int64_t n_bins
    double bandwidth

ctypedef enum hdicore_opening:
    hdicore_mapped = 0
    hdicore_copied = 1

ctypedef enum hdicore_model_kind:
    hdicore_usual = -1
    hdicore_calibrated = -2

ctypedef struct hdicore_rows:
    int64_t n_rows
    int64_t n_features
    const float *floats
    const double *doubles

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
        const hdicore_index *index, const int32_t *leaves, int64_t n_rows, const double *coverages,
        int64_t n_levels, int kind, int n_threads, double *intervals,
        hdicore_error *error) noexcept nogil
    int (*index_quantiles)(
        const hdicore_index *index, const int32_t *leaves, int64_t n_rows, const double *levels,
        int64_t n_levels, int interpolation, int n_threads, double *quantiles,
        hdicore_error *error) noexcept nogil
    int (*index_cdf)(
        const hdicore_index *index, const int32_t *leaves, int64_t n_rows, const double *points,
        int64_t n_points, int n_threads, double *cdf, hdicore_error *error) noexcept nogil
    int (*index_priced_intervals)(
        const hdicore_index *index, const int32_t *leaves, int64_t n_rows, const double *prices,
        int64_t n_prices, double min_coverage, int n_threads, double *intervals, int64_t *units,
        hdicore_error *error) noexcept nogil
    int (*index_regions)(
        const hdicore_index *index, const int32_t *leaves, int64_t n_rows, double coverage,
        int max_pieces, double gap, const hdicore_grid *grid, int n_threads, int64_t *n_pieces,
        double *ends, double *bounds, hdicore_error *error) noexcept nogil
    int (*model_open)(
        const char *path, int opening, hdicore_model **model, hdicore_error *error) noexcept nogil
    void (*model_close)(hdicore_model *model) noexcept nogil
    int64_t (*model_n_features)(const hdicore_model *model) noexcept nogil
    int64_t (*model_n_outputs)(const hdicore_model *model) noexcept nogil
    int64_t (*model_n_trees)(const hdicore_model *model) noexcept nogil
    const char *(*model_feature_name)(const hdicore_model *model, int64_t feature) noexcept nogil
    int64_t (*model_n_coverages)(const hdicore_model *model) noexcept nogil
    double (*model_coverage)(const hdicore_model *model, int64_t position) noexcept nogil
    int (*model_intervals)(
        const hdicore_model *model, const hdicore_rows *X, const double *coverages,
        int64_t n_levels, int kind, int n_threads, double *intervals,
        hdicore_error *error) noexcept nogil
    int (*model_mean)(
        const hdicore_model *model, const hdicore_rows *X, int n_threads, double *means,
        hdicore_error *error) noexcept nogil
    int (*model_leaves)(
        const hdicore_model *model, const hdicore_rows *X, int n_threads, int32_t *leaves,
        hdicore_error *error) noexcept nogil
    hdicore_index *(*model_index)(const hdicore_model *model) noexcept nogil
    int (*model_predict)(
        const hdicore_model *model, const hdicore_rows *X, const double *by,
        const double *other_means, const double *coverages, int64_t n_levels, int kind,
        int n_threads, double *intervals, double *means, hdicore_error *error) noexcept nogil


# The table. Each module that cimports this file has its own pointer to it, set at the first call;
# threads that set it at once write the same address.

cdef extern from *:
    """
    CYTHON_UNUSED static const void* hdicore_found_table;
    """
    const void *hdicore_found_table


cdef inline int hdicore_find_api() except -1 with gil:
    global hdicore_found_table
    cdef const hdicore_api *found = <const hdicore_api *>PyCapsule_Import("hdicore._core.c_api", 0)
    if found.version < HDICORE_API_VERSION:
        raise ImportError(
            f"hdicore has version {found.version} of its C functions, but this module was compiled "
            f"with {HDICORE_API_VERSION}: upgrade hdicore")
    hdicore_found_table = found
    return 0


cdef inline const hdicore_api *hdicore_get_api() except NULL nogil:
    """The table itself, whose functions return a status where those below raise."""
    if hdicore_found_table == NULL:
        hdicore_find_api()
    return <const hdicore_api *>hdicore_found_table


cdef inline int hdicore_raise(int status, hdicore_error *error) except -1 with gil:
    message = error.message.decode("utf-8", "replace")
    if status == hdicore_invalid:
        raise ValueError(message)
    if status == hdicore_no_memory:
        raise MemoryError(message)
    raise RuntimeError(message)


cdef inline int hdicore_check(int status, hdicore_error *error) except -1 nogil:
    """Raise what the status and the message of a function of the table say."""
    return 0 if status == hdicore_ok else hdicore_raise(status, error)


# The functions of the table, with exceptions: ValueError for an argument that is refused,
# MemoryError, RuntimeError for anything else, ImportError if the installed hdicore is too old.

cdef inline int weighted_hdi(
    const double *values, const double *weights, int64_t n, const double *coverages,
    int64_t n_levels, double *intervals,
) except -1 nogil:
    """Shortest intervals (2, n_levels) of a sample (n,); weights NULL: all alike."""
    cdef hdicore_error error
    return hdicore_check(hdicore_get_api().weighted_hdi(
        values, weights, n, coverages, n_levels, intervals, &error), &error)


cdef inline int weighted_quantiles(
    const double *values, const double *weights, int64_t n, const double *levels,
    int64_t n_levels, int interpolation, double *quantiles,
) except -1 nogil:
    """Quantiles (n_levels,) of a sample (n,); weights NULL: all alike."""
    cdef hdicore_error error
    return hdicore_check(hdicore_get_api().weighted_quantiles(
        values, weights, n, levels, n_levels, interpolation, quantiles, &error), &error)


cdef inline hdicore_index *index_build(
    const hdicore_training_rows *rows, int n_threads
) except NULL nogil:
    """A new index of training rows, to be released."""
    cdef hdicore_error error
    cdef hdicore_index *index = NULL
    hdicore_check(hdicore_get_api().index_build(rows, n_threads, &index, &error), &error)
    return index


cdef inline hdicore_index *index_from(leaf_index) except NULL:
    """The index of a hdicore.LeafIndex once more, to be released; TypeError if it is none."""
    if not hasattr(leaf_index, "__hdicore_index__"):
        raise TypeError(f"leaf_index must be a hdicore.LeafIndex, got {type(leaf_index).__name__}")
    capsule = leaf_index.__hdicore_index__()  # owns what its pointer points to
    return index_share(<const hdicore_index *>PyCapsule_GetPointer(capsule, "hdicore.index"))


cdef inline hdicore_index *index_share(const hdicore_index *index) except NULL nogil:
    """The same index once more, to be released on its own."""
    cdef hdicore_index *shared = hdicore_get_api().index_share(index)
    if shared == NULL:
        with gil:
            raise MemoryError()
    return shared


cdef inline void index_release(hdicore_index *index) noexcept nogil:
    """End the use of an index; NULL is allowed."""
    if index != NULL:
        hdicore_get_api().index_release(index)


cdef inline int64_t index_n_trees(const hdicore_index *index) except -1 nogil:
    return hdicore_get_api().index_n_trees(index)


cdef inline int64_t index_n_outputs(const hdicore_index *index) except -1 nogil:
    return hdicore_get_api().index_n_outputs(index)


cdef inline int index_mean(
    const hdicore_index *index, const int32_t *leaves, int64_t n_rows, int n_threads,
    double *means,
) except -1 nogil:
    """Means (n_rows, n_outputs) of rows in the leaves (n_rows, n_trees)."""
    cdef hdicore_error error
    return hdicore_check(hdicore_get_api().index_mean(
        index, leaves, n_rows, n_threads, means, &error), &error)


cdef inline int index_intervals(
    const hdicore_index *index, const int32_t *leaves, int64_t n_rows, const double *coverages,
    int64_t n_levels, int kind, int n_threads, double *intervals,
) except -1 nogil:
    """Intervals (n_rows, n_outputs, 2, n_levels) of rows in the leaves (n_rows, n_trees)."""
    cdef hdicore_error error
    return hdicore_check(hdicore_get_api().index_intervals(
        index, leaves, n_rows, coverages, n_levels, kind, n_threads, intervals, &error), &error)


cdef inline int index_quantiles(
    const hdicore_index *index, const int32_t *leaves, int64_t n_rows, const double *levels,
    int64_t n_levels, int interpolation, int n_threads, double *quantiles,
) except -1 nogil:
    """Quantiles (n_rows, n_outputs, n_levels) of rows in the leaves (n_rows, n_trees)."""
    cdef hdicore_error error
    return hdicore_check(hdicore_get_api().index_quantiles(
        index, leaves, n_rows, levels, n_levels, interpolation, n_threads, quantiles, &error),
        &error)


cdef inline int index_cdf(
    const hdicore_index *index, const int32_t *leaves, int64_t n_rows, const double *points,
    int64_t n_points, int n_threads, double *cdf,
) except -1 nogil:
    """P(Y <= point) at points (n_rows, n_outputs, n_points); cdf is of the same shape."""
    cdef hdicore_error error
    return hdicore_check(hdicore_get_api().index_cdf(
        index, leaves, n_rows, points, n_points, n_threads, cdf, &error), &error)


cdef inline int index_priced_intervals(
    const hdicore_index *index, const int32_t *leaves, int64_t n_rows, const double *prices,
    int64_t n_prices, double min_coverage, int n_threads, double *intervals, int64_t *units,
) except -1 nogil:
    """Intervals (n_rows, n_outputs, 2, n_prices) at prices; units (n_rows, n_outputs, n_prices)."""
    cdef hdicore_error error
    return hdicore_check(hdicore_get_api().index_priced_intervals(
        index, leaves, n_rows, prices, n_prices, min_coverage, n_threads, intervals, units, &error),
        &error)


cdef inline int index_regions(
    const hdicore_index *index, const int32_t *leaves, int64_t n_rows, double coverage,
    int max_pieces, double gap, const hdicore_grid *grid, int n_threads, int64_t *n_pieces,
    double *ends, double *bounds,
) except -1 nogil:
    """Regions: n_pieces and bounds (n_rows, n_outputs), ends (n_rows, n_outputs, max_pieces, 2)."""
    cdef hdicore_error error
    return hdicore_check(hdicore_get_api().index_regions(
        index, leaves, n_rows, coverage, max_pieces, gap, grid, n_threads, n_pieces, ends, bounds,
        &error), &error)


cdef inline hdicore_model *model_open(const char *path, int opening) except NULL nogil:
    """The model of a file, to be closed; RuntimeError if the file cannot be read."""
    cdef hdicore_error error
    cdef hdicore_model *model = NULL
    hdicore_check(hdicore_get_api().model_open(path, opening, &model, &error), &error)
    return model


cdef inline void model_close(hdicore_model *model) noexcept nogil:
    """End the use of a model; NULL is allowed."""
    if model != NULL:
        hdicore_get_api().model_close(model)


cdef inline int64_t model_n_features(const hdicore_model *model) except -1 nogil:
    return hdicore_get_api().model_n_features(model)


cdef inline int64_t model_n_outputs(const hdicore_model *model) except -1 nogil:
    return hdicore_get_api().model_n_outputs(model)


cdef inline int64_t model_n_trees(const hdicore_model *model) except -1 nogil:
    return hdicore_get_api().model_n_trees(model)


cdef inline const char *model_feature_name(
    const hdicore_model *model, int64_t feature
) except? NULL nogil:
    """The name of a feature, in UTF-8; NULL if the model has no names."""
    return hdicore_get_api().model_feature_name(model, feature)


cdef inline int64_t model_n_coverages(const hdicore_model *model) except -1 nogil:
    """How many coverages calibrated intervals are known of."""
    return hdicore_get_api().model_n_coverages(model)


cdef inline double model_coverage(const hdicore_model *model, int64_t position) except? -1 nogil:
    return hdicore_get_api().model_coverage(model, position)


cdef inline int model_intervals(
    const hdicore_model *model, const hdicore_rows *X, const double *coverages, int64_t n_levels,
    int kind, int n_threads, double *intervals,
) except -1 nogil:
    """Intervals (n_rows, n_outputs, 2, n_levels) of rows, calibrated ones too."""
    cdef hdicore_error error
    return hdicore_check(hdicore_get_api().model_intervals(
        model, X, coverages, n_levels, kind, n_threads, intervals, &error), &error)


cdef inline int model_mean(
    const hdicore_model *model, const hdicore_rows *X, int n_threads, double *means
) except -1 nogil:
    """Means (n_rows, n_outputs) of rows."""
    cdef hdicore_error error
    return hdicore_check(hdicore_get_api().model_mean(model, X, n_threads, means, &error), &error)


cdef inline int model_leaves(
    const hdicore_model *model, const hdicore_rows *X, int n_threads, int32_t *leaves
) except -1 nogil:
    """Leaves (n_rows, n_trees) of rows, for functions of an index."""
    cdef hdicore_error error
    return hdicore_check(
        hdicore_get_api().model_leaves(model, X, n_threads, leaves, &error), &error)


cdef inline hdicore_index *model_index(const hdicore_model *model) except NULL nogil:
    """The index of a model's training rows, to be released on its own."""
    cdef hdicore_index *index = hdicore_get_api().model_index(model)
    if index == NULL:
        with gil:
            raise MemoryError()
    return index


cdef inline int model_predict(
    const hdicore_model *model, const hdicore_rows *X, const double *by,
    const double *other_means, const double *coverages, int64_t n_levels, int kind, int n_threads,
    double *intervals, double *means,
) except -1 nogil:
    """Intervals as `model_intervals` gives them, with means (n_rows, n_outputs) beside.

    Labels `by` (n_rows,) of groups and `other_means` (n_rows, n_outputs) where a calibration needs
    them; these and `means` are NULL otherwise.
    """
    cdef hdicore_error error
    return hdicore_check(hdicore_get_api().model_predict(
        model, X, by, other_means, coverages, n_levels, kind, n_threads, intervals, means, &error),
        &error)
