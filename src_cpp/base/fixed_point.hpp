// base/fixed_point.hpp: weights as whole numbers, so that sums are exact in any order
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/types.hpp"

namespace hdicore {

// Fixed-point shares. Sort the rows of a leaf by y, let N be their weight and a_r the weight of the
// rows up to and including r. These rows have the first floor(2^shift * a_r / N) units: a leaf has
// exactly 2^shift units, and those of neighbouring rows differ from their exact share by less than
// one.
//
// shift is 31 (units fit 32 bits) unless one unit in each tree could amount to an atom.
inline constexpr int narrow_shift = 31;
inline constexpr int wide_shift = 40;
// floor(2^shift * part / whole) for part <= whole, 0 < whole <= 2^52.
mass_t floor_units(count_t part, count_t whole, int shift) noexcept;

// Units of the entries of a leaf, ascending in y, with positive weights: their shares of its total,
// or of `pool` if that is not 0. Each has at least one unit; each entry too light for one moves the
// others by less than one unit.
void apportion(std::span<const count_t> weights, int shift, count_t pool, mass_t* units) noexcept;

// Units that count as holding the share `level` in [0, 1] of n_trees > 0 trees: n_trees *
// (round(level * 2^shift) - 2), at least 1; all for level 1. The two units absorb the rounding of
// shares and level, so that an exact mass equal to the level is recognised; what is accepted holds
// more than level - 3.5 * 2^-shift.
mass_t required_units(double level, std::size_t n_trees, int shift) noexcept;

// Row weights as whole numbers: scaled by a power of two to at most 2^51 in all, so that every sum
// of them is exact and independent of order. Whole weights keep their exact ratios, and a positive
// weight stays at least 1. weights are finite and not negative; copies is the largest count of a
// row.
std::vector<count_t> integer_weights(std::span<const double> weights, std::size_t copies = 1);
// The same to `whole`, with scratch memory that is kept.
void integer_weights(std::span<const double> weights, std::size_t copies,
                     std::vector<double>& scratch, std::vector<count_t>& whole);

}  // namespace hdicore
