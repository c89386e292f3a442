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
    // of the leaves. The index kept its row weights. Writes the mean, too, unless it is null, as of
    // an index that was built without the row: O(entries + atoms / 64), and O(n_rows) for the mean
    // if the row has the least or the largest target.
    Pmf merge(Accumulator& accumulator, std::size_t output, RowSlices slices, std::uint32_t row,
              double* mean = nullptr) noexcept;

    // The distribution without a row of this rank, in an index without units. A leaf without that
    // rank stays as it is.
    Pmf merge_equal(Accumulator& accumulator, std::size_t output, RowSlices slices,
                    rank_t left_out) noexcept;

    // Rank of the target of a training row, in an index that kept its row weights.
    rank_t rank(std::size_t output, std::uint32_t row) const noexcept {
        return index_.row_weights()->ranks[row * index_.n_outputs() + output];
    }

  private:
    // What a leaf of the first n of leaf_ranks_ and leaf_units_ adds to the mean.
    MeanSum mean_of_rest(const MeanScale& scale, std::size_t output, std::size_t n) const noexcept;
    MeanScale scale_without(std::size_t output, RowSlices slices, std::uint32_t row) const noexcept;
    // Whether leaves hold more of its target than its weight, as they do where it counts twice.
    bool is_left(std::size_t output, RowSlices slices, std::uint32_t row) const noexcept;
    // Whether no other row has its target.
    bool is_alone(std::size_t output, std::uint32_t row) const noexcept;
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
