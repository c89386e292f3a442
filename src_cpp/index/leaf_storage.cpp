// index/leaf_storage.cpp: places or groups the rows of each tree, and hands the arrays over
// SPDX-License-Identifier: BSD-3-Clause
#include "index/leaf_storage.hpp"

#include <algorithm>
#include <utility>

namespace hdicore {
namespace {

// Makes room for n more elements. Of `total` elements a `share` will then be there: memory is
// reserved for all at once, as growing it later would copy what is there.
template <class T>
void extend(std::vector<T>& values, std::size_t n, double share, Interruption& interruption) {
    const std::size_t size = values.size() + n;
    if (size > values.capacity()) {
        const double all = static_cast<double>(size) / share;
        values.reserve(std::max(size, static_cast<std::size_t>(share < 1 ? all * 1.02 : all)));
    }
    grow_in_pieces(values, size, interruption);
}

template <class T>
void release(std::vector<T>& values) {
    std::vector<T>().swap(values);
}

template <class T>
Array<T> array_of(std::vector<T>& values, Interruption& interruption) {
    return Array<T>(std::move(values), interruption);
}

}  // namespace

void LeafStorage::place(const BuildContext& context, const TreeBlock& block,
                        const std::vector<ColumnTotals>& totals, LeafStatistics& statistics) {
    count_t n_entries = 0;
    for (const ColumnTotals& tree : totals) {
        n_entries += tree.n_counted;
        tree_begin_.push_back(tree_begin_.back() + static_cast<offset_t>(tree.n_counted));
    }
    const std::size_t n_placed = tree_begin_.size() - 1;
    const double share = static_cast<double>(n_placed) / static_cast<double>(context.rows.n_trees);
    const bool is_short = context.has_short_ranks();
    placed_.resize(context.rows.n_outputs());
    for (EntryArrays& output : placed_) {
        is_short ? extend(output.short_ranks, n_entries, share, context.interruption)
                 : extend(output.ranks, n_entries, share, context.interruption);
    }
    leaf_begin_.resize(context.n_leaves() + n_placed);
    context.in_parallel(block.n_trees(), block, true, [&](TreeEntries& entries, std::size_t k) {
        const std::size_t t = block.first + k;
        TreeStatistics& tree = statistics.of(t);
        tree.n_counted = totals[k].n_counted;
        tree.max_counted = tree.max_weight =
            entries.find_leaves(block.column(k, context.n_leaves(t)), tree.n_counted);
        const offset_t at = tree_begin_[t];
        for (std::size_t o = 0; o < placed_.size(); ++o) {
            const TargetOrder& order = context.orders[o];
            tree.n_distinct[o] = is_short ? entries.place(order, placed_[o].short_ranks.data() + at)
                                          : entries.place(order, placed_[o].ranks.data() + at);
        }
        store_leaf_begin(context, entries, 0, t);
    });
}

void LeafStorage::join_outputs(const BuildContext& context) {
    const std::size_t n_outputs = placed_.size();
    const std::size_t n_trees = context.rows.n_trees;
    const std::size_t n_leaf_begins = leaf_begin_.size();
    const offset_t n_entries = tree_begin_.back();
    const auto join = [&](auto EntryArrays::* ranks) {
        auto& all = entries_.*ranks;
        all = std::move(placed_[0].*ranks);
        // Memory that is not written yet is not there yet: each output is freed when it was copied.
        all.reserve(n_outputs * all.size());
        for (std::size_t o = 1; o < n_outputs; ++o) {
            context.interruption.check();
            all.insert(all.end(), (placed_[o].*ranks).begin(), (placed_[o].*ranks).end());
            release(placed_[o].*ranks);
        }
    };
    context.has_short_ranks() ? join(&EntryArrays::short_ranks) : join(&EntryArrays::ranks);
    leaf_begin_.resize(n_outputs * n_leaf_begins);
    for (std::size_t o = 1; o < n_outputs; ++o) {
        std::copy_n(leaf_begin_.begin(), n_leaf_begins,
                    leaf_begin_.begin() + static_cast<offset_t>(o * n_leaf_begins));
        for (std::size_t t = 1; t <= n_trees; ++t) {
            tree_begin_.push_back(static_cast<offset_t>(o) * n_entries + tree_begin_[t]);
        }
    }
    placed_.clear();
}

void LeafStorage::clear() {
    placed_.clear();
    release(leaf_begin_);
    tree_begin_.assign(1, 0);
}

void LeafStorage::allocate(const BuildContext& context, const StorageFormat& format,
                           const LeafStatistics& statistics) {
    const std::size_t n_trees = context.rows.n_trees;
    const std::size_t n_outputs = context.rows.n_outputs();
    tree_begin_.assign(n_outputs * n_trees + 1, 0);
    for (std::size_t block = 0; block + 1 < tree_begin_.size(); ++block) {
        tree_begin_[block + 1] =
            tree_begin_[block] + static_cast<offset_t>(statistics.n_entries(
                                     block / n_trees, block % n_trees, format.uniform));
    }
    leaf_begin_.resize(n_outputs * (context.n_leaves() + n_trees));
    entries_.allocate(static_cast<std::size_t>(tree_begin_.back()), format, context.interruption);
}

void LeafStorage::fill(const BuildContext& context, const TreeBlock& block,
                       const StorageFormat& format) {
    const std::size_t n_trees = context.rows.n_trees;
    const std::size_t n_tasks = context.rows.n_outputs() * block.n_trees();
    const auto fill_tree = [&](TreeEntries& entries, std::size_t task) {
        const std::size_t o = task / block.n_trees();
        const std::size_t k = task % block.n_trees();
        const std::size_t t = block.first + k;
        const TreeColumn column = block.column(k, context.n_leaves(t));
        const TargetOrder& order = context.orders[o];
        const offset_t at = tree_begin_[o * n_trees + t];
        const auto n_entries = static_cast<std::size_t>(tree_begin_[o * n_trees + t + 1] - at);
        if (format.uniform) {
            entries.find_leaves(column, n_entries);
            format.short_ranks ? entries.place(order, entries_.short_ranks.data() + at)
                               : entries.place(order, entries_.ranks.data() + at);
        } else {
            entries.group(column, order, format.shift(), format.pool);
            if (entries.ranks.size() != n_entries) refuse_changed_rows();
            entries_.store(entries.columns(), at);
        }
        store_leaf_begin(context, entries, o, t);
    };
    context.in_parallel(n_tasks, block, format.uniform, fill_tree);
}

void LeafStorage::store_leaf_begin(const BuildContext& context, const TreeEntries& entries,
                                   std::size_t output, std::size_t tree) {
    const std::size_t slot = output * (context.n_leaves() + context.rows.n_trees) +
                             static_cast<std::size_t>(context.leaf_offsets[tree]) + tree;
    std::copy(entries.leaf_begin.begin(), entries.leaf_begin.end(),
              leaf_begin_.begin() + static_cast<offset_t>(slot));
}

RowWeights LeafStorage::take_row_weights(BuildContext& context, const StorageFormat& format) {
    const std::size_t n_rows = context.rows.n_rows();
    const std::size_t n_outputs = context.rows.n_outputs();
    std::vector<rank_t> ranks(n_rows * n_outputs);
    for (std::size_t o = 0; o < n_outputs; ++o) {
        const TargetOrder& order = context.orders[o];
        for (std::size_t p = 0; p < n_rows; ++p) {
            ranks[order.rows[p] * n_outputs + o] = order.ranks[p];
        }
    }
    if (context.row_weights.empty()) context.row_weights.assign(n_rows, 1);
    return {array_of(entries_.weights, context.interruption), array_of(ranks, context.interruption),
            array_of(context.row_weights, context.interruption), format.pool};
}

LeafIndexArrays LeafStorage::take_arrays(BuildContext& context, const StorageFormat& format) {
    const auto take = [&](auto& values) { return array_of(values, context.interruption); };
    if (!placed_.empty()) join_outputs(context);
    LeafIndexArrays arrays;
    if (context.rows.mask_leaves) arrays.leaf_mask = take(context.leaf_mask);
    arrays.leaf_offsets = take(context.leaf_offsets);
    arrays.atom_offsets = take(context.atom_offsets);
    arrays.atoms = take(context.atoms);
    arrays.events = take(context.orders.front().events);
    arrays.tree_begin = take(tree_begin_);
    arrays.leaf_begin = take(leaf_begin_);
    entries_.move_to(arrays, format, context.interruption);
    arrays.pooled = context.rows.pooled;
    return arrays;
}

}  // namespace hdicore
