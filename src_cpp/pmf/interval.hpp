// pmf/interval.hpp: the kinds of interval, and for each all that the engine needs to know of it
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include "pmf/bucket_masses.hpp"
#include "pmf/hdi.hpp"

namespace hdicore {

enum class Kind {
    hdi,           // shortest closed interval that holds the coverage
    equal_tailed,  // from the (1 - coverage) / 2 to the (1 + coverage) / 2 quantile
    lower,         // [largest atom such that the mass from it on holds the coverage, inf]
    upper,         // [-inf, smallest atom such that the mass up to it holds the coverage]
    averaged = 5,  // midway between the HDI and the equal-tailed interval; 4 was another kind
};

// Interval of the given kind, 0 < coverage <= 1. Each kind accepts the same masses as sufficient.
Interval interval(const Pmf& pmf, double coverage, Kind kind) noexcept;
// The same; nothing if it depends on what lies in a gap.
std::optional<Interval> interval(const PartialPmf& pmf, double coverage, Kind kind) noexcept;

// A share s such that, if s > 1/2, the interval is known from the two tails of the distribution
// that hold more than 1 - s each.
double min_share(double coverage, Kind kind) noexcept;

// Marks the buckets that may hold an end of the interval.
void mark_interval(const BucketMasses& masses, double coverage, Kind kind,
                   BucketSet& marked) noexcept;

}  // namespace hdicore
