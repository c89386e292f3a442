// merge/whole.hpp: adds all entries of a row's leaves
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "merge/accumulator.hpp"

namespace hdicore {

// O(entries).
inline Added add_whole(Accumulator& accumulator, RowSlices slices) noexcept {
    if (slices.empty()) return {};
    const RankBounds bounds = accumulator.bounds(slices);
    // To count them would cost more than it gains.
    const double n_entries =
        accumulator.index().entries_per_leaf() * static_cast<double>(slices.size());
    accumulator.add(slices, Accumulator::is_dense(static_cast<std::size_t>(n_entries),
                                                  bounds.last - bounds.first));
    return {bounds, slices.size()};
}

}  // namespace hdicore
