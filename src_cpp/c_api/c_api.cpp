// c_api/c_api.cpp: checks what comes from C, calls the engine, and keeps its exceptions in
// SPDX-License-Identifier: BSD-3-Clause
#include "hdicore/c_api.h"

#include <cmath>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>

#include "c_api/arguments.hpp"
#include "c_api/c_index.hpp"
#include "pmf/quantile.hpp"
#include "pmf/weighted_sample.hpp"
#include "scoring/scorer.hpp"

namespace hdicore {
namespace {

using namespace arguments;

Interpolation interpolation_of(int number) {
    constexpr auto same = [](Interpolation ours, hdicore_interpolation theirs) {
        return static_cast<int>(ours) == static_cast<int>(theirs);
    };
    static_assert(
        same(Interpolation::inverted_cdf, hdicore_inverted_cdf) &&
        same(Interpolation::averaged_inverted_cdf, hdicore_averaged_inverted_cdf) &&
        same(Interpolation::linear, hdicore_linear) &&
        same(Interpolation::lower, hdicore_lower_atom) &&
        same(Interpolation::higher, hdicore_higher_atom) &&
        same(Interpolation::midpoint, hdicore_midpoint) &&
        same(Interpolation::nearest, hdicore_nearest) &&
        same(Interpolation::closest_observation, hdicore_closest_observation) &&
        same(Interpolation::interpolated_inverted_cdf, hdicore_interpolated_inverted_cdf) &&
        same(Interpolation::hazen, hdicore_hazen) &&
        same(Interpolation::weibull, hdicore_weibull) &&
        same(Interpolation::median_unbiased, hdicore_median_unbiased) &&
        same(Interpolation::normal_unbiased, hdicore_normal_unbiased));
    return one_of<Interpolation>(number, hdicore_normal_unbiased, "interpolation");
}

int weighted_hdi(const double* values, const double* weights, std::int64_t n,
                 const double* coverages, std::int64_t n_levels, double* intervals,
                 hdicore_error* error) noexcept {
    return guarded(error, [&] {
        const auto levels = checked_levels(coverages, n_levels, "coverages", false);
        const auto ends = elements(intervals, 2 * levels.size(), "intervals");
        const auto sample = elements(values, size(n, "n"), "values");
        const Matrix values_of(sample.data(), 1, sample.size());
        Matrix<const double> weights_of;
        if (weights != nullptr) weights_of = {weights, 1, sample.size()};
        weighted_hdis({values_of, weights_of}, levels, 1, {ends.data(), 1, ends.size()});
    });
}

int weighted_quantiles(const double* values, const double* weights, std::int64_t n,
                       const double* levels, std::int64_t n_levels, int interpolation,
                       double* quantiles, hdicore_error* error) noexcept {
    return guarded(error, [&] {
        const auto given = checked_levels(levels, n_levels, "levels", true);
        const auto results = elements(quantiles, given.size(), "quantiles");
        const Interpolation checked = interpolation_of(interpolation);
        const auto values_given = elements(values, size(n, "n"), "values");
        std::span<const double> weights_given;
        if (weights != nullptr) weights_given = {weights, values_given.size()};
        WeightedSample sample;
        sample.assign(values_given, weights_given);
        for (std::size_t k = 0; k < given.size(); ++k) {
            results[k] = quantile(sample.pmf(), given[k], checked);
        }
    });
}

int index_build(const hdicore_training_rows* rows, int n_threads, hdicore_index** index,
                hdicore_error* error) noexcept {
    return guarded(error, [&] {
        if (index == nullptr) refuse("index must not be null");
        if (rows == nullptr) refuse("rows must not be null");
        const std::size_t n_rows = size(rows->n_rows, "n_rows");
        const std::size_t n_trees = size(rows->n_trees, "n_trees");
        const std::size_t n_outputs = size(rows->n_outputs, "n_outputs");
        if (n_trees > max_trees) refuse("n_trees must be at most 2**22");
        TrainingRows given{.n_trees = n_trees, .mask_leaves = true};
        given.leaves = matrix(rows->leaves, n_rows, n_trees, "leaves");
        given.y = matrix(rows->y, n_rows, n_outputs, "y");
        if (rows->counts != nullptr) given.counts = {rows->counts, n_rows, n_trees};
        if (rows->sample_weight != nullptr) given.sample_weight = {rows->sample_weight, n_rows};
        *index = new hdicore_index{
            std::make_shared<const LeafIndex>(given, false, thread_count(n_threads))};
    });
}

hdicore_index* index_share(const hdicore_index* index) noexcept {
    return index == nullptr ? nullptr : new (std::nothrow) hdicore_index(*index);
}

void index_release(hdicore_index* index) noexcept {
    delete index;
}

std::int64_t index_n_trees(const hdicore_index* index) noexcept {
    return static_cast<std::int64_t>(index->engine->n_trees());
}

std::int64_t index_n_outputs(const hdicore_index* index) noexcept {
    return static_cast<std::int64_t>(index->engine->n_outputs());
}

// Answers the request that ask(n_rows, n_outputs) makes.
template <class Ask>
int query(const hdicore_index* index, const std::int32_t* leaves, std::int64_t n_rows,
          int n_threads, hdicore_error* error, const Ask& ask) noexcept {
    return guarded(error, [&] {
        if (index == nullptr) refuse("index must not be null");
        if (index->file) index->file->require_unchanged();
        const LeafIndex& engine = *index->engine;
        const std::size_t n = size(n_rows, "n_rows");
        const auto given = matrix(leaves, n, engine.n_trees(), "leaves");
        const Execution execution{.n_threads = thread_count(n_threads)};
        const Request request = ask(n, engine.n_outputs());
        score(engine, GivenLeaves(engine, given), {}, request, execution);
    });
}

int index_mean(const hdicore_index* index, const std::int32_t* leaves, std::int64_t n_rows,
               int n_threads, double* means, hdicore_error* error) noexcept {
    return query(index, leaves, n_rows, n_threads, error, [&](std::size_t n, std::size_t outputs) {
        return Request{.mean = {elements(means, product(n, outputs, "means"), "means")}};
    });
}

int index_intervals(const hdicore_index* index, const std::int32_t* leaves, std::int64_t n_rows,
                    const double* coverages, std::int64_t n_levels, int kind, int n_threads,
                    double* intervals, hdicore_error* error) noexcept {
    return query(index, leaves, n_rows, n_threads, error, [&](std::size_t n, std::size_t outputs) {
        const auto levels = checked_levels(coverages, n_levels, "coverages", false);
        const Kind checked = kind_of(kind);
        const auto ends =
            matrix(intervals, product(n, outputs, "intervals"), 2 * levels.size(), "intervals");
        return Request{.intervals = {levels, checked, ends}};
    });
}

int index_quantiles(const hdicore_index* index, const std::int32_t* leaves, std::int64_t n_rows,
                    const double* levels, std::int64_t n_levels, int interpolation, int n_threads,
                    double* quantiles, hdicore_error* error) noexcept {
    return query(index, leaves, n_rows, n_threads, error, [&](std::size_t n, std::size_t outputs) {
        const auto given = checked_levels(levels, n_levels, "levels", true);
        const Interpolation checked = interpolation_of(interpolation);
        const auto results =
            matrix(quantiles, product(n, outputs, "quantiles"), given.size(), "quantiles");
        return Request{.quantiles = {given, checked, results}};
    });
}

int index_cdf(const hdicore_index* index, const std::int32_t* leaves, std::int64_t n_rows,
              const double* points, std::int64_t n_points, int n_threads, double* cdf,
              hdicore_error* error) noexcept {
    return query(index, leaves, n_rows, n_threads, error, [&](std::size_t n, std::size_t outputs) {
        const std::size_t n_each = size(n_points, "n_points");
        const std::size_t n_results = product(n, outputs, "points");
        const auto given = matrix(points, n_results, n_each, "points");
        for (std::size_t i = 0; i < given.size(); ++i) {
            if (std::isnan(given.data()[i])) refuse("points must not hold NaN");
        }
        return Request{.cdf = {given, true, matrix(cdf, n_results, n_each, "cdf")}};
    });
}

int index_priced_intervals(const hdicore_index* index, const std::int32_t* leaves,
                           std::int64_t n_rows, const double* prices, std::int64_t n_prices,
                           double min_coverage, int n_threads, double* intervals,
                           std::int64_t* units, hdicore_error* error) noexcept {
    return query(index, leaves, n_rows, n_threads, error, [&](std::size_t n, std::size_t outputs) {
        const auto given = elements(prices, size(n_prices, "n_prices"), "prices");
        for (const double x : given) {
            if (x > 0 && std::isfinite(x)) continue;
            refuse("prices must be above 0 and finite, got " + std::to_string(x));
        }
        checked_levels(&min_coverage, 1, "min_coverage", true);
        const std::size_t n_results = product(n, outputs, "intervals");
        const auto ends = matrix(intervals, n_results, 2 * given.size(), "intervals");
        return Request{
            .priced = {given, min_coverage, ends, matrix(units, n_results, given.size(), "units")}};
    });
}

int index_regions(const hdicore_index* index, const std::int32_t* leaves, std::int64_t n_rows,
                  double coverage, int max_pieces, double gap, const hdicore_grid* grid,
                  int n_threads, std::int64_t* n_pieces, double* ends, double* bounds,
                  hdicore_error* error) noexcept {
    std::optional<RegionGrid> bins;
    return query(index, leaves, n_rows, n_threads, error, [&](std::size_t n, std::size_t outputs) {
        checked_levels(&coverage, 1, "coverage", false);
        constexpr int most = static_cast<int>(max_region_pieces);
        if (max_pieces < 1 || max_pieces > most) {
            refuse("max_pieces must be from 1 to " + std::to_string(most) + ", got " +
                   std::to_string(max_pieces));
        }
        if (!(gap >= 0 && std::isfinite(gap))) {
            refuse("gap must be at least 0 and finite, got " + std::to_string(gap));
        }
        if (grid != nullptr) {
            bins.emplace(grid->low, grid->high, size(grid->n_bins, "n_bins of grid"),
                         grid->bandwidth);
        }
        const auto k = static_cast<std::size_t>(max_pieces);
        const std::size_t n_results = product(n, outputs, "ends");
        return Request{.regions = {coverage,
                                   {k, gap, bins ? &*bins : nullptr},
                                   matrix(ends, n_results, 2 * k, "ends"),
                                   elements(n_pieces, n_results, "n_pieces"),
                                   elements(bounds, n_results, "bounds")}};
    });
}

constexpr hdicore_api table{
    HDICORE_API_VERSION,
    sizeof(hdicore_api),
    weighted_hdi,
    weighted_quantiles,
    index_build,
    index_share,
    index_release,
    index_n_trees,
    index_n_outputs,
    index_mean,
    index_intervals,
    index_quantiles,
    index_cdf,
    index_priced_intervals,
    index_regions,
    hdicore_model_open,
    hdicore_model_close,
    hdicore_model_n_features,
    hdicore_model_n_outputs,
    hdicore_model_n_trees,
    hdicore_model_feature_name,
    hdicore_model_n_coverages,
    hdicore_model_coverage,
    hdicore_model_intervals,
    hdicore_model_mean,
    hdicore_model_leaves,
    hdicore_model_index,
    hdicore_model_predict,
};

}  // namespace
}  // namespace hdicore

const hdicore_api* hdicore_get_api(void) {
    return &hdicore::table;
}
