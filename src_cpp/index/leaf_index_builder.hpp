// index/leaf_index_builder.hpp: builds an index from blocks of trees, in few passes over them
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/interruption.hpp"
#include "base/types.hpp"
#include "index/leaf_index.hpp"
#include "index/training_rows.hpp"
#include "index/tree_entries.hpp"

namespace hdicore {

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

  private:
    friend class LeafIndex;

    enum class Pass {
        count,    // finds the largest count, on which whole row weights depend
        measure,  // finds what decides on the arrays; places rows as if they weighed alike
        fill,     // groups the rows of each tree and output into entries
        done,
    };

    void order_targets();
    // Checks a block; the first pass finds the leaves of its trees.
    std::vector<ColumnTotals> check(const TreeBlock& block);
    void measure(const TreeBlock& block);
    // Measures the trees by placing their rows.
    void place(const TreeBlock& block, const std::vector<ColumnTotals>& totals);
    bool may_place(const std::vector<ColumnTotals>& totals) const noexcept;
    void stop_placing();
    void sum_up(std::size_t first, std::size_t n_trees);
    // Decides which arrays there are, of which width, and where the entries of each tree begin.
    void choose_storage();
    void allocate();
    void fill(const TreeBlock& block);
    void store(const TreeEntries& entries, offset_t at);
    void store_leaf_begin(const TreeEntries& entries, std::size_t output, std::size_t tree);
    void mark_known_leaves(const TreeBlock& block);

    template <class T>
    Array<T> taken(std::vector<T>& values) {
        return Array<T>(std::move(values), interruption_);
    }
    // What it takes to leave a training row out.
    RowWeights take_row_weights();
    LeafIndexArrays take_arrays();

    std::size_t n_leaves() const { return static_cast<std::size_t>(leaf_offsets_.back()); }
    std::size_t n_leaves(std::size_t tree) const {
        return static_cast<std::size_t>(leaf_offsets_[tree + 1] - leaf_offsets_[tree]);
    }
    bool narrow_ranks() const noexcept { return max_atoms_ <= std::size_t{1} << 16; }
    bool has_copies() const noexcept { return has_ties_ && !uniform_; }
    bool narrow_copies() const noexcept;
    bool needs_wide_units(count_t max_counted) const noexcept;

    template <class Use>
    void in_parallel(std::size_t n_tasks, const TreeBlock& block, bool places, const Use& use);

    const TrainingRows& rows_;
    bool keep_row_weights_;
    unsigned n_threads_;
    Interruption& interruption_;

    std::vector<TargetOrder> orders_;  // (n_outputs,)
    std::vector<offset_t> atom_offsets_{0};
    std::vector<double> atoms_;
    std::size_t max_atoms_ = 0;

    Pass pass_ = Pass::measure;
    bool first_pass_ = true;
    std::size_t n_added_ = 0;  // trees of this pass
    bool has_counts_ = false;
    std::vector<offset_t> leaf_offsets_{0};  // of the trees known
    std::vector<std::uint64_t> known_leaves_;
    std::int32_t max_count_ = 1;
    std::vector<count_t> row_weights_;

    std::vector<LeafStatistics> trees_;  // (n_trees,)
    count_t n_counted_ = 0;              // of all outputs
    count_t n_distinct_ = 0;
    count_t max_counted_ = 0;
    count_t max_weight_ = 0;
    bool places_ = false;  // whether all trees so far were placed
    count_t pool_ = 0;
    bool wide_ = false;
    bool has_ties_ = false;
    bool uniform_ = false;

    std::vector<offset_t> tree_begin_;
    std::vector<std::uint32_t> leaf_begin_;
    std::vector<std::uint16_t> short_ranks_;
    std::vector<rank_t> ranks_;
    std::vector<std::uint32_t> narrow_units_;
    std::vector<std::uint64_t> wide_units_;
    std::vector<std::uint8_t> few_copies_;
    std::vector<std::uint32_t> many_copies_;
    std::vector<count_t> entry_weights_;
};

}  // namespace hdicore
