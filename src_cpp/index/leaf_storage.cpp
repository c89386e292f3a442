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
    is_short ? extend(entries_.short_ranks, n_entries, share, context.interruption)
             : extend(entries_.ranks, n_entries, share, context.interruption);
    leaf_begin_.resize(context.n_leaves() + n_placed);
    context.in_parallel(block.n_trees(), block, true, [&](TreeEntries& entries, std::size_t k) {
        const std::size_t t = block.first + k;
        TreeStatistics& tree = statistics.of(t);
        tree.n_counted = totals[k].n_counted;
        tree.max_counted = tree.max_weight =
            entries.find_leaves(block.column(k, context.n_leaves(t)), tree.n_counted);
        const offset_t at = tree_begin_[t];
        tree.n_distinct = is_short ? entries.place(context.order, entries_.short_ranks.data() + at)
                                   : entries.place(context.order, entries_.ranks.data() + at);
        store_leaf_begin(context, entries, t);
    });
}

void LeafStorage::clear() {
    release(entries_.short_ranks);
    release(entries_.ranks);
    release(leaf_begin_);
    tree_begin_.assign(1, 0);
}

void LeafStorage::allocate(const BuildContext& context, const StorageFormat& format,
                           const LeafStatistics& statistics) {
    const std::size_t n_trees = context.rows.n_trees;
    tree_begin_.assign(n_trees + 1, 0);
    for (std::size_t t = 0; t < n_trees; ++t) {
        tree_begin_[t + 1] =
            tree_begin_[t] + static_cast<offset_t>(statistics.n_entries(t, format.uniform));
    }
    leaf_begin_.resize(context.n_leaves() + n_trees);
    entries_.allocate(static_cast<std::size_t>(tree_begin_.back()), format, context.interruption);
}

void LeafStorage::fill(const BuildContext& context, const TreeBlock& block,
                       const StorageFormat& format) {
    const auto fill_tree = [&](TreeEntries& entries, std::size_t k) {
        const std::size_t t = block.first + k;
        const TreeColumn column = block.column(k, context.n_leaves(t));
        const offset_t at = tree_begin_[t];
        const auto n_entries = static_cast<std::size_t>(tree_begin_[t + 1] - at);
        if (format.uniform) {
            entries.find_leaves(column, n_entries);
            format.short_ranks ? entries.place(context.order, entries_.short_ranks.data() + at)
                               : entries.place(context.order, entries_.ranks.data() + at);
        } else {
            entries.group(column, context.order, format.shift(), format.pool);
            if (entries.ranks.size() != n_entries) refuse_changed_rows();
            entries_.store(entries.columns(), at);
        }
        store_leaf_begin(context, entries, t);
    };
    context.in_parallel(block.n_trees(), block, format.uniform, fill_tree);
}

void LeafStorage::store_leaf_begin(const BuildContext& context, const TreeEntries& entries,
                                   std::size_t tree) {
    std::copy(entries.leaf_begin.begin(), entries.leaf_begin.end(),
              leaf_begin_.begin() + context.leaf_offsets[tree] + static_cast<offset_t>(tree));
}

RowWeights LeafStorage::take_row_weights(BuildContext& context, const StorageFormat& format) {
    const std::size_t n_rows = context.rows.n_rows();
    std::vector<rank_t> ranks(n_rows);
    for (std::size_t p = 0; p < n_rows; ++p) ranks[context.order.rows[p]] = context.order.ranks[p];
    if (context.row_weights.empty()) context.row_weights.assign(n_rows, 1);
    return {array_of(entries_.weights, context.interruption), array_of(ranks, context.interruption),
            array_of(context.row_weights, context.interruption), format.pool};
}

LeafIndexArrays LeafStorage::take_arrays(BuildContext& context, const StorageFormat& format) {
    const auto take = [&](auto& values) { return array_of(values, context.interruption); };
    LeafIndexArrays arrays;
    if (context.rows.mask_leaves) arrays.leaf_mask = take(context.leaf_mask);
    arrays.leaf_offsets = take(context.leaf_offsets);
    arrays.atom_offsets = take(context.atom_offsets);
    arrays.atoms = take(context.atoms);
    arrays.vector_ranks = take(context.vector_ranks);
    arrays.tree_begin = take(tree_begin_);
    arrays.leaf_begin = take(leaf_begin_);
    entries_.move_to(arrays, format, context.interruption);
    arrays.pooled = context.rows.pooled;
    return arrays;
}

}  // namespace hdicore
