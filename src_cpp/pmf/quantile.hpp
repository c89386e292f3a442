// pmf/quantile.hpp: atoms -> quantiles, and the intervals that quantiles bound
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "merge/distribution.hpp"
#include "pmf/hdi.hpp"

namespace hdicore {

// What to do between two atoms; the names are numpy's. The first two read the distribution function
// F. The others need the mass u of one observation (Atoms::observation): with the total mass W, the
// distribution stands for W / u observations, an atom of mass w with L to its left for those at the
// positions L / u to (L + w) / u - 1. Where that is so, observations weigh alike, these are numpy's
// quantiles, ties included; Hyndman, Fan: Sample quantiles in statistical packages, 1996, number
// the first nine.
enum class Interpolation {
    inverted_cdf,           // smallest atom with F >= level
    averaged_inverted_cdf,  // the same; where F equals the level, its mean with the next atom
    linear,
    lower,
    higher,
    midpoint,
    nearest,  // of two that are equally near, the one at an even position
    closest_observation,
    interpolated_inverted_cdf,
    hazen,
    weibull,
    median_unbiased,
    normal_unbiased,
};

// Quantile at level in [0, 1]. O(log n_atoms).
double quantile(const Atoms& atoms, double level, Interpolation interpolation) noexcept;

enum class Kind {
    hdi,           // shortest closed interval that holds the coverage
    equal_tailed,  // from the (1 - coverage) / 2 to the (1 + coverage) / 2 quantile
    lower,         // [largest atom such that the mass from it on holds the coverage, inf]
    upper,         // [-inf, smallest atom such that the mass up to it holds the coverage]
};

// Adds the buckets that may hold what quantile by inverted_cdf, or interval, reads; some tree
// speaks, and units are of narrow_shift.
void mark_quantile(const BucketMasses& masses, double level, BucketSet& marked) noexcept;
void mark_interval(const BucketMasses& masses, double coverage, Kind kind,
                   BucketSet& marked) noexcept;

// Interval of the given kind, 0 < coverage <= 1. Each kind accepts the same masses as sufficient.
Interval interval(const Atoms& atoms, double coverage, Kind kind) noexcept;

}  // namespace hdicore
