// c_table.cpp: fuzzes the functions of hdicore/c_api.h with numbers and pointers out of range
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "hdicore/c_api.h"
#include "training.hpp"

namespace {

using namespace fuzz;

const hdicore_api& api = *hdicore_get_api();

// n, or in some cases a number that no array can have.
std::int64_t maybe_wrong(Input& in, std::size_t n) {
    if (!in.one_in(16)) return static_cast<std::int64_t>(n);
    if (in.one_in(2)) return -1;
    const auto other = in.bits<std::int64_t>();
    return other < 0 || other > (std::int64_t{1} << 40) ? other : -1;
}
template <class T>
T* maybe_null(Input& in, T* pointer) {
    return in.one_in(16) ? nullptr : pointer;
}
// Mostly one thread, as starting others takes longer than the rest.
int some_threads(Input& in) {
    return in.one_in(16) ? in.bits<int>() : 1;
}
int maybe_any(Input& in, std::size_t n) {
    return in.one_in(8) ? in.bits<int>() : static_cast<int>(in.below(n));
}

std::vector<double> shares(Input& in) {
    std::vector<double> found(in.below(5));
    for (double& x : found) x = in.one_in(16) ? in.real() : in.share();
    return found;
}

// A call either succeeds or is invalid, and then says why.
bool succeeded(int status, hdicore_error& error) {
    REQUIRE(status == hdicore_ok || status == hdicore_invalid);
    if (status == hdicore_ok) return true;
    const void* end = std::memchr(error.message, 0, sizeof(error.message));
    REQUIRE(end != nullptr && error.message[0] != 0);
    return false;
}

void ask_sample(Input& in) {
    hdicore_error error;
    std::vector<double> values(in.below(12)), weights(values.size());
    for (double& value : values) value = in.real();
    for (double& weight : weights) weight = std::fabs(in.real());
    const std::vector<double> levels = shares(in);
    std::vector<double> results(2 * levels.size());
    const bool weighted = in.one_in(2);
    const double* given = weighted ? weights.data() : nullptr;
    int status =
        api.weighted_hdi(maybe_null(in, values.data()), given, maybe_wrong(in, values.size()),
                         levels.data(), maybe_wrong(in, levels.size()), results.data(), &error);
    if (succeeded(status, error)) {
        for (std::size_t k = 0; k < levels.size(); ++k) {
            REQUIRE(results[k] <= results[levels.size() + k]);
        }
    }
    status =
        api.weighted_quantiles(maybe_null(in, values.data()), given, maybe_wrong(in, values.size()),
                               maybe_null(in, levels.data()), maybe_wrong(in, levels.size()),
                               maybe_any(in, 13), maybe_null(in, results.data()), &error);
    succeeded(status, error);
}

void ask_index(Input& in, const hdicore_index* index, const samples::Training& training) {
    hdicore_error error;
    const std::size_t n_rows = in.below(training.n_rows + 1);
    std::vector<std::int32_t> leaves(
        training.leaves.begin(),
        training.leaves.begin() + static_cast<std::ptrdiff_t>(n_rows * training.n_trees));
    if (in.one_in(4)) in.poke(leaves);
    const std::size_t n = n_rows * training.n_outputs;
    const std::vector<double> levels = shares(in);
    std::vector<double> points(n * levels.size());
    for (double& point : points)
        point = in.one_in(64) ? in.real() : static_cast<double>(in.below(8));
    std::vector<double> results(n * std::max<std::size_t>(1, 2 * levels.size()));
    const hdicore_index* asked = maybe_null(in, index);
    const std::int32_t* at = maybe_null(in, leaves.data());
    double* to = maybe_null(in, results.data());
    const std::int64_t n_asked = maybe_wrong(in, n_rows);
    const std::int64_t n_levels = maybe_wrong(in, levels.size());
    const int n_threads = some_threads(in);
    switch (in.below(4)) {
        case 0:
            succeeded(api.index_mean(asked, at, n_asked, n_threads, to, &error), error);
            return;
        case 1:
            succeeded(api.index_intervals(asked, at, n_asked, levels.data(), n_levels,
                                          maybe_any(in, 4), n_threads, to, &error),
                      error);
            return;
        case 2:
            succeeded(api.index_quantiles(asked, at, n_asked, levels.data(), n_levels,
                                          maybe_any(in, 13), n_threads, to, &error),
                      error);
            return;
        default:
            succeeded(api.index_cdf(asked, at, n_asked, maybe_null(in, points.data()), n_levels,
                                    n_threads, to, &error),
                      error);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input in(data, size);
    if (in.one_in(4)) {
        ask_sample(in);
        return 0;
    }
    const samples::Training training = some_training(in);
    const hdicore_training_rows rows{maybe_wrong(in, training.n_rows),
                                     maybe_wrong(in, training.n_trees),
                                     maybe_wrong(in, training.n_outputs),
                                     maybe_null(in, training.leaves.data()),
                                     maybe_null(in, training.y.data()),
                                     training.counts.empty() ? nullptr : training.counts.data(),
                                     training.weights.empty() ? nullptr : training.weights.data()};
    hdicore_error error;
    hdicore_index* index = nullptr;
    const bool built = succeeded(
        api.index_build(maybe_null(in, &rows), some_threads(in), maybe_null(in, &index), &error),
        error);
    REQUIRE(built == (index != nullptr));
    if (!built) return 0;
    const std::unique_ptr<hdicore_index, decltype(api.index_release)> owner(index,
                                                                            api.index_release);
    REQUIRE(api.index_n_trees(index) == static_cast<std::int64_t>(training.n_trees));
    REQUIRE(api.index_n_outputs(index) == static_cast<std::int64_t>(training.n_outputs));
    hdicore_index* shared = api.index_share(index);
    ask_index(in, shared, training);
    api.index_release(shared);
    return 0;
}
