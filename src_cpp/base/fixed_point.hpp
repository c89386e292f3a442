// base/shares.hpp: weights as whole numbers, so that sums are exact in any order
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/types.hpp"

namespace hdicore {

// Fixed-point shares. In a leaf whose rows weigh N together, in ascending order of y, the rows up
// to and including r weigh a_r and own the first floor(2^shift * a_r / N) units: each leaf hands
// out exactly 2^shift units, and any run of neighbours is less than one unit from its exact share.
//
// shift is 31 (units fit 32 bits) unless one unit in each tree could amount to an atom.
inline constexpr int narrow_shift = 31;
inline constexpr int wide_shift = 40;
// floor(2^shift * part / whole) for part <= whole, 0 < whole <= 2^52.
mass_t share(count_t part, count_t whole, int shift) noexcept;

// Units of the entries of a leaf, ascending in y, with positive weights: their shares of its total,
// or of `pool` if that is not 0. Each has at least one unit, which moves others by less than one
// unit for each that is too light for it.
void share_out(std::span<const count_t> weights, int shift, count_t pool, mass_t* units) noexcept;

// Units that count as holding the share `level` in [0, 1] of n_trees > 0 trees: n_trees *
// (round(level * 2^shift) - 2), at least 1; all for level 1. The two units absorb the rounding of
// shares and level, so that an exact mass equal to the level is recognised; what is accepted holds
// more than level - 3.5 * 2^-shift.
mass_t needed_units(double level, std::size_t n_trees, int shift) noexcept;

// Row weights as whole numbers: scaled by a power of two to at most 2^51 in all, so that every sum
// of them is exact and independent of order; whole weights keep their exact ratios, and what weighs
// anything keeps at least the weight 1. weights are
// finite and not negative; copies is how often the row with the most copies counts.
std::vector<count_t> whole_weights(std::span<const double> weights, std::size_t copies = 1);
// The same to `whole`, with scratch memory that is kept.
void whole_weights(std::span<const double> weights, std::size_t copies,
                   std::vector<double>& scratch, std::vector<count_t>& whole);

}  // namespace hdicore
