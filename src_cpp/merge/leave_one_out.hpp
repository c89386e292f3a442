// merge/leave_one_out.hpp: a row's leaves without one training row -> its distribution
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "merge/accumulator.hpp"

namespace hdicore {

// For an index that kept its row weights, or in whose leaves rows weigh alike. Scratch memory of
// one thread.
class LeaveOneOut {
  public:
    explicit LeaveOneOut(const LeafIndex& index);

    // The other rows of each leaf share the weight of training row `row`, which counts once in each
    // of the leaves. The index kept its row weights. O(entries + atoms / 64).
    Pmf merge(Accumulator& accumulator, std::size_t output, RowSlices slices,
              std::uint32_t row) noexcept;

    // The same of a row with this rank, in an index without units. A leaf without that rank stays
    // as it is.
    Pmf merge_equal(Accumulator& accumulator, std::size_t output, RowSlices slices,
                    rank_t left_out) noexcept;

    // Rank of the target of a training row, in an index that kept its row weights.
    rank_t rank(std::size_t output, std::uint32_t row) const noexcept {
        return index_.row_weights()->ranks[row * index_.n_outputs() + output];
    }

  private:
    // Fills parts_ with the entries of a leaf but for one of the rank. Returns how many they are.
    template <class Rank>
    std::uint32_t cut_out(const Rank* ranks, const EntrySlice& slice, rank_t left_out) noexcept;

    const LeafIndex& index_;
    // (max_leaf_size + 1,) entries of a leaf without the row, with row weights
    std::vector<rank_t> leaf_ranks_;
    std::vector<count_t> leaf_weights_;
    std::vector<mass_t> leaf_units_;
    // (2 * n_trees,) entries around the row in each leaf, without
    std::vector<EqualEntries> parts_;
    std::vector<EntrySlice> slices_;
};

}  // namespace hdicore
