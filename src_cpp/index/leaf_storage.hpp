// index/leaf_storage.hpp: the pass that fills the arrays of an index, tree by tree
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.hpp"
#include "index/build_context.hpp"
#include "index/leaf_statistics.hpp"
#include "index/leaf_table.hpp"

namespace hdicore {

// The arrays while they are filled, either by placing the rows of each block as if they weighed
// alike, or by grouping them after all of it was allocated.
class LeafStorage {
  public:
    // Places the rows of the next trees, and measures them. Grows the arrays.
    void place(const BuildContext& context, const TreeBlock& block,
               const std::vector<ColumnTotals>& totals, LeafStatistics& statistics);
    // Forgets what was placed.
    void clear();

    // Makes room for all trees, of which the first is added next.
    void allocate(const BuildContext& context, const StorageFormat& format,
                  const LeafStatistics& statistics);
    void fill(const BuildContext& context, const TreeBlock& block, const StorageFormat& format);

    // Both end the filling.
    LeafIndexArrays take_arrays(BuildContext& context, const StorageFormat& format);
    RowWeights take_row_weights(BuildContext& context, const StorageFormat& format);

  private:
    // Puts what was placed of each output behind that of the one before.
    void join_outputs(const BuildContext& context);
    void store_leaf_begin(const BuildContext& context, const TreeEntries& entries,
                          std::size_t output, std::size_t tree);

    std::vector<offset_t> tree_begin_{0};
    std::vector<std::uint32_t> leaf_begin_;
    EntryArrays entries_;
    std::vector<EntryArrays> placed_;  // (n_outputs,) or none
};

}  // namespace hdicore
