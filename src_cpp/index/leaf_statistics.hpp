// index/leaf_statistics.hpp: the pass that measures the leaves of all trees, to choose the arrays
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include "base/types.hpp"
#include "index/build_context.hpp"
#include "index/storage_format.hpp"
#include "index/tree_entries.hpp"

namespace hdicore {

// The leaves of the trees measured so far.
class LeafStatistics {
  public:
    explicit LeafStatistics(const TrainingRows& rows);

    // Measures the trees of a block. O(n_outputs * n_rows * n_trees) over the threads.
    void measure(const BuildContext& context, const TreeBlock& block);
    // To be filled in where the rows of a tree are placed.
    TreeStatistics& of(std::size_t tree) noexcept { return trees_[tree]; }
    // Adds up the trees of a block that was measured or placed.
    void add_up(const TreeBlock& block);

    // Whether the trees so far and those of a block may be placed: rows that weigh alike then take
    // no more memory than an index of entries with units.
    bool may_place(const std::vector<ColumnTotals>& block) const noexcept;
    // What the measures of all trees decide.
    StorageFormat format(const BuildContext& context) const;
    // Entries of a tree in one output.
    count_t n_entries(std::size_t output, std::size_t tree, bool uniform) const {
        return uniform ? trees_[tree].n_counted : trees_[tree].n_distinct[output];
    }

  private:
    const TrainingRows& rows_;
    std::vector<TreeStatistics> trees_;  // (n_trees,)
    LeafTotals totals_;
};

}  // namespace hdicore
