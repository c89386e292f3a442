// pmf/weighted_sample.cpp: checks and sorts a sample, and makes its weights whole numbers
// SPDX-License-Identifier: BSD-3-Clause
#include "pmf/weighted_sample.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>

#include "base/fixed_point.hpp"
#include "base/parallel.hpp"
#include "base/refusal.hpp"
#include "pmf/hdi.hpp"

namespace hdicore {
namespace {

void check_sample(std::span<const double> values, std::span<const double> weights) {
    if (values.empty()) refuse("values must hold at least one value");
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (!std::isfinite(values[i])) {
            refuse("values must be finite, got " + std::to_string(values[i]) + " at position " +
                   std::to_string(i));
        }
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (!(std::isfinite(weights[i]) && weights[i] >= 0)) {
            refuse("weights must be finite and not negative, got " + std::to_string(weights[i]) +
                   " at position " + std::to_string(i));
        }
    }
}

}  // namespace

void WeightedSample::reserve(std::size_t n) {
    order_.reserve(n);
    values_.reserve(n);
    whole_.reserve(n);
    copies_.reserve(n);
    cumulative_.reserve(n + 1);
    scratch_.reserve(n);
    given_.reserve(n);
}

void WeightedSample::assign(std::span<const double> values, std::span<const double> weights,
                            Interruption& interruption) {
    check_sample(values, weights);
    if (!weights.empty()) integer_weights(weights, 1, scratch_, given_);
    const auto weight = [&](std::size_t i) { return weights.empty() ? count_t{1} : given_[i]; };

    order_.resize(values.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::uint32_t n_compared = 0;
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
        if (++n_compared % 65536 == 0) interruption.check();
        return values[a] < values[b];
    });
    values_.clear();
    whole_.clear();
    copies_.clear();
    for (const std::size_t i : order_) {
        if (weight(i) == 0) continue;
        if (values_.empty() || values_.back() != values[i]) {
            values_.push_back(values[i] + 0.0);  // one zero for -0.0 and 0.0
            whole_.push_back(0);
            copies_.push_back(0);
        }
        whole_.back() += weight(i);
        ++copies_.back();
    }
    cumulative_.resize(values_.size() + 1);
    cumulative_[0] = 0;
    apportion(whole_, wide_shift, 0, cumulative_.data() + 1);
    observation_ = infinity;
    for (std::size_t k = 0; k < values_.size(); ++k) {
        const auto mass = static_cast<double>(cumulative_[k + 1]);
        observation_ = std::min(observation_, mass / static_cast<double>(copies_[k]));
    }
    std::partial_sum(cumulative_.begin(), cumulative_.end(), cumulative_.begin());
}

void weighted_hdis(const SampleMatrix& samples, std::span<const double> coverages,
                   unsigned n_threads, Matrix<double> intervals, Interruption& interruption) {
    const Matrix<const double> values = samples.values;
    const Matrix<const double> weights = samples.weights;
    const std::size_t n_values = values.cols();
    const std::size_t n_levels = coverages.size();
    // Samples at a time: finding out what to do next takes as long as sorting some values.
    const std::size_t at_once = (std::size_t{1} << 12) / (n_values + 1) + 1;
    const auto make_worker = [&]() -> Worker {
        const auto sorted = std::make_shared<WeightedSample>();
        sorted->reserve(n_values);
        return [&, sorted](std::size_t block) {
            const std::size_t end = std::min(values.rows(), (block + 1) * at_once);
            for (std::size_t i = block * at_once; i < end; ++i) {
                std::span<const double> own_weights;
                if (!weights.empty()) own_weights = weights.row(weights.rows() == 1 ? 0 : i);
                sorted->assign(values.row(i), own_weights, interruption);
                const Pmf pmf = sorted->pmf();
                for (std::size_t k = 0; k < n_levels; ++k) {
                    const Interval hdi = shortest_interval(pmf, pmf.needed(coverages[k]));
                    intervals(i, k) = hdi.lower;
                    intervals(i, n_levels + k) = hdi.upper;
                }
            }
        };
    };
    parallel_for((values.rows() + at_once - 1) / at_once, n_threads, make_worker, interruption);
}

}  // namespace hdicore
