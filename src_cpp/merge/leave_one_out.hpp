// merge/leave_one_out.hpp: a row's leaves without one training row -> its distribution
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "merge/accumulator.hpp"

namespace hdicore {

// For an index that kept its row weights. Scratch memory of one thread.
class LeaveOneOut {
  public:
    explicit LeaveOneOut(const LeafIndex& index);

    // The other rows of each leaf share the weight of training row `row`, which counts once in each
    // of the leaves. O(entries + atoms / 64).
    Pmf merge(Accumulator& accumulator, std::size_t output, RowSlices slices,
              std::uint32_t row) noexcept;

    // Rank of the target of a training row.
    rank_t rank(std::size_t output, std::uint32_t row) const noexcept {
        return weights_.ranks[row * index_.n_outputs() + output];
    }

  private:
    const LeafIndex& index_;
    const RowWeights& weights_;
    // (max_leaf_size + 1,) entries of a leaf without the row
    std::vector<rank_t> leaf_ranks_;
    std::vector<count_t> leaf_weights_;
    std::vector<mass_t> leaf_units_;
};

}  // namespace hdicore
