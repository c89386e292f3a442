// pmf/hdi.hpp: a distribution -> the shortest interval that holds a given mass
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include "pmf/pmf.hpp"

namespace hdicore {

// A closed interval.
struct Interval {
    double lower;
    double upper;
};

// Two widths tie if they differ by no more than this times the largest absolute value of an atom.
inline constexpr double tie_tolerance = 0x1p-48;

// Shortest interval between two atoms that holds at least `needed` units, 0 < needed <= total.
// Among intervals of equal width (see tie_tolerance) the one with most mass (to two units a tree),
// then with its midpoint nearest the lower weighted median, if that is an atom, then the leftmost.
//
// Algorithm 1 of Zhu, Lu, Chen (IJCAI 2019), eq. (19)-(21), with its threshold read as the
// coverage, its indices kept in bounds, and prefix sums in place of a running one. O(atoms), two
// pointers; only starts in the lower (1 - coverage) tail are visited, and of these only some: a few
// windows bound the least width, and starts whose windows are wider than that are passed by.
Interval shortest_interval(const Pmf& pmf, mass_t needed) noexcept;

// The same; nothing if an end, or the median where it has to decide, lies in a gap. Atoms in gaps
// are never ends: the caller knows that none of them bounds a shortest interval.
std::optional<Interval> shortest_interval(const PartialPmf& pmf, mass_t needed) noexcept;

}  // namespace hdicore
