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
    is_short ? extend(short_ranks_, n_entries, share, context.interruption)
             : extend(ranks_, n_entries, share, context.interruption);
    leaf_begin_.resize(context.n_leaves() + n_placed);
    context.in_parallel(block.n_trees(), block, true, [&](TreeEntries& entries, std::size_t k) {
        const std::size_t t = block.first + k;
        const TreeColumn column = block.column(k, context.n_leaves(t));
        const TargetOrder& order = context.orders[0];
        const offset_t at = tree_begin_[t];
        const count_t n = totals[k].n_counted;
        statistics.take(t, n,
                        is_short ? entries.place(column, order, n, short_ranks_.data() + at)
                                 : entries.place(column, order, n, ranks_.data() + at));
        store_leaf_begin(context, entries, 0, t);
    });
}

void LeafStorage::clear() {
    release(short_ranks_);
    release(ranks_);
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
    const auto n_entries = static_cast<std::size_t>(tree_begin_.back());
    leaf_begin_.resize(n_outputs * (context.n_leaves() + n_trees));
    const auto grow = [&](auto& values) {
        grow_in_pieces(values, n_entries, context.interruption);
    };
    context.has_short_ranks() ? grow(short_ranks_) : grow(ranks_);
    if (format.wide_units) grow(wide_units_);
    if (!format.wide_units && !format.uniform) grow(narrow_units_);
    if (format.has_copies() && format.short_copies) grow(short_copies_);
    if (format.has_copies() && !format.short_copies) grow(copies_);
    if (context.keep_row_weights) grow(entry_weights_);
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
        if (format.uniform && context.has_short_ranks()) {
            entries.place(column, order, n_entries, short_ranks_.data() + at);
        } else if (format.uniform) {
            entries.place(column, order, n_entries, ranks_.data() + at);
        } else {
            const int shift = format.wide_units ? wide_shift : narrow_shift;
            entries.group(column, order, shift, format.pool);
            if (entries.ranks.size() != n_entries) refuse_changed_rows();
            store(entries, at);
        }
        store_leaf_begin(context, entries, o, t);
    };
    context.in_parallel(n_tasks, block, format.uniform, fill_tree);
}

// Copies the entries of one tree to the arrays that there are.
void LeafStorage::store(const TreeEntries& entries, offset_t at) {
    const auto copy = [at](const auto& from, auto& to) {
        if (!to.empty()) std::copy(from.begin(), from.end(), to.begin() + at);
    };
    copy(entries.ranks, short_ranks_);
    copy(entries.ranks, ranks_);
    copy(entries.units, narrow_units_);
    copy(entries.units, wide_units_);
    copy(entries.copies(), short_copies_);
    copy(entries.copies(), copies_);
    copy(entries.weights, entry_weights_);
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
    return {array_of(entry_weights_, context.interruption), array_of(ranks, context.interruption),
            array_of(context.row_weights, context.interruption), format.pool};
}

LeafIndexArrays LeafStorage::take_arrays(BuildContext& context, const StorageFormat& format) {
    const auto take = [&](auto& values) { return array_of(values, context.interruption); };
    LeafIndexArrays arrays;
    if (context.rows.mask_leaves) arrays.leaf_mask = take(context.leaf_mask);
    arrays.leaf_offsets = take(context.leaf_offsets);
    arrays.atom_offsets = take(context.atom_offsets);
    arrays.atoms = take(context.atoms);
    arrays.tree_begin = take(tree_begin_);
    arrays.leaf_begin = take(leaf_begin_);
    const bool is_short = context.has_short_ranks();
    if (is_short) arrays.ranks = take(short_ranks_);
    if (!is_short) arrays.ranks = take(ranks_);
    if (format.wide_units) arrays.units = take(wide_units_);
    if (!format.wide_units && !format.uniform) arrays.units = take(narrow_units_);
    if (format.has_copies() && format.short_copies) arrays.copies = take(short_copies_);
    if (format.has_copies() && !format.short_copies) arrays.copies = take(copies_);
    arrays.pooled = context.rows.pooled;
    return arrays;
}

}  // namespace hdicore
