// pmf/priced_intervals.hpp: a distribution -> the intervals whose mass is worth most of their width
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>

#include "pmf/hdi.hpp"
#include "pmf/pmf.hpp"

namespace hdicore {

struct PricedInterval {
    Interval ends;
    mass_t mass;
};

// Prices of one call.
inline constexpr std::size_t prices_at_once = 32;

// For each price, above 0, the interval between two atoms of most surplus, price * share - width,
// that holds at least `needed` units, 0 < needed <= total; the share is that of the total.
// Surpluses tie if they differ by no more than what rounding makes of equal ones: the price of two
// units a tree, and tie_tolerance times the largest absolute value of an atom. Of these the
// interval with most mass (to two units a tree), then the leftmost.
//
// O(atoms) for each price, up to prices_at_once; where ties abound, O(ties * atoms / 32) more.
//
// `max_abs` is the largest absolute value of an atom. Atoms in gaps are never ends: the caller
// knows that no interval with the mass ends there. False, with results undefined, if every interval
// ends in a gap all the same.
[[nodiscard]] bool priced_intervals(const StepFunction& pmf, double max_abs, mass_t needed,
                                    std::span<const double> prices,
                                    std::span<PricedInterval> found) noexcept;

}  // namespace hdicore
