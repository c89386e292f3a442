// merge/whole.hpp: all entries of a row's leaves -> its complete distribution
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "merge/accumulator.hpp"

namespace hdicore {

// O(entries + atoms / 64), and no further than between the outermost entries.
inline Pmf merge_whole(Accumulator& accumulator, std::size_t output, RowSlices slices) noexcept {
    if (slices.empty()) return accumulator.read_empty();
    const RankBounds bounds = accumulator.bounds(slices);
    // To count them would cost more than it gains.
    const double n_entries =
        accumulator.index().entries_per_leaf() * static_cast<double>(slices.size());
    accumulator.add(slices, Accumulator::is_dense(static_cast<std::size_t>(n_entries),
                                                  bounds.last - bounds.first));
    return accumulator.read(output, slices.size(), bounds);
}

}  // namespace hdicore
