// scoring/row_means.hpp: the leaves of a block of rows -> their means, without their entries
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/interruption.hpp"
#include "index/leaf_index.hpp"
#include "scoring/leaf_source.hpp"

namespace hdicore {

// Scratch memory of one thread.
class RowMeans {
  public:
    // To `results` (n_rows * n_outputs,), by `means` of the index, or null: each leaf is then read,
    // and checked if the index is not. For blocks of up to max_rows.
    RowMeans(const LeafIndex& index, const LeafMeans* means, std::span<double> results,
             Interruption& interruption, std::size_t max_rows);

    // The means of a block, whose first row is number `begin`. O(rows * n_trees), and tree by tree,
    // so that the leaves of one stay in cache.
    void find(std::size_t begin, const RowBlock& block);

  private:
    void add_known(std::size_t output, const RowBlock& block);
    // Of rows [first, end) of the block.
    void add_entries(const MeanScale& scale, std::size_t output, const RowBlock& block,
                     std::size_t first, std::size_t end);
    // The target that all leaves of a row hold; nothing if they hold several.
    std::optional<double> only_target(std::size_t output, const RowBlock& block,
                                      std::size_t place) const;
    // Of which each reads so much.
    static std::size_t trees_between_checks(std::size_t n_read) noexcept;

    const LeafIndex& index_;
    const LeafMeans* means_;
    std::span<double> results_;
    Interruption& interruption_;
    std::vector<MeanSum> sums_;  // (places of a block,)
};

}  // namespace hdicore
