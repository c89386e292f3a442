// index/leaf_index_builder.hpp: builds an index from blocks of trees, in few passes over them
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "base/interruption.hpp"
#include "index/build_context.hpp"
#include "index/leaf_statistics.hpp"
#include "index/leaf_storage.hpp"
#include "index/leaf_table.hpp"
#include "index/training_rows.hpp"

namespace hdicore {

// What an index is made of.
struct BuiltArrays {
    LeafIndexArrays arrays;
    std::optional<RowWeights> row_weights;
    bool has_ties;
};

// Needs memory for the index, for one block and 16 bytes for each row and output, with n_threads
// times 8 to 40 bytes for each row. Which arrays an index has follows from all trees, so that the
// trees are passed over again unless the first pass proves that rows weigh alike in their leaves:
//
//     while (builder.wants_trees()) {
//         for (const TreeBlock& block : blocks) builder.add(block);
//         builder.end_pass();
//     }
//     LeafIndex index(std::move(builder));
//
// Everything throws std::invalid_argument at input that is out of range. `rows` and the
// interruption must outlive the builder.
class LeafIndexBuilder {
  public:
    // Checks what belongs to no tree, and sorts the targets. O(n_outputs * n_rows * log n_rows).
    LeafIndexBuilder(const TrainingRows& rows, bool keep_row_weights, unsigned n_threads,
                     Interruption& interruption = Interruption::never());

    bool wants_trees() const noexcept { return pass_ != Pass::done; }
    // Takes the next trees of a pass. O(n_outputs * n_rows * block.n_trees) over n_threads threads.
    void add(const TreeBlock& block);
    // Ends a pass, in which all trees were added, the same in each pass.
    void end_pass();

    unsigned n_threads() const noexcept { return context_->n_threads; }
    Interruption& interruption() const noexcept { return context_->interruption; }
    // The arrays, when no more trees are wanted.
    BuiltArrays take();

  private:
    enum class Pass {
        count,    // finds the largest count, on which whole row weights depend
        measure,  // finds what decides on the arrays; places rows as if they weighed alike
        fill,     // groups the rows of each tree and output into entries
        done,
    };

    void begin_first_pass(bool has_counts);
    void measure(const TreeBlock& block, const std::vector<ColumnTotals>& totals);
    void stop_placing();

    std::unique_ptr<BuildContext> context_;
    LeafStatistics statistics_;
    StorageFormat format_;
    LeafStorage storage_;
    Pass pass_ = Pass::measure;
    bool first_pass_ = true;
    std::size_t n_added_ = 0;  // trees of this pass
    bool has_counts_ = false;
    bool places_;  // whether all trees so far were placed
};

}  // namespace hdicore
