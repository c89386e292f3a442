// index/leaf_index_storage.cpp: the arrays of an index while it is built
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "index/leaf_index_builder.hpp"

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

bool LeafIndexBuilder::narrow_copies() const noexcept {
    return max_counted_ <= std::numeric_limits<std::uint8_t>::max();
}

void LeafIndexBuilder::choose_storage() {
    pool_ = rows_.pooled ? std::bit_ceil(std::max<count_t>(max_weight_, 1)) : 0;
    wide_ =
        needs_wide_units(max_counted_) || lacks_a_unit(row_weights_, std::max(max_weight_, pool_));
    has_ties_ = n_counted_ > n_distinct_;
    // Where many rows of a leaf share a target, merging them saves more than units cost.
    uniform_ = row_weights_.empty() && !keep_row_weights_ && !wide_ && !rows_.pooled &&
               max_counted_ <= max_uniform_leaf && n_counted_ <= 2 * n_distinct_;
}

void LeafIndexBuilder::allocate() {
    tree_begin_.assign(rows_.n_outputs * rows_.n_trees + 1, 0);
    for (std::size_t block = 0; block + 1 < tree_begin_.size(); ++block) {
        const LeafStatistics& tree = trees_[block % rows_.n_trees];
        tree_begin_[block + 1] =
            tree_begin_[block] +
            static_cast<offset_t>(uniform_ ? tree.n_counted
                                           : tree.n_distinct[block / rows_.n_trees]);
    }
    const auto n_entries = static_cast<std::size_t>(tree_begin_.back());
    leaf_begin_.resize(rows_.n_outputs * (n_leaves() + rows_.n_trees));
    const auto grow = [&](auto& values) { grow_in_pieces(values, n_entries, interruption_); };
    narrow_ranks() ? grow(short_ranks_) : grow(ranks_);
    if (wide_) grow(wide_units_);
    if (!wide_ && !uniform_) grow(narrow_units_);
    if (has_copies() && narrow_copies()) grow(few_copies_);
    if (has_copies() && !narrow_copies()) grow(many_copies_);
    if (keep_row_weights_) grow(entry_weights_);
}

// Copies the entries of one tree to the arrays that there are.
void LeafIndexBuilder::store(const TreeEntries& entries, offset_t at) {
    const auto copy = [at](const auto& from, auto& to) {
        if (!to.empty()) std::copy(from.begin(), from.end(), to.begin() + at);
    };
    copy(entries.ranks, short_ranks_);
    copy(entries.ranks, ranks_);
    copy(entries.units, narrow_units_);
    copy(entries.units, wide_units_);
    copy(entries.copies(), few_copies_);
    copy(entries.copies(), many_copies_);
    copy(entries.weights, entry_weights_);
}

void LeafIndexBuilder::store_leaf_begin(const TreeEntries& entries, std::size_t output,
                                        std::size_t tree) {
    const std::size_t slot = output * (n_leaves() + rows_.n_trees) +
                             static_cast<std::size_t>(leaf_offsets_[tree]) + tree;
    std::copy(entries.leaf_begin.begin(), entries.leaf_begin.end(),
              leaf_begin_.begin() + static_cast<offset_t>(slot));
}

RowWeights LeafIndexBuilder::take_row_weights() {
    const std::size_t n_outputs = rows_.n_outputs;
    std::vector<rank_t> row_ranks(rows_.n_rows * n_outputs);
    for (std::size_t o = 0; o < n_outputs; ++o) {
        for (std::size_t p = 0; p < rows_.n_rows; ++p) {
            row_ranks[orders_[o].rows[p] * n_outputs + o] = orders_[o].ranks[p];
        }
    }
    if (row_weights_.empty()) row_weights_.assign(rows_.n_rows, 1);
    return {taken(entry_weights_), taken(row_ranks), taken(row_weights_), pool_};
}

LeafIndexArrays LeafIndexBuilder::take_arrays() {
    LeafIndexArrays arrays;
    if (rows_.only_known_leaves) arrays.known_leaves = taken(known_leaves_);
    arrays.leaf_offsets = taken(leaf_offsets_);
    arrays.atom_offsets = taken(atom_offsets_);
    arrays.atoms = taken(atoms_);
    arrays.tree_begin = taken(tree_begin_);
    arrays.leaf_begin = taken(leaf_begin_);
    if (narrow_ranks()) arrays.ranks = taken(short_ranks_);
    if (!narrow_ranks()) arrays.ranks = taken(ranks_);
    if (wide_) arrays.units = taken(wide_units_);
    if (!wide_ && !uniform_) arrays.units = taken(narrow_units_);
    if (has_copies() && narrow_copies()) arrays.copies = taken(few_copies_);
    if (has_copies() && !narrow_copies()) arrays.copies = taken(many_copies_);
    arrays.pooled = rows_.pooled;
    std::vector<TargetOrder>().swap(orders_);
    return arrays;
}

}  // namespace hdicore
