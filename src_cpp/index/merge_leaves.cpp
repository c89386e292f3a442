// index/merge_leaves.cpp: sorts the entries of neighbouring leaves together, tree by tree
// SPDX-License-Identifier: BSD-3-Clause
#include "index/merge_leaves.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/fixed_point.hpp"
#include "base/parallel.hpp"
#include "index/leaf_index_builder.hpp"
#include "index/sort_by_rank.hpp"
#include "index/storage_format.hpp"

namespace hdicore {
namespace {

[[noreturn]] void refuse(const std::string& why) {
    throw std::invalid_argument(why);
}

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

// Entries of a tree and output, of which those of a new leaf are neighbours: calls
// use(begin, end, n_parts) for each new leaf, with numbers of entries and how many old leaves it
// has.
template <class Use>
void each_new_leaf(const LeafIndex& index, std::size_t output, std::size_t tree,
                   const leaf_t* new_leaves, Interruption& interruption, const Use& use) {
    const std::uint32_t* begin = index.leaf_begin(output, tree);
    const std::size_t base = index.tree_begin(output, tree);
    std::size_t first = 0;
    in_pieces(index.n_leaves(tree), interruption, [&](std::size_t, std::size_t last) {
        for (; first < last;) {
            std::size_t end = first + 1;
            while (end < index.n_leaves(tree) && new_leaves[end] == new_leaves[first]) ++end;
            use(base + begin[first], base + begin[end], end - first);
            first = end;
        }
    });
}

// The entries of one tree and output while they are grouped by new leaf: scratch memory of one
// thread.
class MergedEntries {
  public:
    std::vector<std::uint32_t> leaf_begin;  // (new leaves + 1,)

    // For trees of up to so many leaves and entries, for which it allocates nothing later.
    MergedEntries(std::size_t max_leaves, std::size_t max_entries) {
        leaf_begin.reserve(max_leaves + 1);
        keys_.reserve(max_entries);
        scratch_.resize(max_entries);
        ranks_.reserve(max_entries);
        units_.reserve(max_entries);
        copies_.reserve(max_entries);
        weights_.reserve(max_entries);
    }

    // Groups the entries: one for each target of a new leaf.
    LeafTotals group(const LeafIndex& index, std::size_t output, std::size_t tree,
                     const leaf_t* new_leaves, Interruption& interruption) {
        leaf_begin.assign(1, 0);
        ranks_.clear();
        copies_.clear();
        weights_.clear();
        const int n_bits = std::bit_width(index.atoms(output).size() - 1);
        LeafTotals totals;
        std::visit(
            [&](const auto& ranks, const auto& copies) {
                each_new_leaf(index, output, tree, new_leaves, interruption,
                              [&](std::size_t begin, std::size_t end, std::size_t) {
                                  add_leaf(index, ranks, copies, begin, end, n_bits, totals);
                              });
            },
            index.arrays().ranks, index.arrays().copies);
        totals.n_distinct = ranks_.size();
        return totals;
    }

    // Apportions units to the entries grouped last.
    void share_units(int shift, count_t pool) {
        units_.resize(ranks_.size());
        for (std::size_t leaf = 0; leaf + 1 < leaf_begin.size(); ++leaf) {
            const std::size_t begin = leaf_begin[leaf];
            const std::size_t n = leaf_begin[leaf + 1] - begin;
            apportion({weights_.data() + begin, n}, shift, pool, units_.data() + begin);
        }
    }

    EntryColumns columns() const noexcept { return {ranks_, units_, copies_, weights_}; }

  private:
    template <class Rank, class Copies>
    void add_leaf(const LeafIndex& index, const Array<Rank>& ranks, const Copies& copies,
                  std::size_t begin, std::size_t end, int n_bits, LeafTotals& totals) {
        keys_.clear();
        for (std::size_t e = begin; e < end; ++e) {
            keys_.push_back(std::uint64_t{ranks[e]} << 32 | (e - begin));
        }
        sort_by_rank(std::span(keys_), 32, n_bits, scratch_.data());
        count_t n_counted = 0;
        count_t total = 0;
        for (std::size_t k = 0; k < keys_.size(); ++k) {
            const auto rank = static_cast<rank_t>(keys_[k] >> 32);
            const std::size_t e = begin + static_cast<std::uint32_t>(keys_[k]);
            count_t n_copies = 1;
            if constexpr (!std::is_same_v<Copies, std::monostate>) n_copies = copies[e];
            const count_t weight = index.row_weights() ? index.row_weights()->entries[e] : n_copies;
            if (k == 0 || ranks_.back() != rank) {
                ranks_.push_back(rank);
                copies_.push_back(0);
                weights_.push_back(0);
            }
            copies_.back() += n_copies;
            weights_.back() += weight;
            n_counted += n_copies;
            total += weight;
        }
        leaf_begin.push_back(static_cast<std::uint32_t>(ranks_.size()));
        totals.n_counted += n_counted;
        totals.max_counted = std::max(totals.max_counted, n_counted);
        totals.max_weight = std::max(totals.max_weight, total);
    }

    std::vector<std::uint64_t> keys_;  // rank << 32 | number in the leaf
    std::vector<std::uint64_t> scratch_;
    std::vector<rank_t> ranks_;     // (n_entries,)
    std::vector<mass_t> units_;     // (n_entries,)
    std::vector<count_t> copies_;   // (n_entries,)
    std::vector<count_t> weights_;  // (n_entries,)
};

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
          interruption_(interruption) {
        for (std::size_t block = 0; block < of_blocks_.size(); ++block) {
            max_entries_ = std::max(max_entries_, n_entries(block));
        }
    }

    BuiltArrays run() {
        if (index_.arrays().uniform()) {
            if (std::optional<BuiltArrays> built = sort_ranks()) return std::move(*built);
        }
        return group();
    }

  private:
    // Block o * n_trees + t is output o of tree t.
    std::size_t output(std::size_t block) const { return block / index_.n_trees(); }
    std::size_t tree(std::size_t block) const { return block % index_.n_trees(); }
    std::size_t n_entries(std::size_t block) const {
        const Array<offset_t>& begin = index_.arrays().tree_begin;
        return static_cast<std::size_t>(begin[block + 1] - begin[block]);
    }
    const leaf_t* new_leaves(std::size_t block) const {
        return new_leaves_.data() + index_.arrays().leaf_offsets[tree(block)];
    }
    std::uint32_t* leaf_begin(std::size_t block) {
        const std::size_t t = tree(block);
        return leaf_begin_.data() +
               output(block) * (static_cast<std::size_t>(leaf_offsets_.back()) + index_.n_trees()) +
               static_cast<std::size_t>(leaf_offsets_[t]) + t;
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
    std::optional<BuiltArrays> sort_ranks() {
        EntryArrays entries;
        StorageFormat as_before;
        as_before.uniform = true;
        as_before.short_ranks = index_.arrays().ranks.index() == 0;
        entries.allocate(index_.n_entries(), as_before, interruption_);
        std::visit(
            [&]<class Rank>(const Array<Rank>& ranks) {
                if constexpr (std::is_same_v<Rank, std::uint16_t>) {
                    sort_ranks(ranks, entries.short_ranks.data());
                } else {
                    sort_ranks(ranks, entries.ranks.data());
                }
            },
            index_.arrays().ranks);
        const StorageFormat now = format();
        if (!now.uniform) return std::nullopt;
        LeafIndexArrays arrays = common_arrays();
        arrays.tree_begin = index_.arrays().tree_begin;
        entries.move_to(arrays, as_before, interruption_);
        return BuiltArrays{std::move(arrays), {}, now.has_ties};
    }

    template <class Rank>
    void sort_ranks(const Array<Rank>& ranks, Rank* sorted) {
        const auto make_worker = [&]() -> Worker {
            const std::shared_ptr<Rank[]> scratch(new Rank[max_entries_]);
            return [&, scratch](std::size_t block) {
                sort_block(ranks, sorted, block, scratch.get());
            };
        };
        parallel_for(of_blocks_.size(), n_threads_, make_worker, interruption_);
    }

    template <class Rank>
    void sort_block(const Array<Rank>& ranks, Rank* sorted, std::size_t block, Rank* scratch) {
        const std::size_t base = index_.tree_begin(output(block), tree(block));
        const int n_bits = std::bit_width(index_.atoms(output(block)).size() - 1);
        std::uint32_t* end_of_leaf = leaf_begin(block);
        *end_of_leaf++ = 0;
        LeafTotals totals;
        const auto sort_leaf = [&](std::size_t begin, std::size_t end, std::size_t n_parts) {
            const std::span<Rank> leaf(sorted + begin, end - begin);
            std::copy_n(ranks.data() + begin, leaf.size(), leaf.data());
            if (n_parts > 1) sort_by_rank(leaf, 0, n_bits, scratch);
            *end_of_leaf++ = static_cast<std::uint32_t>(end - base);
            totals.n_counted += leaf.size();
            totals.max_counted = std::max<count_t>(totals.max_counted, leaf.size());
            for (std::size_t e = 0; e < leaf.size(); ++e) {
                totals.n_distinct += e == 0 || leaf[e] != leaf[e - 1];
            }
        };
        each_new_leaf(index_, output(block), tree(block), new_leaves(block), interruption_,
                      sort_leaf);
        totals.max_weight = totals.max_counted;
        of_blocks_[block] = totals;
    }

    // Entries of one target become one, and get new units. Which arrays there are follows from all
    // trees, so that they are grouped twice.
    BuiltArrays group() {
        each_block([&](MergedEntries& entries, std::size_t block) {
            of_blocks_[block] =
                entries.group(index_, output(block), tree(block), new_leaves(block), interruption_);
        });
        StorageFormat now = format();
        now.uniform = false;
        std::vector<offset_t> tree_begin{0};
        for (const LeafTotals& block : of_blocks_) {
            tree_begin.push_back(tree_begin.back() + static_cast<offset_t>(block.n_distinct));
        }
        EntryArrays stored;
        stored.allocate(static_cast<std::size_t>(tree_begin.back()), now, interruption_);
        each_block([&](MergedEntries& entries, std::size_t block) {
            entries.group(index_, output(block), tree(block), new_leaves(block), interruption_);
            entries.share_units(now.shift(), now.pool);
            stored.store(entries.columns(), tree_begin[block]);
            std::ranges::copy(entries.leaf_begin, leaf_begin(block));
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

    template <class Use>
    void each_block(const Use& use) {
        std::size_t max_leaves = 0;
        for (std::size_t t = 0; t < index_.n_trees(); ++t) {
            max_leaves = std::max(
                max_leaves, static_cast<std::size_t>(leaf_offsets_[t + 1] - leaf_offsets_[t]));
        }
        const auto make_worker = [&]() -> Worker {
            const auto entries = std::make_shared<MergedEntries>(max_leaves, max_entries_);
            return [&, entries](std::size_t block) { use(*entries, block); };
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
    std::size_t max_entries_ = 0;        // of a block
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
