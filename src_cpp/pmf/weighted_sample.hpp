// pmf/weighted_sample.hpp: a weighted sample in any order -> its distribution and its HDIs
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/interruption.hpp"
#include "base/matrix.hpp"
#include "pmf/pmf.hpp"

namespace hdicore {

// Draws of a posterior, importance weights, the like. Memory is kept from sample to sample.
class WeightedSample {
  public:
    // Makes room for n values, so that assign allocates nothing.
    void reserve(std::size_t n);

    // values (n,) are finite; weights (n,) are finite, not negative and not all zero, or none are
    // given and all values weigh alike. O(n log n). Throws std::invalid_argument otherwise.
    void assign(std::span<const double> values, std::span<const double> weights,
                Interruption& interruption = Interruption::never());

    Pmf pmf() const noexcept { return {values_, cumulative_, 1, wide_shift, observation_}; }

  private:
    std::vector<double> scratch_;
    std::vector<count_t> given_;  // (n,) whole weights
    std::vector<std::size_t> order_;
    std::vector<double> values_;
    std::vector<count_t> whole_;       // weight of each atom
    std::vector<std::size_t> copies_;  // values behind each atom
    std::vector<mass_t> cumulative_;
    double observation_ = 0;  // the least mass of an atom over the values behind it
};

// Many samples of one size.
struct SampleMatrix {
    Matrix<const double> values;     // (n_samples, n_values)
    Matrix<const double> weights{};  // of the same shape, or one row for all samples, or none: 1
};

// Shortest intervals of each sample at coverages in (0, 1], (n_samples, 2 * n_levels), lower ends
// first. O(n_values log n_values) for each. Throws as WeightedSample::assign.
void weighted_hdis(const SampleMatrix& samples, std::span<const double> coverages,
                   unsigned n_threads, Matrix<double> intervals,
                   Interruption& interruption = Interruption::never());

}  // namespace hdicore
