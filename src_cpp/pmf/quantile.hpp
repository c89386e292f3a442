// pmf/quantile.hpp: a distribution -> quantiles
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include "hdicore/c_api.h"
#include "pmf/bucket_masses.hpp"
#include "pmf/pmf.hpp"

namespace hdicore {

// What to do between two atoms; the names are numpy's. The first two read the distribution function
// F. The others need the mass u of one observation (Pmf::observation): with the total mass W, the
// distribution stands for W / u observations, an atom of mass w with L to its left for those at the
// positions L / u to (L + w) / u - 1. Where that is so, observations weigh alike, these are numpy's
// quantiles, ties included; Hyndman, Fan: Sample quantiles in statistical packages, 1996, number
// the first nine.
enum class Interpolation {
    // The smallest atom with F >= level, and the same but where F equals the level: its mean with
    // the
    // next atom.
    inverted_cdf = hdicore_inverted_cdf,
    averaged_inverted_cdf = hdicore_averaged_inverted_cdf,
    linear = hdicore_linear,
    lower = hdicore_lower_atom,
    higher = hdicore_higher_atom,
    midpoint = hdicore_midpoint,
    nearest = hdicore_nearest,  // of two that are equally near, the one at an even position
    closest_observation = hdicore_closest_observation,
    interpolated_inverted_cdf = hdicore_interpolated_inverted_cdf,
    hazen = hdicore_hazen,
    weibull = hdicore_weibull,
    median_unbiased = hdicore_median_unbiased,
    normal_unbiased = hdicore_normal_unbiased,
};

// Quantile at level in [0, 1]. O(log n_atoms).
double quantile(const Pmf& pmf, double level, Interpolation interpolation) noexcept;

// Quantile by Interpolation::inverted_cdf. O(log n_atoms).
double inverted_cdf(const Pmf& pmf, double level) noexcept;
std::optional<double> inverted_cdf(const PartialPmf& pmf, double level) noexcept;
// A share s such that, if s > 1/2, the two tails that hold more than 1 - s each hold it.
double min_share_of_inverted_cdf(double level) noexcept;
// Marks the buckets that may hold it.
void mark_inverted_cdf(const BucketMasses& masses, double level, BucketSet& marked) noexcept;

}  // namespace hdicore
