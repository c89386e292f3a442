// c_api/c_model.cpp: models of files for C; checks what comes from there, and calls the model
// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <new>

#include "c_api/arguments.hpp"
#include "c_api/c_index.hpp"
#include "hdicore/c_api.h"
#include "model_file/model.hpp"

using namespace hdicore;
using namespace hdicore::arguments;

struct hdicore_model {
    Model engine;
};

namespace {

RowMatrix rows_of(const hdicore_rows* X) {
    if (X == nullptr) refuse("X must not be null");
    const std::size_t n = size(X->n_rows, "n_rows of X");
    const std::size_t k = size(X->n_features, "n_features of X");
    if (X->floats != nullptr && X->doubles != nullptr) {
        refuse("X must have floats or doubles, but has both");
    }
    if (X->floats != nullptr) return {matrix(X->floats, n, k, "X")};
    return {matrix(X->doubles, n, k, "floats and doubles of X")};
}

const Model& engine_of(const hdicore_model* model) {
    if (model == nullptr) refuse("model must not be null");
    return model->engine;
}

}  // namespace

int hdicore_model_open(const char* path, int opening, hdicore_model** model, hdicore_error* error) {
    return guarded(error, [&] {
        if (path == nullptr) refuse("path must not be null");
        if (model == nullptr) refuse("model must not be null");
        const auto how = one_of<hdicore_opening>(opening, hdicore_copied, "opening");
        *model = new hdicore_model{Model(path, how == hdicore_mapped)};
    });
}

void hdicore_model_close(hdicore_model* model) {
    delete model;
}

std::int64_t hdicore_model_n_features(const hdicore_model* model) {
    return static_cast<std::int64_t>(model->engine.n_features());
}

std::int64_t hdicore_model_n_outputs(const hdicore_model* model) {
    return static_cast<std::int64_t>(model->engine.n_outputs());
}

std::int64_t hdicore_model_n_trees(const hdicore_model* model) {
    return static_cast<std::int64_t>(model->engine.index()->n_trees());
}

const char* hdicore_model_feature_name(const hdicore_model* model, std::int64_t feature) {
    const auto& names = model->engine.feature_names();
    if (feature < 0 || static_cast<std::size_t>(feature) >= names.size()) return nullptr;
    return names[static_cast<std::size_t>(feature)].c_str();
}

std::int64_t hdicore_model_n_coverages(const hdicore_model* model) {
    return static_cast<std::int64_t>(model->engine.levels().size());
}

double hdicore_model_coverage(const hdicore_model* model, std::int64_t position) {
    const auto levels = model->engine.levels();
    if (position < 0 || static_cast<std::size_t>(position) >= levels.size()) {
        return hdicore::nan;
    }
    return levels[static_cast<std::size_t>(position)].coverage;
}

int hdicore_model_intervals(const hdicore_model* model, const hdicore_rows* X,
                            const double* coverages, std::int64_t n_levels, int kind, int n_threads,
                            double* intervals, hdicore_error* error) {
    return hdicore_model_predict(model, X, nullptr, nullptr, coverages, n_levels, kind, n_threads,
                                 intervals, nullptr, error);
}

int hdicore_model_predict(const hdicore_model* model, const hdicore_rows* X, const double* by,
                          const double* other_means, const double* coverages, std::int64_t n_levels,
                          int kind, int n_threads, double* intervals, double* means,
                          hdicore_error* error) {
    return guarded(error, [&] {
        const Model& engine = engine_of(model);
        ModelQuery query{.rows = rows_of(X)};
        const std::size_t n = query.rows.n_rows(), n_outputs = engine.n_outputs();
        const std::size_t n_results = product(n, n_outputs, "intervals");
        query.levels = checked_levels(coverages, n_levels, "coverages", false);
        query.intervals = matrix(intervals, n_results, 2 * query.levels.size(), "intervals");
        query.n_threads = thread_count(n_threads);
        if (by != nullptr) query.by = {by, n};
        if (other_means != nullptr) query.other_means = {other_means, n, n_outputs};
        if (means != nullptr) query.means = {means, n_results};
        const bool is_calibrated = kind == hdicore_usual && !engine.levels().empty();
        if (kind != hdicore_calibrated && !is_calibrated) {
            query.kind = kind == hdicore_usual ? Kind::hdi : kind_of(kind);
        }
        engine.intervals(query);
    });
}

int hdicore_model_mean(const hdicore_model* model, const hdicore_rows* X, int n_threads,
                       double* means, hdicore_error* error) {
    return guarded(error, [&] {
        const Model& engine = engine_of(model);
        ModelQuery query{.rows = rows_of(X), .kind = Kind::hdi};
        const std::size_t n = product(query.rows.n_rows(), engine.n_outputs(), "means");
        query.n_threads = thread_count(n_threads);
        query.means = elements(means, n, "means");
        engine.intervals(query);
    });
}

int hdicore_model_leaves(const hdicore_model* model, const hdicore_rows* X, int n_threads,
                         std::int32_t* leaves, hdicore_error* error) {
    return guarded(error, [&] {
        const Model& engine = engine_of(model);
        const RowMatrix rows = rows_of(X);
        const auto found = matrix(leaves, rows.n_rows(), engine.index()->n_trees(), "leaves");
        engine.leaves(rows, thread_count(n_threads), found);
    });
}

hdicore_index* hdicore_model_index(const hdicore_model* model) {
    return new (std::nothrow) hdicore_index{model->engine.index(), model->engine.bytes()};
}
