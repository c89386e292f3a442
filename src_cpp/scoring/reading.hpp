// scoring/reading.hpp: a distribution -> all that is asked of it, and how much of it that takes
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>

#include "merge/distribution.hpp"
#include "pmf/quantile.hpp"

namespace hdicore {

// What to read from the conditional distribution of each row; what is left empty is not read. All
// is read from one gathering. Where no tree speaks for a row, its results are NaN.
struct Wanted {
    double* mean = nullptr;  // (n_rows, n_outputs)

    std::span<const double> coverages{};  // (n_levels,) in (0, 1]
    Kind kind = Kind::hdi;
    double* intervals = nullptr;  // (n_rows, n_outputs, 2, n_levels)

    std::span<const double> levels{};  // (n_levels,) in [0, 1]
    Interpolation interpolation = Interpolation::inverted_cdf;
    double* quantiles = nullptr;  // (n_rows, n_outputs, n_levels)

    std::size_t n_points = 0;
    const double* points = nullptr;  // (n_rows, n_outputs, n_points)
    double* cdf = nullptr;           // (n_rows, n_outputs, n_points) P(Y <= point)
    bool inclusive = true;           // if not, P(Y < point)

    std::size_t n_draws = 0;
    double* draws = nullptr;  // (n_rows, n_outputs, n_draws) uniforms in [0, 1), replaced by draws
};

// Whether what is to be read hangs on every atom.
bool needs_all(const Wanted& wanted) noexcept;

// Whether what is to be read hangs on the mass of one observation.
bool needs_observation(const Wanted& wanted) noexcept;

// The share of a distribution that each interval and one-sided bound to be read holds at least, so
// that the tails outside are enough; 0 if every atom is needed.
double least_share(const Wanted& wanted) noexcept;

// Adds the buckets that hold all that is to be read, if not every atom is needed.
void mark(const BucketMasses& masses, const Wanted& wanted, BucketSet& marked) noexcept;

// Reads for one row and output, number `at` of all. False if a gap of the distribution leaves
// something open.
[[nodiscard]] bool read(const Atoms& atoms, const Wanted& wanted, std::size_t at) noexcept;

}  // namespace hdicore
