// hdicore/quantile.hpp: atoms -> quantiles, and the intervals that quantiles bound
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "hdicore/distribution.hpp"
#include "hdicore/hdi.hpp"

namespace hdicore {

// What to do between two atoms; the names are numpy's. The first two read the distribution function
// F; the others place atom k at the level L / (L + R), with L and R the mass strictly left and
// right of it. For n equally heavy atoms that is (k - 1) / (n - 1), numpy's "linear" family.
enum class Interpolation {
    inverted_cdf,           // smallest atom with F >= level
    averaged_inverted_cdf,  // the same; where F equals the level, its mean with the next atom
    linear,
    lower,
    higher,
    midpoint,
    nearest,  // the lower one of two that are equally near
};

// Quantile at level in [0, 1], O(log n_atoms).
double quantile(const Atoms& atoms, double level, Interpolation interpolation) noexcept;

enum class Kind {
    hdi,           // shortest closed interval that holds the coverage
    equal_tailed,  // from the (1 - coverage) / 2 to the (1 + coverage) / 2 quantile
    lower,         // [largest atom such that the mass from it on holds the coverage, inf]
    upper,         // [-inf, smallest atom such that the mass up to it holds the coverage]
};

// Interval of the given kind, 0 < coverage <= 1. Each kind accepts the same masses as sufficient.
Interval interval(const Atoms& atoms, double coverage, Kind kind) noexcept;

}  // namespace hdicore
