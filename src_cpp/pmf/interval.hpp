// pmf/interval.hpp: the table of the kinds of interval, with all that is known of each
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <span>

#include "hdicore/c_api.h"
#include "pmf/bucket_masses.hpp"
#include "pmf/hdi.hpp"

namespace hdicore {

// A kind is its number in the C table. Here are those that the engine itself asks for; `kinds` has
// all.
enum class Kind : int {
    hdi = hdicore_hdi,
    equal_tailed = hdicore_equal_tailed,
    lower = hdicore_lower,
    upper = hdicore_upper,
    averaged = hdicore_averaged,
};

// A row of the table.
struct KindOfInterval {
    Kind kind;
    const char* name;
    bool has_lower;  // whether the lower end is a number; else it is -infinity
    bool has_upper;
    // Whether each interval holds its coverage of the distribution. Others are read to be widened.
    bool holds_coverage;

    Interval (*read)(const Pmf& pmf, double coverage) noexcept;
    std::optional<Interval> (*read_partial)(const PartialPmf& pmf, double coverage) noexcept;
    // A share s such that, if s > 1/2, the interval is known from the two tails of the distribution
    // that hold more than 1 - s each.
    double (*min_share)(double coverage) noexcept;
    // Marks the buckets that may hold an end of the interval.
    void (*mark)(const BucketMasses& masses, double coverage, BucketSet& marked) noexcept;
};

// All kinds, by ascending numbers.
std::span<const KindOfInterval> kinds() noexcept;
const KindOfInterval& facts_of(Kind kind) noexcept;

// Interval of the given kind, 0 < coverage <= 1. Each kind accepts the same masses as sufficient.
Interval interval(const Pmf& pmf, double coverage, Kind kind) noexcept;
// The same; nothing if it depends on what lies in a gap.
std::optional<Interval> interval(const PartialPmf& pmf, double coverage, Kind kind) noexcept;

}  // namespace hdicore
