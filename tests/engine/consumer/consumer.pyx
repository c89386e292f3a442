# consumer.pyx: what an author of a Cython module writes to use hdicore's C functions
# cython: language_level=3
from libc.math cimport NAN
from libc.stdint cimport int32_t, int64_t, intptr_t

cimport hdicore as hc

cdef const hc.hdicore_api *api = hc.hdicore_get_api()


def hdi(const double[::1] values, const double[::1] weights, const double[::1] coverages,
        double[:, ::1] out):
    """Shortest intervals, (2, k)."""
    cdef const double *given = NULL
    if weights is not None:
        given = &weights[0]
    with nogil:
        hc.weighted_hdi(
            &values[0], given, values.shape[0], &coverages[0], coverages.shape[0], &out[0, 0])


def quantiles(const double[::1] values, const double[::1] weights, const double[::1] levels,
              int interpolation, double[::1] out):
    """Quantiles, (k,)."""
    cdef const double *given = NULL
    if weights is not None:
        given = &weights[0]
    with nogil:
        hc.weighted_quantiles(
            &values[0], given, values.shape[0], &levels[0], levels.shape[0], interpolation, &out[0])


def refused():
    """How many calls with null pointers or bad sizes the table refuses."""
    cdef double interval[2]
    cdef double value = 1, level = 0.5
    cdef int invalid = hc.hdicore_invalid
    return (
        (api.weighted_hdi(NULL, NULL, 1, &level, 1, interval, NULL) == invalid)
        + (api.weighted_hdi(&value, NULL, 1, &level, 1, NULL, NULL) == invalid)
        + (api.weighted_hdi(&value, NULL, 0, &level, 1, interval, NULL) == invalid)
        + (api.weighted_hdi(&value, NULL, -1, &level, 1, interval, NULL) == invalid)
        + (api.weighted_quantiles(&value, NULL, 1, &level, 1, 99, interval, NULL) == invalid)
    )


cdef class Index:
    """An index of training rows, built here or shared with a hdicore.LeafIndex."""

    cdef hc.hdicore_index *handle

    def __dealloc__(self):
        hc.index_release(self.handle)

    @staticmethod
    def of(leaf_index):
        cdef Index self = Index()
        self.handle = hc.index_from(leaf_index)
        return self

    @staticmethod
    def build(const int32_t[:, ::1] leaves, const double[:, ::1] y):
        cdef Index self = Index()
        cdef hc.hdicore_training_rows rows = hc.hdicore_training_rows(
            n_rows=leaves.shape[0], n_trees=leaves.shape[1], n_outputs=y.shape[1],
            leaves=&leaves[0, 0], y=&y[0, 0], counts=NULL, sample_weight=NULL)
        with nogil:
            self.handle = hc.index_build(&rows, 2)
        return self

    def share(self):
        cdef Index other = Index()
        other.handle = hc.index_share(self.handle)
        return other

    def shape(self):
        return hc.index_n_trees(self.handle), hc.index_n_outputs(self.handle)

    def mean(self, const int32_t[:, ::1] leaves, double[:, ::1] out):
        with nogil:
            hc.index_mean(self.handle, &leaves[0, 0], leaves.shape[0], 1, &out[0, 0])

    def intervals(self, const int32_t[:, ::1] leaves, const double[::1] coverages, int kind,
                  double[:, :, :, ::1] out):
        with nogil:
            hc.index_intervals(
                self.handle, &leaves[0, 0], leaves.shape[0], &coverages[0], coverages.shape[0],
                kind, 1, &out[0, 0, 0, 0])

    def quantiles(self, const int32_t[:, ::1] leaves, const double[::1] levels, int interpolation,
                  double[:, :, ::1] out):
        with nogil:
            hc.index_quantiles(
                self.handle, &leaves[0, 0], leaves.shape[0], &levels[0], levels.shape[0],
                interpolation, 2, &out[0, 0, 0])

    def cdf(self, const int32_t[:, ::1] leaves, const double[:, :, ::1] points,
            double[:, :, ::1] out):
        with nogil:
            hc.index_cdf(
                self.handle, &leaves[0, 0], leaves.shape[0], &points[0, 0, 0], points.shape[2], 0,
                &out[0, 0, 0])

    def priced_intervals(self, const int32_t[:, ::1] leaves, const double[::1] prices,
                         double min_coverage, double[:, :, :, ::1] out, int64_t[:, :, ::1] units):
        with nogil:
            hc.index_priced_intervals(
                self.handle, &leaves[0, 0], leaves.shape[0], &prices[0], prices.shape[0],
                min_coverage, 1, &out[0, 0, 0, 0], &units[0, 0, 0])

    def regions(self, const int32_t[:, ::1] leaves, double coverage, int max_pieces, double gap,
                grid, int64_t[:, ::1] n_pieces, double[:, :, :, ::1] ends, double[:, ::1] bounds):
        cdef hc.hdicore_grid bins
        cdef const hc.hdicore_grid *given = NULL
        if grid is not None:
            bins.low, bins.high, bins.n_bins, bins.bandwidth = grid
            given = &bins
        with nogil:
            hc.index_regions(
                self.handle, &leaves[0, 0], leaves.shape[0], coverage, max_pieces, gap, given, 1,
                &n_pieces[0, 0], &ends[0, 0, 0, 0], &bounds[0, 0])


cdef class Model:
    """A model of a file."""

    cdef hc.hdicore_model *handle

    def __cinit__(self, bytes path, int opening):
        cdef const char *name = path
        with nogil:
            self.handle = hc.model_open(name, opening)

    def __dealloc__(self):
        hc.model_close(self.handle)

    def shape(self):
        return (
            hc.model_n_features(self.handle), hc.model_n_outputs(self.handle),
            hc.model_n_trees(self.handle))

    def feature_name(self, int64_t feature):
        cdef const char *name = hc.model_feature_name(self.handle, feature)
        return None if name == NULL else name.decode()

    def coverages(self):
        return [
            hc.model_coverage(self.handle, k) for k in range(hc.model_n_coverages(self.handle))]

    def index(self):
        cdef Index found = Index()
        found.handle = hc.model_index(self.handle)
        return found

    def intervals(self, const float[:, ::1] X, const double[::1] coverages, int kind,
                  double[:, :, :, ::1] out):
        cdef hc.hdicore_rows rows = hc.hdicore_rows(
            n_rows=X.shape[0], n_features=X.shape[1], floats=&X[0, 0], doubles=NULL)
        with nogil:
            hc.model_intervals(
                self.handle, &rows, &coverages[0], coverages.shape[0], kind, 1, &out[0, 0, 0, 0])

    def predict(self, const double[:, ::1] X, by, other_means, const double[::1] coverages, int kind,
                double[:, :, :, ::1] ends, double[:, ::1] means):
        cdef const double[::1] labels = by
        cdef const double[:, ::1] others = other_means
        cdef const double *given_by = NULL
        cdef const double *given_means = NULL
        if by is not None:
            given_by = &labels[0]
        if other_means is not None:
            given_means = &others[0, 0]
        cdef hc.hdicore_rows rows = hc.hdicore_rows(
            n_rows=X.shape[0], n_features=X.shape[1], floats=NULL, doubles=&X[0, 0])
        with nogil:
            hc.model_predict(
                self.handle, &rows, given_by, given_means, &coverages[0], coverages.shape[0], kind,
                2, &ends[0, 0, 0, 0], &means[0, 0])

    def mean(self, const double[:, ::1] X, double[:, ::1] out):
        cdef hc.hdicore_rows rows = hc.hdicore_rows(
            n_rows=X.shape[0], n_features=X.shape[1], floats=NULL, doubles=&X[0, 0])
        with nogil:
            hc.model_mean(self.handle, &rows, 2, &out[0, 0])

    def leaves(self, const double[:, ::1] X, int32_t[:, ::1] out):
        cdef hc.hdicore_rows rows = hc.hdicore_rows(
            n_rows=X.shape[0], n_features=X.shape[1], floats=NULL, doubles=&X[0, 0])
        with nogil:
            hc.model_leaves(self.handle, &rows, 1, &out[0, 0])


# For scipy.ndimage.generic_filter: the width of the shortest half of a window. A callback must not
# raise, so it asks the table for a status; NaN where the window is refused.
cdef api int shortest_half(double *window, intptr_t n, double *result, void *unused) noexcept nogil:
    cdef double interval[2]
    cdef double half = 0.5
    if api.weighted_hdi(window, NULL, n, &half, 1, interval, NULL) == hc.hdicore_ok:
        result[0] = interval[1] - interval[0]
    else:
        result[0] = NAN
    return 1
