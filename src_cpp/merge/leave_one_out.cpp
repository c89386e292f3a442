// merge/leave_one_out.cpp: shares each leaf out again, among the rows that stay
// SPDX-License-Identifier: BSD-3-Clause
#include "merge/leave_one_out.hpp"

#include <algorithm>
#include <limits>

#include "base/fixed_point.hpp"

namespace hdicore {

LeaveOneOut::LeaveOneOut(const LeafIndex& index)
    : index_(index),
      weights_(*index.row_weights()),
      leaf_ranks_(index.tables().max_leaf_size + 1),
      leaf_weights_(index.tables().max_leaf_size + 1),
      leaf_units_(index.tables().max_leaf_size + 1) {}

Pmf LeaveOneOut::merge(Accumulator& accumulator, std::size_t output, RowSlices slices,
                       std::uint32_t row) noexcept {
    RankBounds bounds{std::numeric_limits<rank_t>::max(), 0};
    std::size_t n_trees = 0;
    const rank_t left_out = rank(output, row);
    const count_t weight = weights_.rows[row];
    for (const EntrySlice& slice : slices) {
        std::size_t n = 0;
        for (std::size_t e = slice.begin; e < slice.begin + slice.n; ++e) {
            const count_t all = weights_.entries[e];
            const rank_t rank = index_.rank(e);
            leaf_weights_[n] = all - (rank == left_out ? std::min(weight, all) : 0);
            leaf_ranks_[n] = rank;
            n += leaf_weights_[n] > 0;
        }
        if (n == 0) continue;
        bounds.first = std::min(bounds.first, leaf_ranks_[0]);
        bounds.last = std::max(bounds.last, leaf_ranks_[n - 1]);
        ++n_trees;
        apportion({leaf_weights_.data(), n}, index_.shift(), weights_.pool, leaf_units_.data());
        for (std::size_t k = 0; k < n; ++k) accumulator.add(leaf_ranks_[k], leaf_units_[k]);
    }
    if (n_trees == 0) return accumulator.read_empty();
    return accumulator.read(output, n_trees, bounds);
}

}  // namespace hdicore
