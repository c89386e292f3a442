// index/leaf_statistics.cpp: measures tree by tree, and decides on the arrays of an index
// SPDX-License-Identifier: BSD-3-Clause
#include "index/leaf_statistics.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "base/fixed_point.hpp"
#include "index/uniform_units.hpp"

namespace hdicore {
namespace {

// Whether the lightest row's share of `total` is less than one unit of narrow_shift.
bool lacks_a_unit(std::span<const count_t> row_weights, count_t total) noexcept {
    count_t lightest = total;
    for (const count_t weight : row_weights) {
        if (weight > 0) lightest = std::min(lightest, weight);
    }
    return total > 0 && floor_units(lightest, total, narrow_shift) == 0;
}

}  // namespace

LeafStatistics::LeafStatistics(const TrainingRows& rows) : rows_(rows), trees_(rows.n_trees) {
    for (TreeStatistics& tree : trees_) tree.n_distinct.assign(rows.n_outputs(), 0);
}

void LeafStatistics::measure(const BuildContext& context, const TreeBlock& block) {
    const auto measure_tree = [&](TreeEntries& entries, std::size_t k) {
        const std::size_t t = block.first + k;
        entries.measure(block.column(k, context.n_leaves(t)), context.orders, trees_[t]);
    };
    context.in_parallel(block.n_trees(), block, false, measure_tree);
}

void LeafStatistics::add_up(const TreeBlock& block) {
    for (std::size_t t = block.first; t < block.first + block.n_trees(); ++t) {
        const TreeStatistics& tree = trees_[t];
        totals_.n_counted += tree.n_counted * rows_.n_outputs();
        totals_.n_distinct =
            std::accumulate(tree.n_distinct.begin(), tree.n_distinct.end(), totals_.n_distinct);
        totals_.max_counted = std::max(totals_.max_counted, tree.max_counted);
        totals_.max_weight = std::max(totals_.max_weight, tree.max_weight);
    }
}

bool LeafStatistics::may_place(const std::vector<ColumnTotals>& block) const noexcept {
    const bool few_enough = std::ranges::all_of(block, [&](const ColumnTotals& tree) {
        return tree.n_counted <= 2 * rows_.n_rows() &&
               tree.n_counted <= std::numeric_limits<std::uint32_t>::max();
    });
    return few_enough && totals_.n_counted <= 2 * totals_.n_distinct &&
           totals_.max_counted <= max_uniform_leaf && !totals_.need_wide_units(rows_.n_trees);
}

StorageFormat LeafStatistics::format(const BuildContext& context) const {
    StorageFormat format;
    format.pool = rows_.pooled ? std::bit_ceil(std::max<count_t>(totals_.max_weight, 1)) : 0;
    format.short_ranks = context.has_short_ranks();
    format.wide_units =
        totals_.need_wide_units(rows_.n_trees) ||
        lacks_a_unit(context.row_weights, std::max(totals_.max_weight, format.pool));
    format.has_ties = totals_.n_counted > totals_.n_distinct;
    // Where many rows of a leaf share a target, merging them saves more than units cost.
    format.uniform = context.row_weights.empty() && !context.keep_row_weights &&
                     !format.wide_units && !rows_.pooled &&
                     totals_.max_counted <= max_uniform_leaf &&
                     totals_.n_counted <= 2 * totals_.n_distinct;
    format.short_copies = totals_.max_counted <= std::numeric_limits<std::uint8_t>::max();
    format.keeps_weights = context.keep_row_weights;
    return format;
}

}  // namespace hdicore
