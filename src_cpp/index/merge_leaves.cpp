// index/merge_leaves.cpp: checks the new leaves, and fills their arrays tree by tree
// SPDX-License-Identifier: BSD-3-Clause
#include "index/merge_leaves.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/parallel.hpp"
#include "base/refusal.hpp"
#include "index/leaf_index_builder.hpp"
#include "index/merged_entries.hpp"
#include "index/storage_format.hpp"

namespace hdicore {
namespace {

void check_weights(const LeafIndex& index) {
    if (index.arrays().uniform() || index.row_weights()) return;
    refuse(
        "leaves can only be merged where rows weigh alike in each, or in an index with row "
        "weights: build it with keep_row_weights=True");
}

// Checks the numbers of the new leaves. Returns where those of each tree begin, (n_trees + 1,).
std::vector<offset_t> checked_offsets(const LeafIndex& index, std::span<const leaf_t> new_leaves) {
    if (new_leaves.size() != index.n_leaves()) {
        refuse("new_leaves must have " + std::to_string(index.n_leaves()) +
               " elements, one for each leaf of the index, got " +
               std::to_string(new_leaves.size()));
    }
    std::vector<offset_t> offsets{0};
    const Array<offset_t>& old = index.arrays().leaf_offsets;
    for (std::size_t t = 0; t < index.n_trees(); ++t) {
        leaf_t next = 0;
        for (auto leaf = static_cast<std::size_t>(old[t]);
             leaf < static_cast<std::size_t>(old[t + 1]); ++leaf) {
            if (new_leaves[leaf] == next) ++next;
            if (new_leaves[leaf] >= 0 && new_leaves[leaf] == next - 1) continue;
            refuse("new_leaves must begin with 0 in each tree and rise by 0 or 1, got " +
                   std::to_string(new_leaves[leaf]) + " for leaf " +
                   std::to_string(leaf - static_cast<std::size_t>(old[t])) + " of tree " +
                   std::to_string(t));
        }
        offsets.push_back(offsets.back() + next);
    }
    return offsets;
}

class LeafMerge {
  public:
    LeafMerge(const LeafIndex& index, std::span<const leaf_t> new_leaves, unsigned n_threads,
              Interruption& interruption)
        : index_(index),
          new_leaves_(new_leaves),
          leaf_offsets_(checked_offsets(index, new_leaves)),
          leaf_begin_(index.n_outputs() *
                      (static_cast<std::size_t>(leaf_offsets_.back()) + index.n_trees())),
          of_blocks_(index.n_outputs() * index.n_trees()),
          n_threads_(n_threads),
          interruption_(interruption) {}

    BuiltArrays run() {
        if (index_.arrays().uniform()) {
            if (std::optional<BuiltArrays> built = sort()) return std::move(*built);
        }
        return group();
    }

  private:
    // Number o * n_trees + t is output o of tree t.
    MergedBlock block(std::size_t number) const {
        const std::size_t t = number % index_.n_trees();
        return {index_, number / index_.n_trees(), t,
                new_leaves_.data() + index_.arrays().leaf_offsets[t]};
    }
    // Where the offsets of the new leaves of a block go.
    std::uint32_t* leaf_begin(const MergedBlock& block) {
        return leaf_begin_.data() +
               block.output * (static_cast<std::size_t>(leaf_offsets_.back()) + index_.n_trees()) +
               static_cast<std::size_t>(leaf_offsets_[block.tree]) + block.tree;
    }

    StorageFormat format() const {
        LeafTotals all;
        for (const LeafTotals& block : of_blocks_) {
            all.n_counted += block.n_counted;
            all.n_distinct += block.n_distinct;
            all.max_counted = std::max(all.max_counted, block.max_counted);
            all.max_weight = std::max(all.max_weight, block.max_weight);
        }
        const auto& weights = index_.row_weights();
        return choose_format(
            all, {.n_trees = index_.n_trees(),
                  .max_atoms = index_.max_atoms(),
                  .row_weights = weights ? weights->rows.view() : std::span<const count_t>(),
                  .keep_row_weights = weights.has_value(),
                  .pooled = index_.arrays().pooled});
    }

    // Rows of equal weight are entries as often as they count, which they stay. None if larger
    // leaves need units.
    std::optional<BuiltArrays> sort() {
        StorageFormat as_before;
        as_before.uniform = true;
        as_before.short_ranks = index_.arrays().ranks.index() == 0;
        EntryArrays sorted;
        sorted.allocate(index_.n_entries(), as_before, interruption_);
        std::visit(
            [&]<class Rank>(const Array<Rank>& ranks) {
                Rank* out;
                if constexpr (std::is_same_v<Rank, rank_t>) {
                    out = sorted.ranks.data();
                } else {
                    out = sorted.short_ranks.data();
                }
                each_block(false, [&](MergedEntries& entries, const MergedBlock& own) {
                    return entries.sort(own, ranks, out + own.first_entry());
                });
            },
            index_.arrays().ranks);
        const StorageFormat now = format();
        if (!now.uniform) return std::nullopt;
        LeafIndexArrays arrays = common_arrays();
        arrays.tree_begin = index_.arrays().tree_begin;
        sorted.move_to(arrays, as_before, interruption_);
        return BuiltArrays{std::move(arrays), {}, now.has_ties};
    }

    // Entries of one target become one, and get new units. Which arrays there are follows from all
    // trees, so that they are grouped twice.
    BuiltArrays group() {
        each_block(true, [](MergedEntries& entries, const MergedBlock& own) {
            return entries.group(own);
        });
        StorageFormat now = format();
        now.uniform = false;
        std::vector<offset_t> tree_begin{0};
        for (const LeafTotals& totals : of_blocks_) {
            tree_begin.push_back(tree_begin.back() + static_cast<offset_t>(totals.n_distinct));
        }
        EntryArrays stored;
        stored.allocate(static_cast<std::size_t>(tree_begin.back()), now, interruption_);
        each_block(true, [&](MergedEntries& entries, const MergedBlock& own) {
            const LeafTotals totals = entries.group(own);
            entries.share_units(now.shift(), now.pool);
            stored.store(entries.columns(), tree_begin[own.output * index_.n_trees() + own.tree]);
            return totals;
        });
        BuiltArrays built{common_arrays(), {}, now.has_ties};
        built.arrays.tree_begin = Array(std::move(tree_begin));
        stored.move_to(built.arrays, now, interruption_);
        if (const auto& weights = index_.row_weights()) {
            built.row_weights = {Array(std::move(stored.weights), interruption_), weights->ranks,
                                 weights->rows, now.pool};
        }
        return built;
    }

    // Calls use(entries, block) for each block, keeps what it returns, and where leaves begin.
    template <class Use>
    void each_block(bool groups, const Use& use) {
        std::size_t max_leaves = 0;
        std::size_t max_entries = 0;
        for (std::size_t number = 0; number < of_blocks_.size(); ++number) {
            const MergedBlock own = block(number);
            max_leaves = std::max(max_leaves, static_cast<std::size_t>(leaf_offsets_[own.tree + 1] -
                                                                       leaf_offsets_[own.tree]));
            max_entries = std::max(max_entries, own.n_entries());
        }
        const auto make_worker = [&]() -> Worker {
            const auto entries = std::make_shared<MergedEntries>(
                max_leaves, index_.max_atoms(), max_entries, groups, interruption_);
            return [&, entries](std::size_t number) {
                const MergedBlock own = block(number);
                of_blocks_[number] = use(*entries, own);
                std::ranges::copy(entries->leaf_begin, leaf_begin(own));
            };
        };
        parallel_for(of_blocks_.size(), n_threads_, make_worker, interruption_);
    }

    // All but those of the entries and where trees begin.
    LeafIndexArrays common_arrays() {
        const LeafIndexArrays& old = index_.arrays();
        LeafIndexArrays arrays;
        arrays.atom_offsets = old.atom_offsets;
        arrays.atoms = old.atoms;
        arrays.pooled = old.pooled;
        if (index_.has_leaf_mask()) arrays.leaf_mask = Array(new_leaf_mask());
        arrays.leaf_offsets = Array(std::move(leaf_offsets_));
        arrays.leaf_begin = Array(std::move(leaf_begin_), interruption_);
        return arrays;
    }

    std::vector<std::uint64_t> new_leaf_mask() const {
        std::vector<std::uint64_t> mask((static_cast<std::size_t>(leaf_offsets_.back()) + 63) / 64);
        std::size_t old = 0;
        for (std::size_t t = 0; t < index_.n_trees(); ++t) {
            for (std::size_t leaf = 0; leaf < index_.n_leaves(t); ++leaf, ++old) {
                if (!index_.has_leaf(t, static_cast<leaf_t>(leaf))) continue;
                const auto bit = static_cast<std::size_t>(leaf_offsets_[t] + new_leaves_[old]);
                mask[bit / 64] |= std::uint64_t{1} << bit % 64;
            }
        }
        return mask;
    }

    const LeafIndex& index_;
    std::span<const leaf_t> new_leaves_;
    std::vector<offset_t> leaf_offsets_;
    std::vector<std::uint32_t> leaf_begin_;
    std::vector<LeafTotals> of_blocks_;  // (n_outputs * n_trees,)
    unsigned n_threads_;
    Interruption& interruption_;
};

}  // namespace

LeafIndex merge_leaves(const LeafIndex& index, std::span<const leaf_t> new_leaves,
                       unsigned n_threads, Interruption& interruption) {
    check_weights(index);
    return LeafIndex(LeafMerge(index, new_leaves, n_threads, interruption).run(), n_threads,
                     interruption);
}

}  // namespace hdicore
