// merge/row_counts.hpp: how many training rows of a row's leaves have the target of each atom
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "merge/accumulator.hpp"

namespace hdicore {

// Scratch memory of one thread. Both functions are called after the slices were merged whole, or
// without the row of rank `left_out`.
class RowCounts {
  public:
    static constexpr rank_t none = ~rank_t{0};

    explicit RowCounts(const LeafIndex& index) : index_(index), counts_(index.max_atoms()) {}

    // Pmf::observation: the smallest mass of an atom divided by its number of training rows. That
    // is the largest number in one leaf, as leaves of several trees share rows; with pooled leaves,
    // the number in all of them. O(atoms), and with ties O(entries).
    double observation(const Pmf& pmf, std::span<const rank_t> ranks, RowSlices slices,
                       rank_t left_out) noexcept;

    // How often training rows with the target of each atom count, summed over trees, (n_atoms,).
    // O(entries).
    void count(std::span<const rank_t> ranks, RowSlices slices, rank_t left_out,
               std::int64_t* counts) noexcept;

  private:
    // Combines the rows behind each target of the leaves over trees, in counts_.
    template <class Combine>
    void combine(RowSlices slices, rank_t left_out, const Combine& combine) noexcept;

    const LeafIndex& index_;
    std::vector<std::int64_t> counts_;  // (n_atoms,) all zero between calls
};

}  // namespace hdicore
