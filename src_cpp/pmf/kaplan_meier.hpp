// pmf/kaplan_meier.hpp: weights of events and censored rows -> the distribution of the event's time
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>

#include "pmf/pmf.hpp"

namespace hdicore {

// Kaplan and Meier (1958) with the weights of a merged row: S falls by the factor (R - d) / R at
// each event, where d is its weight and R the weight from it on. In place: `times` (n,) and
// `cumulative` (n + 1,) are those of pairs of a time and whether the event came, events first, and
// `events` tells by rank which are events. Masses have 2^52 units in all; atoms that get none are
// left out. Every operation is one of IEEE 754, in one order. O(n).
//
// Each tree rounds R by less than a unit. In a run of events without a censored row between them S
// is a ratio of two R, so that each run moves S by at most 2 n_trees units of its share S / R.
Pmf kaplan_meier(std::span<double> times, std::span<mass_t> cumulative,
                 std::span<const rank_t> ranks, std::span<const std::uint8_t> events,
                 std::size_t n_trees) noexcept;

}  // namespace hdicore
