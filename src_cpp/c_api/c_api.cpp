// c_api/c_api.cpp: checks what comes from C, calls the engine, and keeps its exceptions in
// SPDX-License-Identifier: BSD-3-Clause
#include "hdicore/c_api.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>

#include "c_api/c_index.hpp"
#include "pmf/quantile.hpp"
#include "pmf/weighted_sample.hpp"
#include "scoring/scorer.hpp"

namespace hdicore {
namespace {

int explain(int status, const char* message, hdicore_error* error) noexcept {
    if (error != nullptr) {
        const std::size_t room = sizeof(error->message) - 1;
        const std::size_t n = std::min(std::char_traits<char>::length(message), room);
        std::copy_n(message, n, error->message);
        error->message[n] = '\0';
    }
    return status;
}

template <class Work>
int guarded(hdicore_error* error, const Work& work) noexcept {
    try {
        work();
        return hdicore_ok;
    } catch (const std::invalid_argument& failure) {
        return explain(hdicore_invalid, failure.what(), error);
    } catch (const std::bad_alloc&) {
        return explain(hdicore_no_memory, "there is not enough memory", error);
    } catch (const std::exception& failure) {
        return explain(hdicore_failed, failure.what(), error);
    } catch (...) {
        return explain(hdicore_failed, "something was thrown", error);
    }
}

[[noreturn]] void refuse(const std::string& why) {
    throw std::invalid_argument(why);
}

std::size_t size(std::int64_t n, const char* name) {
    if (n < 0) refuse(std::string(name) + " must not be negative, got " + std::to_string(n));
    // More than any memory holds; a product of two such numbers is still seen to be too large.
    constexpr std::int64_t max_size = std::int64_t{1} << 40;
    if (n > max_size)
        refuse(std::string(name) + " must be at most 2**40, got " + std::to_string(n));
    return static_cast<std::size_t>(n);
}

// a * b elements of an array, which memory could hold.
std::size_t product(std::size_t a, std::size_t b, const char* name) {
    constexpr std::size_t max_size = std::size_t{1} << 48;
    if (b > 0 && a > max_size / b)
        refuse(std::string(name) + " would have more than 2**48 elements");
    return a * b;
}

// n elements that may only be missing if there are none.
template <class T>
std::span<T> elements(T* data, std::size_t n, const char* name) {
    if (data == nullptr && n > 0) refuse(std::string(name) + " must not be null");
    return {data, n};
}

std::span<const double> checked_levels(const double* data, std::int64_t n, const char* name,
                                       bool zero_allowed) {
    const auto found = elements(data, size(n, "n_levels"), name);
    for (const double x : found) {
        if (x <= 1 && (x > 0 || (zero_allowed && x == 0))) continue;
        refuse(std::string(name) + " must lie in " + (zero_allowed ? "[0, 1]" : "(0, 1]") +
               ", got " + std::to_string(x));
    }
    return found;
}

unsigned thread_count(int n_threads) {
    return static_cast<unsigned>(size(n_threads, "n_threads"));
}

template <class Enum>
Enum one_of(int number, int last, const char* name) {
    if (number < 0 || number > last) {
        refuse(std::string(name) + " must be one of the numbers 0 to " + std::to_string(last) +
               ", got " + std::to_string(number));
    }
    return static_cast<Enum>(number);
}

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

Kind kind_of(int number) {
    constexpr auto same = [](Kind ours, hdicore_kind theirs) {
        return static_cast<int>(ours) == static_cast<int>(theirs);
    };
    static_assert(same(Kind::hdi, hdicore_hdi) && same(Kind::equal_tailed, hdicore_equal_tailed) &&
                  same(Kind::lower, hdicore_lower) && same(Kind::upper, hdicore_upper) &&
                  same(Kind::smoothed_hdi, hdicore_smoothed_hdi));
    return one_of<Kind>(number, hdicore_smoothed_hdi, "kind");
}

int weighted_hdi(const double* values, const double* weights, std::int64_t n,
                 const double* coverages, std::int64_t n_levels, double* intervals,
                 hdicore_error* error) noexcept {
    return guarded(error, [&] {
        const auto levels = checked_levels(coverages, n_levels, "coverages", false);
        const auto ends = elements(intervals, 2 * levels.size(), "intervals");
        const auto sample = elements(values, size(n, "n"), "values");
        weighted_hdis({1, sample.size(), sample.data(), weights, true}, levels, 1, ends.data());
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
        TrainingRows given{};
        given.n_rows = size(rows->n_rows, "n_rows");
        given.n_trees = size(rows->n_trees, "n_trees");
        given.n_outputs = size(rows->n_outputs, "n_outputs");
        if (given.n_trees > max_trees) refuse("n_trees must be at most 2**22");
        given.leaves =
            elements(rows->leaves, product(given.n_rows, given.n_trees, "leaves"), "leaves").data();
        given.y = elements(rows->y, product(given.n_rows, given.n_outputs, "y"), "y").data();
        given.counts = rows->counts;
        given.sample_weight = rows->sample_weight;
        given.only_known_leaves = true;
        *index = new hdicore_index{
            std::make_shared<const LeafIndex>(given, false, thread_count(n_threads))};
    });
}

hdicore_index* index_share(const hdicore_index* index) noexcept {
    return index == nullptr ? nullptr : new (std::nothrow) hdicore_index{index->engine};
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

// Reads what `ask` fills in for each of n results a row and output.
template <class Ask>
int query(const hdicore_index* index, const std::int32_t* leaves, std::int64_t n_rows,
          int n_threads, double* results, const char* name, hdicore_error* error,
          const Ask& ask) noexcept {
    return guarded(error, [&] {
        if (index == nullptr) refuse("index must not be null");
        const LeafIndex& engine = *index->engine;
        const std::size_t n = size(n_rows, "n_rows");
        const auto given = elements(leaves, product(n, engine.n_trees(), "leaves"), "leaves");
        const Execution execution{.n_threads = thread_count(n_threads)};
        Request request;
        const std::size_t n_each = ask(request);
        elements(results, product(product(n, engine.n_outputs(), name), n_each, name), name);
        score(engine, GivenLeaves(engine, given.data(), n), nullptr, request, execution);
    });
}

int index_mean(const hdicore_index* index, const std::int32_t* leaves, std::int64_t n_rows,
               int n_threads, double* means, hdicore_error* error) noexcept {
    return query(index, leaves, n_rows, n_threads, means, "means", error, [&](Request& request) {
        request.mean.results = means;
        return std::size_t{1};
    });
}

int index_intervals(const hdicore_index* index, const std::int32_t* leaves, std::int64_t n_rows,
                    const double* coverages, std::int64_t n_levels, int kind, int n_threads,
                    double* intervals, hdicore_error* error) noexcept {
    return query(index, leaves, n_rows, n_threads, intervals, "intervals", error,
                 [&](Request& request) {
                     const auto levels = checked_levels(coverages, n_levels, "coverages", false);
                     request.intervals = {levels, kind_of(kind), intervals};
                     return 2 * levels.size();
                 });
}

int index_quantiles(const hdicore_index* index, const std::int32_t* leaves, std::int64_t n_rows,
                    const double* levels, std::int64_t n_levels, int interpolation, int n_threads,
                    double* quantiles, hdicore_error* error) noexcept {
    return query(index, leaves, n_rows, n_threads, quantiles, "quantiles", error,
                 [&](Request& request) {
                     const auto given = checked_levels(levels, n_levels, "levels", true);
                     request.quantiles = {given, interpolation_of(interpolation), quantiles};
                     return given.size();
                 });
}

int index_cdf(const hdicore_index* index, const std::int32_t* leaves, std::int64_t n_rows,
              const double* points, std::int64_t n_points, int n_threads, double* cdf,
              hdicore_error* error) noexcept {
    return query(index, leaves, n_rows, n_threads, cdf, "cdf", error, [&](Request& request) {
        const std::size_t n_each = size(n_points, "n_points");
        const std::size_t n =
            product(static_cast<std::size_t>(n_rows), index->engine->n_outputs(), "points");
        const auto given = elements(points, product(n, n_each, "points"), "points");
        for (const double point : given) {
            if (std::isnan(point)) refuse("points must not hold NaN");
        }
        request.cdf = {n_each, given.data(), true, cdf};
        return n_each;
    });
}

constexpr hdicore_api table{
    HDICORE_API_VERSION, sizeof(hdicore_api), weighted_hdi,  weighted_quantiles, index_build,
    index_share,         index_release,       index_n_trees, index_n_outputs,    index_mean,
    index_intervals,     index_quantiles,     index_cdf,
};

}  // namespace
}  // namespace hdicore

const hdicore_api* hdicore_get_api(void) {
    return &hdicore::table;
}
