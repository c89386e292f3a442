// pmf/hdi.cpp: the linear sweep for the shortest interval
// SPDX-License-Identifier: BSD-3-Clause
#include "pmf/hdi.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

namespace hdicore {
namespace {

// Calls visit(i, j) for each start i from which the mass suffices, with the first end j at which it
// does. Ends never move back as starts advance (Theorem 2 of the paper).
template <class Visit>
void sweep(const Atoms& atoms, mass_t needed, Visit visit) noexcept {
    const mass_t* cumulative = atoms.cumulative.data();
    const mass_t last_start = atoms.total() - needed;
    std::size_t j = 0;
    for (std::size_t i = 0; i < atoms.size() && cumulative[i] <= last_start; ++i) {
        while (cumulative[j + 1] < cumulative[i] + needed) ++j;
        visit(i, j);
    }
}

double weighted_median(const Atoms& atoms) noexcept {
    const mass_t half = atoms.needed(0.5);
    const auto at = std::lower_bound(atoms.cumulative.begin() + 1, atoms.cumulative.end(), half);
    return atoms.values[static_cast<std::size_t>(at - atoms.cumulative.begin()) - 1];
}

}  // namespace

Interval shortest_interval(const Atoms& atoms, mass_t needed) noexcept {
    const double* values = atoms.values.data();
    double shortest = std::numeric_limits<double>::infinity();
    double runner_up = shortest;
    std::size_t first = 0;
    std::size_t last = atoms.size() - 1;
    sweep(atoms, needed, [&](std::size_t i, std::size_t j) {
        const double width = values[j] - values[i];
        if (width < shortest) {
            runner_up = shortest;
            shortest = width;
            first = i;
            last = j;
        } else {
            runner_up = std::min(runner_up, width);
        }
    });
    const double tied = shortest + 0x1p-48 * atoms.largest();
    if (runner_up > tied) return {values[first], values[last]};

    // Calls visit(i, j, mass) for the intervals of least width.
    const auto sweep_tied = [&](auto visit) {
        sweep(atoms, needed, [&](std::size_t i, std::size_t j) {
            if (!(values[j] - values[i] <= tied)) return;
            visit(i, j, atoms.cumulative[j + 1] - atoms.cumulative[i]);
        });
    };
    mass_t most = 0;
    sweep_tied([&](std::size_t, std::size_t, mass_t mass) { most = std::max(most, mass); });
    // Rounding leaves masses that are equal less than two units a tree apart.
    const mass_t as_much = most - 2 * static_cast<mass_t>(atoms.n_trees);
    std::size_t n_tied = 0;
    sweep_tied([&](std::size_t i, std::size_t j, mass_t mass) {
        if (mass < as_much || n_tied++ > 0) return;
        first = i;
        last = j;
    });
    if (n_tied == 1) return {values[first], values[last]};

    const double median = weighted_median(atoms);
    if (std::isnan(median)) return undecided;
    double nearest = std::numeric_limits<double>::infinity();
    sweep_tied([&](std::size_t i, std::size_t j, mass_t mass) {
        // Halves, so that the sum of two large values does not overflow.
        const double distance = std::fabs(values[i] / 2 + values[j] / 2 - median);
        if (mass >= as_much && distance < nearest) {
            nearest = distance;
            first = i;
            last = j;
        }
    });
    return {values[first], values[last]};
}

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
    if (values.empty()) throw std::invalid_argument("values must hold at least one value");
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (!std::isfinite(values[i])) {
            throw std::invalid_argument("values must be finite, got " + std::to_string(values[i]) +
                                        " at position " + std::to_string(i));
        }
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (!(std::isfinite(weights[i]) && weights[i] >= 0)) {
            throw std::invalid_argument("weights must be finite and not negative, got " +
                                        std::to_string(weights[i]) + " at position " +
                                        std::to_string(i));
        }
    }
    if (!weights.empty()) whole_weights(weights, 1, scratch_, given_);
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
    share_out(whole_, wide_shift, 0, cumulative_.data() + 1);
    observation_ = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < values_.size(); ++k) {
        const auto mass = static_cast<double>(cumulative_[k + 1]);
        observation_ = std::min(observation_, mass / static_cast<double>(copies_[k]));
    }
    std::partial_sum(cumulative_.begin(), cumulative_.end(), cumulative_.begin());
}

}  // namespace hdicore
