// merge/tails.hpp: the outer entries of a row's leaves -> the two tails of its distribution
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include "merge/accumulator.hpp"

namespace hdicore {

// The two tails that hold more than 1 - min_share each, 1/2 < min_share <= 1, and a gap between
// them. Nothing if the guess where they end was wrong. Leaves must not be pooled, nor empty.
// O(slices + entries of the tails + atoms / 64).
std::optional<PartialPmf> merge_tails(Accumulator& accumulator, std::size_t output,
                                      RowSlices slices, double min_share) noexcept;

}  // namespace hdicore
