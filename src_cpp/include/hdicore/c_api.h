// hdicore/c_api.h: the engine as a table of C functions; C99, and no other header of ours
// SPDX-License-Identifier: BSD-3-Clause
//
// Table. hdicore_get_api returns the table of the engine that a program contains or links; the
// Python module publishes its own as the capsule "hdicore._core.c_api". Functions are only ever
// appended to it, and none changes, so code compiled for version v runs with every table whose
// `version` is at least v. Functions of models are symbols, too, for languages that call these.
//
// Errors. Every function that can fail returns hdicore_ok or another status, and in the other case
// writes a sentence to `error`, if that is not null. No exception leaves a function. What a call
// that fails has written to its results means nothing.
//
// Memory. Arrays belong to the caller, are in C order and aligned, and are used only during the
// call. An index or a model belongs to the caller too, who releases it once; an index holds copies
// of the arrays that it was built from, or what it needs of a model, which may be closed before it.
//
// Threads. Any function may be called from any thread at any time, with the same index or model
// too, since neither ever changes; only its last release must come after its last use. None needs
// Python's lock. n_threads is the number of threads that a call may use, its own among them, and 0
// means all that this process may use. Results do not depend on it.
#ifndef HDICORE_C_API_H
#define HDICORE_C_API_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// 2: interpolations from 7 on, 3: a kind of number 4, 4: index_priced_intervals, index_regions,
// 5: models of files, 6: no kind of number 4, 7: hdicore_averaged, 8: model_predict
#define HDICORE_API_VERSION 8

typedef enum hdicore_status {
    hdicore_ok = 0,
    hdicore_invalid = 1,    // an argument is out of range: the message names it
    hdicore_no_memory = 2,  // the system gave no more
    hdicore_failed = 3      // anything else
} hdicore_status;

typedef struct hdicore_error {
    char message[256];  // ends with a zero, and is cut where it would be longer
} hdicore_error;

typedef enum hdicore_kind {
    hdicore_hdi = 0,           // shortest closed interval that holds the coverage
    hdicore_equal_tailed = 1,  // from the (1 - coverage) / 2 to the (1 + coverage) / 2 quantile
    hdicore_lower = 2,         // largest lower bound; the upper end is infinity
    hdicore_upper = 3,         // smallest upper bound; the lower end is -infinity
    // 4 was a kind that is gone. It is refused, and no other kind ever gets it.
    hdicore_averaged = 5  // midway between the HDI and the equal-tailed interval
} hdicore_kind;

// How to read quantiles between atoms; the names are numpy's.
typedef enum hdicore_interpolation {
    hdicore_inverted_cdf = 0,
    hdicore_averaged_inverted_cdf = 1,
    hdicore_linear = 2,
    hdicore_lower_atom = 3,   // numpy's "lower"
    hdicore_higher_atom = 4,  // numpy's "higher"
    hdicore_midpoint = 5,
    hdicore_nearest = 6,
    hdicore_closest_observation = 7,
    hdicore_interpolated_inverted_cdf = 8,
    hdicore_hazen = 9,
    hdicore_weibull = 10,
    hdicore_median_unbiased = 11,
    hdicore_normal_unbiased = 12
} hdicore_interpolation;

// Which training targets lie in each leaf of a forest. Python's hdicore.LeafIndex has a method
// __hdicore_index__, which returns a capsule "hdicore.index" that points to one.
typedef struct hdicore_index hdicore_index;

// What an index is built from.
typedef struct hdicore_training_rows {
    int64_t n_rows;
    int64_t n_trees;
    int64_t n_outputs;
    const int32_t* leaves;        // (n_rows, n_trees) leaf ids from 0 on, below 2^28
    const double* y;              // (n_rows, n_outputs) finite targets
    const int32_t* counts;        // (n_rows, n_trees) times a row counts in a tree; null: once
    const double* sample_weight;  // (n_rows,) weights of the rows; null: 1
} hdicore_training_rows;

// Equal bins that a distribution is put on.
typedef struct hdicore_grid {
    double low;
    double high;
    int64_t n_bins;    // from 1 to 4096
    double bandwidth;  // standard deviation of the Gaussian kernel that smooths; 0: none
} hdicore_grid;

// A model of a file that hdiforest's HDIForestRegressor.save or its command wrote.
typedef struct hdicore_model hdicore_model;

typedef enum hdicore_opening {
    hdicore_mapped = 0,  // processes share the file's memory; replace the file by renaming only
    hdicore_copied = 1   // whatever happens to the file later; checksums of large arrays are
                         // compared, too
} hdicore_opening;

// Kinds of interval that models have beside those of hdicore_kind.
typedef enum hdicore_model_kind {
    hdicore_usual = -1,      // calibrated if the model is, else hdicore_hdi
    hdicore_calibrated = -2  // covers the share of targets that was calibrated
} hdicore_model_kind;

// Rows to score, (n_rows, n_features); one of the two arrays is null. Numbers are rounded to
// float32, as scikit-learn's trees read them; NaN is a missing value.
typedef struct hdicore_rows {
    int64_t n_rows;
    int64_t n_features;
    const float* floats;
    const double* doubles;
} hdicore_rows;

typedef struct hdicore_api {
    uint32_t version;  // HDICORE_API_VERSION of whoever made the table
    uint32_t size;     // and sizeof(hdicore_api)

    // Since version 1:

    // Shortest intervals, (2, n_levels), that hold shares in (0, 1] of a sample (n,) in any order.
    // weights (n,) are not negative; null: all alike. O(n log n).
    int (*weighted_hdi)(const double* values, const double* weights, int64_t n,
                        const double* coverages, int64_t n_levels, double* intervals,
                        hdicore_error* error);

    // Quantiles, (n_levels,), of the same at levels in [0, 1]. O(n log n).
    int (*weighted_quantiles)(const double* values, const double* weights, int64_t n,
                              const double* levels, int64_t n_levels, int interpolation,
                              double* quantiles, hdicore_error* error);

    // Builds an index; queries may name the leaves in which a training row lies.
    // O(n_outputs * n_rows * (log n_rows + n_trees)).
    int (*index_build)(const hdicore_training_rows* rows, int n_threads, hdicore_index** index,
                       hdicore_error* error);

    // The same index once more, to be released on its own; null if there is no memory.
    hdicore_index* (*index_share)(const hdicore_index* index);
    // Null is allowed.
    void (*index_release)(hdicore_index* index);

    int64_t (*index_n_trees)(const hdicore_index* index);
    int64_t (*index_n_outputs)(const hdicore_index* index);

    // Queries read the conditional distribution of rows that lie in the given leaves, (n_rows,
    // n_trees); -1 is a tree that does not contribute. Results are NaN where none does.

    // Means, (n_rows, n_outputs).
    int (*index_mean)(const hdicore_index* index, const int32_t* leaves, int64_t n_rows,
                      int n_threads, double* means, hdicore_error* error);

    // Intervals of a kind, (n_rows, n_outputs, 2, n_levels), at coverages in (0, 1].
    int (*index_intervals)(const hdicore_index* index, const int32_t* leaves, int64_t n_rows,
                           const double* coverages, int64_t n_levels, int kind, int n_threads,
                           double* intervals, hdicore_error* error);

    // Quantiles, (n_rows, n_outputs, n_levels), at levels in [0, 1].
    int (*index_quantiles)(const hdicore_index* index, const int32_t* leaves, int64_t n_rows,
                           const double* levels, int64_t n_levels, int interpolation, int n_threads,
                           double* quantiles, hdicore_error* error);

    // P(Y <= point) at points (n_rows, n_outputs, n_points), none NaN; of the same shape.
    int (*index_cdf)(const hdicore_index* index, const int32_t* leaves, int64_t n_rows,
                     const double* points, int64_t n_points, int n_threads, double* cdf,
                     hdicore_error* error);

    // Since version 4:

    // Intervals of most price * mass - width, (n_rows, n_outputs, 2, n_prices), at prices above 0
    // of a row's whole mass, that hold min_coverage in [0, 1]; their masses in whole units,
    // (n_rows, n_outputs, n_prices), 0 where no tree contributes.
    int (*index_priced_intervals)(const hdicore_index* index, const int32_t* leaves, int64_t n_rows,
                                  const double* prices, int64_t n_prices, double min_coverage,
                                  int n_threads, double* intervals, int64_t* units,
                                  hdicore_error* error);

    // Regions of at most max_pieces, 1 to 8, closed pieces that hold a coverage in (0, 1] at little
    // cost: their total length, and a gap, not negative, for each piece after the first. A grid
    // makes them of whole bins; null: from atom to atom. ends (n_rows, n_outputs, max_pieces, 2)
    // ascend and are NaN behind the last of n_pieces (n_rows, n_outputs); bounds (n_rows,
    // n_outputs) are lower bounds of the least cost.
    int (*index_regions)(const hdicore_index* index, const int32_t* leaves, int64_t n_rows,
                         double coverage, int max_pieces, double gap, const hdicore_grid* grid,
                         int n_threads, int64_t* n_pieces, double* ends, double* bounds,
                         hdicore_error* error);

    // Since version 5: the functions below, without the prefix of their names.

    int (*model_open)(const char* path, int opening, hdicore_model** model, hdicore_error* error);
    void (*model_close)(hdicore_model* model);
    int64_t (*model_n_features)(const hdicore_model* model);
    int64_t (*model_n_outputs)(const hdicore_model* model);
    int64_t (*model_n_trees)(const hdicore_model* model);
    const char* (*model_feature_name)(const hdicore_model* model, int64_t feature);
    int64_t (*model_n_coverages)(const hdicore_model* model);
    double (*model_coverage)(const hdicore_model* model, int64_t position);
    int (*model_intervals)(const hdicore_model* model, const hdicore_rows* X,
                           const double* coverages, int64_t n_levels, int kind, int n_threads,
                           double* intervals, hdicore_error* error);
    int (*model_mean)(const hdicore_model* model, const hdicore_rows* X, int n_threads,
                      double* means, hdicore_error* error);
    int (*model_leaves)(const hdicore_model* model, const hdicore_rows* X, int n_threads,
                        int32_t* leaves, hdicore_error* error);
    hdicore_index* (*model_index)(const hdicore_model* model);

    // Since version 8: the same.

    int (*model_predict)(const hdicore_model* model, const hdicore_rows* X, const double* by,
                         const double* other_means, const double* coverages, int64_t n_levels,
                         int kind, int n_threads, double* intervals, double* means,
                         hdicore_error* error);
} hdicore_api;

// For programs that contain or link the engine.
const hdicore_api* hdicore_get_api(void);

// Opens a model, and checks what the file holds, which nobody needs to trust. hdicore_failed says
// that the file cannot be read; hdicore_invalid that it holds no model, is damaged, or that its
// rows are made of tables by what C does not know: the message says which. The path is UTF-8 on
// Windows.
int hdicore_model_open(const char* path, int opening, hdicore_model** model, hdicore_error* error);
// Null is allowed.
void hdicore_model_close(hdicore_model* model);

int64_t hdicore_model_n_features(const hdicore_model* model);
int64_t hdicore_model_n_outputs(const hdicore_model* model);
int64_t hdicore_model_n_trees(const hdicore_model* model);
// UTF-8, and the model's; null if it has no names, or no such feature.
const char* hdicore_model_feature_name(const hdicore_model* model, int64_t feature);
// Coverages that calibrated intervals are known of, which ascend; 0 and NaN where there are none.
int64_t hdicore_model_n_coverages(const hdicore_model* model);
double hdicore_model_coverage(const hdicore_model* model, int64_t position);

// Queries of models and their indices are hdicore_failed if a mapped file was written to in place.

// Intervals of rows, (n_rows, n_outputs, 2, n_levels), of a hdicore_kind or hdicore_model_kind: bit
// for bit those of HDIForestRegressor.predict_interval. Calibrated ones are known at coverages that
// were calibrated. One-sided ones of a calibrated model are refused.
int hdicore_model_intervals(const hdicore_model* model, const hdicore_rows* X,
                            const double* coverages, int64_t n_levels, int kind, int n_threads,
                            double* intervals, hdicore_error* error);
// The same, with the means beside, (n_rows, n_outputs), if they are not null, and with what some
// calibrations need of the rows; null for others. `by` are the labels (n_rows,) of the groups that
// it was made by, NaN where one is missing: needed unless a feature holds them, in whose place they
// are used. Groups that are texts are refused. `other_means`, (n_rows, n_outputs), are those by the
// regressor that was given as `mean`; CV+ has one for each fold, which is refused.
int hdicore_model_predict(const hdicore_model* model, const hdicore_rows* X, const double* by,
                          const double* other_means, const double* coverages, int64_t n_levels,
                          int kind, int n_threads, double* intervals, double* means,
                          hdicore_error* error);
// Means, (n_rows, n_outputs), bit for bit those of HDIForestRegressor.predict.
int hdicore_model_mean(const hdicore_model* model, const hdicore_rows* X, int n_threads,
                       double* means, hdicore_error* error);
// Leaves, (n_rows, n_trees), for functions of an index.
int hdicore_model_leaves(const hdicore_model* model, const hdicore_rows* X, int n_threads,
                         int32_t* leaves, hdicore_error* error);
// The index of a model's training rows, whose distributions are not calibrated; to be released on
// its own. Null if there is no memory.
hdicore_index* hdicore_model_index(const hdicore_model* model);

#ifdef __cplusplus
}
#endif

#endif  // HDICORE_C_API_H
