// pmf/kaplan_meier.hpp: weights of events and censored rows -> the distribution of the event's time
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>

#include "pmf/pmf.hpp"

namespace hdicore {

// Masses of censored targets have 2^survival_shift units in all.
inline constexpr int survival_shift = 52;

// How far the rounding of units moves the mass between two atoms at most, if no entry of a leaf has
// fewer than `least_units` of 2^shift. A tree rounds a weight by less than a unit, and adds nothing
// where it has none: weights have a relative error of at most 1 / least_units, hazards and S one of
// twice that.
mass_t survival_rounding(mass_t least_units, int shift) noexcept;

// Kaplan and Meier (1958) with the weights of a merged row: S falls by the factor (R - d) / R at
// each event, where d is its weight and R the weight from it on. In place: `times` (n,) and
// `cumulative` (n + 1,) are those of pairs of a time and whether the event came, events first, and
// `events` tells by rank which are events. Atoms that get no unit are left out. Every operation is
// one of IEEE 754, in one order. O(n).
Pmf kaplan_meier(std::span<double> times, std::span<mass_t> cumulative,
                 std::span<const rank_t> ranks, std::span<const std::uint8_t> events,
                 std::size_t n_trees, mass_t rounding) noexcept;

}  // namespace hdicore
