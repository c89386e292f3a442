// index/build_context.hpp: what all passes over the trees share when an index is built
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/interruption.hpp"
#include "base/parallel.hpp"
#include "base/types.hpp"
#include "index/training_rows.hpp"
#include "index/tree_entries.hpp"

namespace hdicore {

// The rows, their sorted targets, and the leaves of the trees known so far. Throws
// std::invalid_argument at input that is out of range.
struct BuildContext {
    // Checks what belongs to no tree, and sorts the targets. O(n_outputs * n_rows * log n_rows).
    BuildContext(const TrainingRows& rows, bool keep_row_weights, unsigned n_threads,
                 Interruption& interruption);

    const TrainingRows& rows;
    bool keep_row_weights;
    unsigned n_threads;
    Interruption& interruption;

    std::vector<TargetOrder> orders;  // (n_outputs,)
    std::vector<offset_t> atom_offsets{0};
    std::vector<double> atoms;
    std::size_t max_atoms = 0;
    std::vector<offset_t> leaf_offsets{0};
    std::vector<std::uint64_t> leaf_mask;
    std::int32_t max_count = 1;
    std::vector<count_t> row_weights;  // (n_rows,) or empty: 1

    std::size_t n_leaves() const { return static_cast<std::size_t>(leaf_offsets.back()); }
    std::size_t n_leaves(std::size_t tree) const {
        return static_cast<std::size_t>(leaf_offsets[tree + 1] - leaf_offsets[tree]);
    }
    bool has_short_ranks() const noexcept { return max_atoms <= std::size_t{1} << 16; }

    // Checks a block in the first pass, and finds the leaves of its trees.
    std::vector<ColumnTotals> find_leaves(const TreeBlock& block);
    // Checks a block in a later pass, which must have the leaves of the first.
    std::vector<ColumnTotals> check_again(const TreeBlock& block) const;

    // Calls use(entries, task) for each task, with scratch memory of its own on each thread;
    // `places` is TreeEntries'.
    template <class Use>
    void in_parallel(std::size_t n_tasks, const TreeBlock& block, bool places,
                     const Use& use) const {
        std::size_t max_leaves = 0;
        for (std::size_t k = 0; k < block.n_trees(); ++k) {
            max_leaves = std::max(max_leaves, n_leaves(block.first + k));
        }
        const auto make_worker = [&]() -> Worker {
            const auto entries =
                std::make_shared<TreeEntries>(rows, row_weights, max_leaves, places, interruption);
            return [&, entries](std::size_t task) { use(*entries, task); };
        };
        parallel_for(n_tasks, n_threads, make_worker, interruption);
    }

  private:
    void order_targets();
    void mark_leaves(const TreeBlock& block);
};

}  // namespace hdicore
