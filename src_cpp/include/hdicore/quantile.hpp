// hdicore/quantile.hpp: atoms -> quantiles, and the intervals that quantiles bound
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "hdicore/distribution.hpp"
#include "hdicore/hdi.hpp"

namespace hdicore {

// What to do between two atoms; the names are numpy's. The first two read the distribution function
// F. The others follow numpy's "linear" family, with the lightest atom's mass u in place of that of
// one observation: an atom of mass w with L to its left is the quantile at the levels from L / (1 -
// u) to (L + w - u) / (1 - u), and between those of two neighbours it is as the name says. For
// observations that weigh alike, one of them without ties, that is numpy's quantile, ties included.
enum class Interpolation {
    inverted_cdf,           // smallest atom with F >= level
    averaged_inverted_cdf,  // the same; where F equals the level, its mean with the next atom
    linear,
    lower,
    higher,
    midpoint,
    nearest,  // the lower one of two that are equally near
};

// Quantile at level in [0, 1]. O(log n_atoms) from F, O(n_atoms) in the other family.
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
