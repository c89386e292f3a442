// pmf/smoothed_hdi.hpp: a distribution -> the weighted mean of its windows, which has no jumps
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include "pmf/hdi.hpp"
#include "pmf/pmf.hpp"

namespace hdicore {

// Windows wider than this times the least width count as none: they would weigh exp(-37.5) < 2^-54.
inline constexpr double smoothing_reach = 8.5;

// Mean of the windows, the shortest intervals from each atom that hold at least `needed` units,
// 0 < needed <= total. A window weighs exp(-(width - least) / (0.2 least)), where least is the
// least width. Where the shortest interval jumps from one window to another, this one moves
// gradually; it may hold less than `needed`. It is the shortest interval if least is 0, to within
// tie_tolerance, or an atom exceeds 2^900, so that sums could overflow.
//
// All operations are defined by IEEE 754 and have a fixed order: the bits are those of any
// processor and C library. O(atoms), two passes.
Interval smoothed_hdi(const Pmf& pmf, mass_t needed) noexcept;

// The same; nothing if the shortest interval is asked for and not known. Atoms in gaps are ends of
// no window: the caller knows that those are beyond smoothing_reach.
std::optional<Interval> smoothed_hdi(const PartialPmf& pmf, mass_t needed) noexcept;

}  // namespace hdicore
