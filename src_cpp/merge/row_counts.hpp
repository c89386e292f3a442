// merge/row_counts.hpp: how many training rows of a row's leaves have the target of each atom
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "merge/accumulator.hpp"

namespace hdicore {

// Scratch memory of one thread. Both functions are called after the slices were merged whole, or
// without a row whose target vector has rank `left_out`; `ranks` are those of the atoms then.
class RowCounts {
  public:
    static constexpr rank_t none = ~rank_t{0};

    explicit RowCounts(const LeafIndex& index);

    // Pmf::observation: the smallest mass of an atom divided by its number of training rows. That
    // is the largest number in one leaf, as leaves of several trees share rows; with pooled leaves,
    // the number in all of them. O(atoms), and with ties O(entries).
    double observation(const Pmf& pmf, std::size_t output, std::span<const rank_t> ranks,
                       RowSlices slices, rank_t left_out) noexcept;

    // How often training rows with the target of each atom count, summed over trees, (n_atoms,), in
    // an index of one output. O(entries).
    void count(std::span<const rank_t> ranks, RowSlices slices, rank_t left_out,
               std::int64_t* counts) noexcept;

  private:
    // Adds the rows behind each target of a leaf to counts (n_atoms,).
    void add_leaf(const EntrySlice& slice, const OutputTargets& targets, rank_t left_out,
                  std::vector<std::int64_t>& counts) const noexcept;
    // Makes counts_ the largest number of rows of each target in one leaf.
    void find_largest(const OutputTargets& targets, RowSlices slices, rank_t left_out) noexcept;

    const LeafIndex& index_;
    std::vector<std::int64_t> counts_;   // (n_atoms,) all zero between calls
    std::vector<std::int64_t> of_leaf_;  // (n_atoms,) all zero between leaves
};

}  // namespace hdicore
