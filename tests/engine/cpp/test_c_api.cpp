// test_c_api.cpp: the table as published, shared indices, and errors instead of exceptions
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "check.hpp"
#include "hdicore/c_api.h"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

const hdicore_api& api = *hdicore_get_api();

struct Index {
    Index(const Training& rows, int n_threads = 1) {
        const hdicore_training_rows given{static_cast<std::int64_t>(rows.n_rows),
                                          static_cast<std::int64_t>(rows.n_trees),
                                          static_cast<std::int64_t>(rows.n_outputs),
                                          rows.leaves.data(),
                                          rows.y.data(),
                                          nullptr,
                                          nullptr};
        CHECK(api.index_build(&given, n_threads, &handle, nullptr) == hdicore_ok);
    }
    ~Index() { api.index_release(handle); }
    Index(const Index&) = delete;
    Index& operator=(const Index&) = delete;

    hdicore_index* handle = nullptr;
};

void set_instructions(const char* name) {
#ifdef _WIN32
    _putenv_s("HDICORE_INSTRUCTIONS", name);
#else
    setenv("HDICORE_INSTRUCTIONS", name, 1);
#endif
}

// Comes first: the engine chooses its instructions once.
void instructions_that_are_unknown_are_an_error() {
    Random random(4);
    const Training rows = random_training(random, 20, 2, 3, 1);
    const Index index(rows);
    double mean = 0;
    hdicore_error error;
    set_instructions("sse9");
    for (int call = 0; call < 2; ++call) {
        CHECK(api.index_mean(index.handle, rows.leaves.data(), 1, 1, &mean, &error) ==
              hdicore_invalid);
        CHECK(std::string(error.message).find("got 'sse9'") != std::string::npos);
    }
    set_instructions("portable");
    CHECK(api.index_mean(index.handle, rows.leaves.data(), 1, 1, &mean, &error) == hdicore_ok);
    set_instructions("sse9");
    CHECK(api.index_mean(index.handle, rows.leaves.data(), 1, 1, &mean, &error) == hdicore_ok);
}

void a_shared_index_outlives_the_first() {
    Random random(3);
    const Training rows = random_training(random, 50, 3, 4);
    hdicore_index* shared = nullptr;
    std::vector<double> expected(50), found(50);
    {
        const Index index(rows);
        CHECK(api.index_mean(index.handle, rows.leaves.data(), 50, 1, expected.data(), nullptr) ==
              0);
        shared = api.index_share(index.handle);
    }
    std::vector<std::thread> threads;
    for (int k = 0; k < 4; ++k) {
        threads.emplace_back([&] {
            std::vector<double> mine(50);
            const int status =
                api.index_mean(shared, rows.leaves.data(), 50, 2, mine.data(), nullptr);
            if (status != 0 || mine != expected) std::abort();
        });
    }
    for (std::thread& thread : threads) thread.join();
    api.index_release(shared);
    api.index_release(nullptr);
    CHECK(api.index_share(nullptr) == nullptr);
}

// Runs a call that must be refused, with `text` in its message.
template <class Call>
void refused(const std::string& text, const Call& call) {
    hdicore_error error{};
    CHECK(call(&error) == hdicore_invalid);
    const std::string message = error.message;
    if (message.find(text) == std::string::npos) check::fail(__FILE__, __LINE__, message);
    CHECK(call(nullptr) == hdicore_invalid);
}

void hostile_samples_are_refused() {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    const double one = 1, bad = nan, zero = 0, level = 0.9, too_much = 1.5;
    double found[2];
    const auto hdi = [&](const double* values, const double* weights, std::int64_t n,
                         const double* levels, std::int64_t n_levels, double* to) {
        return [=](hdicore_error* error) {
            return api.weighted_hdi(values, weights, n, levels, n_levels, to, error);
        };
    };
    refused("values must not be null", hdi(nullptr, nullptr, 1, &level, 1, found));
    refused("values must hold at least one", hdi(&one, nullptr, 0, &level, 1, found));
    refused("n must not be negative", hdi(&one, nullptr, -1, &level, 1, found));
    refused("values must be finite", hdi(&bad, nullptr, 1, &level, 1, found));
    refused("weights must be finite", hdi(&one, &bad, 1, &level, 1, found));
    refused("all be zero", hdi(&one, &zero, 1, &level, 1, found));
    refused("coverages must lie in (0, 1], got 1.5", hdi(&one, nullptr, 1, &too_much, 1, found));
    refused("coverages must lie in (0, 1]", hdi(&one, nullptr, 1, &zero, 1, found));
    refused("coverages must not be null", hdi(&one, nullptr, 1, nullptr, 1, found));
    refused("n_levels", hdi(&one, nullptr, 1, &level, -1, found));
    refused("intervals must not be null", hdi(&one, nullptr, 1, &level, 1, nullptr));
    for (const int way : {-1, 13}) {
        refused("interpolation", [&](hdicore_error* error) {
            return api.weighted_quantiles(&one, nullptr, 1, &level, 1, way, found, error);
        });
    }
    CHECK(api.weighted_quantiles(&one, nullptr, 1, &zero, 1, 0, found, nullptr) == hdicore_ok);
    CHECK(found[0] == 1);
}

void hostile_rows_and_queries_are_refused() {
    Random random(4);
    Training rows = random_training(random, 6, 2, 3);
    const hdicore_training_rows good{6, 2, 1, rows.leaves.data(), rows.y.data(), nullptr, nullptr};
    hdicore_index* index = nullptr;
    const auto build = [&](auto spoil) {
        return [&index, good, spoil](hdicore_error* error) {
            hdicore_training_rows bad = good;
            spoil(bad);
            return hdicore_get_api()->index_build(&bad, 1, &index, error);
        };
    };
    using Rows = hdicore_training_rows;
    refused("leaves must not be null", build([](Rows& r) { r.leaves = nullptr; }));
    refused("y must not be null", build([](Rows& r) { r.y = nullptr; }));
    refused("n_rows", build([](Rows& r) { r.n_rows = -1; }));
    refused("at least one training row", build([](Rows& r) { r.n_rows = 0; }));
    refused("trees", build([](Rows& r) { r.n_trees = 0; }));
    refused("n_trees", build([](Rows& r) { r.n_trees = std::int64_t{1} << 62; }));
    refused("output", build([](Rows& r) { r.n_outputs = 0; }));
    CHECK(index == nullptr);
    refused("rows must not be null",
            [&](hdicore_error* error) { return api.index_build(nullptr, 1, &index, error); });
    refused("index must not be null",
            [&](hdicore_error* error) { return api.index_build(&good, 1, nullptr, error); });
    refused("n_threads",
            [&](hdicore_error* error) { return api.index_build(&good, -1, &index, error); });

    const Index real(rows);
    const double level = 0.9;
    double found[2];
    const std::int32_t unseen[2]{-1, 17}, no_leaves[2]{-1, -1};
    const auto intervals = [&](const hdicore_index* of, const std::int32_t* leaves,
                               std::int64_t n_rows, int kind, double* to) {
        return [=, &level](hdicore_error* error) {
            return api.index_intervals(of, leaves, n_rows, &level, 1, kind, 1, to, error);
        };
    };
    refused("index must not be null", intervals(nullptr, unseen, 1, 0, found));
    refused("leaves[0, 1] must be a leaf of tree 1", intervals(real.handle, unseen, 1, 0, found));
    refused("leaves must not be null", intervals(real.handle, nullptr, 1, 0, found));
    refused("n_rows", intervals(real.handle, unseen, -1, 0, found));
    refused("kind must be one of the numbers 0, 1, 2, 3, 5",
            intervals(real.handle, no_leaves, 1, hdicore_upper + 1, found));
    refused("intervals must not be null", intervals(real.handle, no_leaves, 1, 0, nullptr));
    refused("points must not be null", [&](hdicore_error* error) {
        return api.index_cdf(real.handle, no_leaves, 1, nullptr, 1, 1, found, error);
    });
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    refused("points must not hold NaN", [&](hdicore_error* error) {
        return api.index_cdf(real.handle, no_leaves, 1, &nan, 1, 1, found, error);
    });
    const double free = 0;
    std::int64_t count = 0;
    refused("prices must be above 0 and finite", [&](hdicore_error* error) {
        return api.index_priced_intervals(real.handle, no_leaves, 1, &free, 1, 0, 1, found, &count,
                                          error);
    });
    refused("min_coverage must lie in [0, 1]", [&](hdicore_error* error) {
        return api.index_priced_intervals(real.handle, no_leaves, 1, &level, 1, -1, 1, found,
                                          &count, error);
    });
    refused("units must not be null", [&](hdicore_error* error) {
        return api.index_priced_intervals(real.handle, no_leaves, 1, &level, 1, 0, 1, found,
                                          nullptr, error);
    });
    const auto regions = [&](double coverage, int max_pieces, double gap, const hdicore_grid* grid,
                             double* ends) {
        return [=, &real, &no_leaves, &count](hdicore_error* error) {
            double bound = 0;
            return api.index_regions(real.handle, no_leaves, 1, coverage, max_pieces, gap, grid, 1,
                                     &count, ends, &bound, error);
        };
    };
    const hdicore_grid falling{1, 0, 5, 0}, empty{0, 1, 0, 0}, rough{0, 1, 5, nan};
    refused("coverage must lie in (0, 1]", regions(0, 1, 0, nullptr, found));
    refused("max_pieces must be from 1 to 8, got 9", regions(0.5, 9, 0, nullptr, found));
    refused("gap must be at least 0", regions(0.5, 1, nan, nullptr, found));
    refused("ends must not be null", regions(0.5, 1, 0, nullptr, nullptr));
    refused("grid must run from low", regions(0.5, 1, 0, &falling, found));
    refused("n_bins of grid must be from 1 to 4096", regions(0.5, 1, 0, &empty, found));
    refused("bandwidth of grid", regions(0.5, 1, 0, &rough, found));
    CHECK(regions(0.5, 1, 0, nullptr, found)(nullptr) == hdicore_ok && count == 0);
    // Products that would wrap around to nothing.
    constexpr std::int64_t huge = std::int64_t{1} << 62;
    refused("n_points must be at most", [&](hdicore_error* error) {
        return api.index_cdf(real.handle, no_leaves, 4, nullptr, huge, 1, nullptr, error);
    });
    refused("n_rows must be at most", intervals(real.handle, nullptr, huge, 0, nullptr));
    constexpr std::int64_t large = std::int64_t{1} << 40;
    refused("more than 2**48 elements", [&](hdicore_error* error) {
        return api.index_cdf(real.handle, nullptr, 0, nullptr, large, 1, nullptr, error) ==
                       hdicore_ok
                   ? api.index_cdf(real.handle, no_leaves, large, nullptr, large, 1, nullptr, error)
                   : -1;
    });
    CHECK(intervals(real.handle, no_leaves, 1, 0, found)(nullptr) == hdicore_ok);
    CHECK(std::isnan(found[0]) && std::isnan(found[1]));
    CHECK(intervals(real.handle, nullptr, 0, 0, nullptr)(nullptr) == hdicore_ok);
}

void models_that_are_none_are_refused() {
    hdicore_model* model = nullptr;
    const auto open = [&](const char* path, int opening, hdicore_model** to) {
        return [=](hdicore_error* error) { return api.model_open(path, opening, to, error); };
    };
    refused("path must not be null", open(nullptr, hdicore_mapped, &model));
    refused("model must not be null", open("none", hdicore_mapped, nullptr));
    refused("opening must be one of the numbers 0 to 1, got 2", open("none", 2, &model));
    hdicore_error error;
    CHECK(api.model_open("there is none", hdicore_copied, &model, &error) == hdicore_failed);
    CHECK(std::string(error.message).starts_with("cannot open the model file: "));
    api.model_close(model);
    const double row = 0, level = 0.5;
    double found[2];
    const hdicore_rows X{1, 1, nullptr, &row};
    refused("model must not be null", [&](hdicore_error* why) {
        return api.model_intervals(model, &X, &level, 1, hdicore_usual, 1, found, why);
    });
    refused("model must not be null",
            [&](hdicore_error* why) { return api.model_mean(model, &X, 1, found, why); });
    refused("model must not be null",
            [&](hdicore_error* why) { return api.model_leaves(model, &X, 1, nullptr, why); });
}

// What was published never changes: the places of the functions, and the numbers of words.
void the_table_is_as_it_was_published() {
    static_assert(offsetof(hdicore_api, version) == 0 && offsetof(hdicore_api, size) == 4);
    static_assert(HDICORE_API_VERSION >= 1 && sizeof(hdicore_error) == 256);
    static_assert(hdicore_ok == 0 && hdicore_invalid == 1 && hdicore_no_memory == 2 &&
                  hdicore_failed == 3);
    static_assert(hdicore_hdi == 0 && hdicore_equal_tailed == 1 && hdicore_lower == 2 &&
                  hdicore_upper == 3 && hdicore_averaged == 5);
    static_assert(hdicore_inverted_cdf == 0 && hdicore_averaged_inverted_cdf == 1 &&
                  hdicore_linear == 2 && hdicore_lower_atom == 3 && hdicore_higher_atom == 4 &&
                  hdicore_midpoint == 5 && hdicore_nearest == 6);
    using Error = hdicore_error*;
    using Index = const hdicore_index*;
    using Reals = const double*;
    using Leaves = const std::int32_t*;
    using Size = std::int64_t;
    using Model = const hdicore_model*;
    using Rows = const hdicore_rows*;
    static_assert(hdicore_mapped == 0 && hdicore_copied == 1 && hdicore_usual == -1 &&
                  hdicore_calibrated == -2);
    struct Published {
        std::uint32_t version;
        std::uint32_t size;
        int (*weighted_hdi)(Reals, Reals, Size, Reals, Size, double*, Error);
        int (*weighted_quantiles)(Reals, Reals, Size, Reals, Size, int, double*, Error);
        int (*index_build)(const hdicore_training_rows*, int, hdicore_index**, Error);
        hdicore_index* (*index_share)(Index);
        void (*index_release)(hdicore_index*);
        Size (*index_n_trees)(Index);
        Size (*index_n_outputs)(Index);
        int (*index_mean)(Index, Leaves, Size, int, double*, Error);
        int (*index_intervals)(Index, Leaves, Size, Reals, Size, int, int, double*, Error);
        int (*index_quantiles)(Index, Leaves, Size, Reals, Size, int, int, double*, Error);
        int (*index_cdf)(Index, Leaves, Size, Reals, Size, int, double*, Error);
        int (*index_priced_intervals)(Index, Leaves, Size, Reals, Size, double, int, double*, Size*,
                                      Error);
        int (*index_regions)(Index, Leaves, Size, double, int, double, const hdicore_grid*, int,
                             Size*, double*, double*, Error);
        int (*model_open)(const char*, int, hdicore_model**, Error);
        void (*model_close)(hdicore_model*);
        Size (*model_n_features)(Model);
        Size (*model_n_outputs)(Model);
        Size (*model_n_trees)(Model);
        const char* (*model_feature_name)(Model, Size);
        Size (*model_n_coverages)(Model);
        double (*model_coverage)(Model, Size);
        int (*model_intervals)(Model, Rows, Reals, Size, int, int, double*, Error);
        int (*model_mean)(Model, Rows, int, double*, Error);
        int (*model_leaves)(Model, Rows, int, std::int32_t*, Error);
        hdicore_index* (*model_index)(Model);
    };
    const auto same = []<class T, class U>(T Published::*, U hdicore_api::*) {
        return std::is_same_v<T, U>;
    };
#define CHECK_SAME(name)                               \
    CHECK(same(&Published::name, &hdicore_api::name)); \
    CHECK(offsetof(Published, name) == offsetof(hdicore_api, name))
    CHECK_SAME(weighted_hdi);
    CHECK_SAME(weighted_quantiles);
    CHECK_SAME(index_build);
    CHECK_SAME(index_share);
    CHECK_SAME(index_release);
    CHECK_SAME(index_n_trees);
    CHECK_SAME(index_n_outputs);
    CHECK_SAME(index_mean);
    CHECK_SAME(index_intervals);
    CHECK_SAME(index_quantiles);
    CHECK_SAME(index_cdf);
    CHECK_SAME(index_priced_intervals);
    CHECK_SAME(index_regions);
    CHECK_SAME(model_open);
    CHECK_SAME(model_close);
    CHECK_SAME(model_n_features);
    CHECK_SAME(model_n_outputs);
    CHECK_SAME(model_n_trees);
    CHECK_SAME(model_feature_name);
    CHECK_SAME(model_n_coverages);
    CHECK_SAME(model_coverage);
    CHECK_SAME(model_intervals);
    CHECK_SAME(model_mean);
    CHECK_SAME(model_leaves);
    CHECK_SAME(model_index);
#undef CHECK_SAME
}

}  // namespace

int main() {
    instructions_that_are_unknown_are_an_error();
    the_table_is_as_it_was_published();
    CHECK(api.version == HDICORE_API_VERSION && api.size == sizeof(hdicore_api));
    a_shared_index_outlives_the_first();
    hostile_samples_are_refused();
    hostile_rows_and_queries_are_refused();
    models_that_are_none_are_refused();
    return check::finish();
}
