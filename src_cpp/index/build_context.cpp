// index/build_context.cpp: sorts the targets, and finds the leaves of each tree
// SPDX-License-Identifier: BSD-3-Clause
#include "index/build_context.hpp"

#include "base/refusal.hpp"
#include "index/leaf_checks.hpp"

namespace hdicore {

BuildContext::BuildContext(const TrainingRows& training_rows, bool keeps_row_weights,
                           unsigned threads, Interruption& interrupted)
    : rows(training_rows),
      keep_row_weights(keeps_row_weights),
      n_threads(threads),
      interruption(interrupted) {
    check_number_of_trees(rows.n_trees);
    if (keep_row_weights && !rows.event.empty()) {
        refuse("event must not be given with keep_row_weights");
    }
    if (keep_row_weights && rows.max_samples_leaf > 0) {
        refuse(
            "max_samples_leaf must not be given with keep_row_weights: a row that was not kept in "
            "a leaf cannot be left out of it");
    }
    check_sizes(rows);
    order_targets();
}

void BuildContext::order_targets() {
    orders.reserve(rows.n_outputs());
    for (std::size_t o = 0; o < rows.n_outputs(); ++o) orders.emplace_back(rows.n_rows());
    const auto work = [&](std::size_t o) { orders[o].assign(rows, o, interruption); };
    parallel_for(rows.n_outputs(), n_threads, work, interruption);
    for (const TargetOrder& order : orders) {
        atoms.insert(atoms.end(), order.atoms.begin(), order.atoms.end());
        atom_offsets.push_back(static_cast<offset_t>(atoms.size()));
        max_atoms = std::max(max_atoms, order.atoms.size());
    }
}

std::vector<ColumnTotals> BuildContext::find_leaves(const TreeBlock& block) {
    std::vector<ColumnTotals> totals = checked_totals(rows, block, interruption);
    for (std::size_t k = 0; k < block.n_trees(); ++k) {
        leaf_offsets.push_back(leaf_offsets.back() +
                               checked_n_leaves(rows, block.first + k, totals[k].n_leaves));
        max_count = std::max(max_count, totals[k].max_count);
    }
    if (rows.mask_leaves) mark_leaves(block);
    return totals;
}

std::vector<ColumnTotals> BuildContext::check_again(const TreeBlock& block) const {
    std::vector<ColumnTotals> totals = checked_totals(rows, block, interruption);
    for (std::size_t k = 0; k < block.n_trees(); ++k) {
        const std::size_t t = block.first + k;
        if (totals[k].n_leaves > leaf_offsets[t + 1] - leaf_offsets[t]) refuse_changed_rows();
        if (totals[k].max_count > max_count) refuse_changed_rows();
    }
    return totals;
}

void BuildContext::mark_leaves(const TreeBlock& block) {
    leaf_mask.resize((n_leaves() + 63) / 64, 0);
    for (std::size_t k = 0; k < block.n_trees(); ++k) {
        const offset_t before = leaf_offsets[block.first + k];
        const offset_t n = leaf_offsets[block.first + k + 1] - before;
        in_pieces(rows.n_rows(), interruption, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                const leaf_t leaf = block.leaf(i, k);
                // Checked before, but it may have been changed since.
                if (leaf < 0 || leaf >= n) refuse_changed_rows();
                const auto bit = static_cast<std::size_t>(before + leaf);
                leaf_mask[bit / 64] |= std::uint64_t{1} << bit % 64;
            }
        });
    }
}

}  // namespace hdicore
