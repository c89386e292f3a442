// index/merged_entries.hpp: counting sorts of the entries of a tree, by rank and then by new leaf
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "base/interruption.hpp"
#include "base/types.hpp"
#include "index/leaf_index.hpp"
#include "index/storage_format.hpp"

namespace hdicore {

// One output of one tree, whose leaves get new numbers.
struct MergedBlock {
    const LeafIndex& index;
    std::size_t output;
    std::size_t tree;
    const leaf_t* new_leaves;  // (n_leaves,)

    std::size_t n_leaves() const { return index.n_leaves(tree); }
    std::size_t n_atoms() const { return index.atoms(output).size(); }
    std::size_t first_entry() const { return index.tree_begin(output, tree); }
    std::size_t n_entries() const { return index.tree_begin(output, tree + 1) - first_entry(); }
    // (n_leaves + 1,) counted from the first entry of the block
    const std::uint32_t* leaf_begin() const { return index.leaf_begin(output, tree); }

    // Calls use(begin, end) with the entries of each new leaf, which are neighbours.
    template <class Use>
    void each_new_leaf(const Use& use) const {
        for (std::size_t first = 0, end; first < n_leaves(); first = end) {
            end = first + 1;
            while (end < n_leaves() && new_leaves[end] == new_leaves[first]) ++end;
            use(leaf_begin()[first], leaf_begin()[end]);
        }
    }
};

// The entries of one block by rank, and then by new leaf: scratch memory of one thread.
class MergedEntries {
  public:
    std::vector<std::uint32_t> leaf_begin;  // (new leaves + 1,)

    // For blocks of up to so many leaves, atoms and entries, for which it allocates nothing later.
    // `groups` says whether entries are not only sorted.
    MergedEntries(std::size_t max_leaves, std::size_t max_atoms, std::size_t max_entries,
                  bool groups, Interruption& interruption);

    // Writes the ranks of entries that stand for a row each, by leaf. O(n_entries + n_atoms).
    template <class Rank>
    LeafTotals sort(const MergedBlock& block, const Array<Rank>& ranks, Rank* sorted) {
        sort_by_rank(block, ranks);
        LeafTotals totals;
        leaf_begin.assign(1, 0);
        block.each_new_leaf([&](std::uint32_t begin, std::uint32_t end) {
            leaf_begin.push_back(end);
            totals.max_counted = std::max<count_t>(totals.max_counted, end - begin);
        });
        totals.max_weight = totals.max_counted;
        totals.n_counted = block.n_entries();
        ends_.assign(leaf_begin.begin(), leaf_begin.end() - 1);
        each_entry(block, [&](rank_t rank, const Entry& entry) {
            const std::uint32_t at = ends_[entry.leaf]++;
            sorted[at] = static_cast<Rank>(rank);
            totals.n_distinct += at == leaf_begin[entry.leaf] || sorted[at - 1] != rank;
        });
        return totals;
    }

    // Makes one entry of those of each target in a new leaf, still without units. The same.
    LeafTotals group(const MergedBlock& block);

    // Apportions units to the entries grouped last.
    void share_units(int shift, count_t pool);

    // What was grouped last.
    EntryColumns columns() const noexcept { return {ranks_, units_, copies_, weights_}; }

  private:
    struct Entry {
        std::uint32_t number;  // counted from the first of the block
        leaf_t leaf;           // the new one
    };
    static constexpr rank_t no_rank = std::numeric_limits<rank_t>::max();

    // A counting sort: writes the entries to by_rank_, and where those of each rank end.
    template <class Rank>
    void sort_by_rank(const MergedBlock& block, const Array<Rank>& ranks) {
        const Rank* own = ranks.data() + block.first_entry();
        std::fill_n(rank_ends_.begin(), block.n_atoms() + 1, 0u);
        in_pieces(block.n_entries(), interruption_, [&](std::size_t begin, std::size_t end) {
            for (std::size_t e = begin; e < end; ++e) ++rank_ends_[std::size_t{own[e]} + 1];
        });
        std::partial_sum(rank_ends_.begin(), rank_ends_.begin() + block.n_atoms(),
                         rank_ends_.begin());
        const std::uint32_t* leaf_ends = block.leaf_begin() + 1;
        std::uint32_t e = 0;
        in_pieces(block.n_leaves(), interruption_, [&](std::size_t begin, std::size_t end) {
            for (std::size_t leaf = begin; leaf < end; ++leaf) {
                for (; e < leaf_ends[leaf]; ++e) {
                    by_rank_[rank_ends_[own[e]]++] = {e, block.new_leaves[leaf]};
                }
            }
        });
    }

    // Calls use(rank, entry) for the entries sorted last.
    template <class Use>
    void each_entry(const MergedBlock& block, const Use& use) {
        std::uint32_t e = 0;
        in_pieces(block.n_atoms(), interruption_, [&](std::size_t begin, std::size_t end) {
            for (std::size_t rank = begin; rank < end; ++rank) {
                for (; e < rank_ends_[rank]; ++e) use(static_cast<rank_t>(rank), by_rank_[e]);
            }
        });
    }

    // Counts the targets of each new leaf, and finds where their entries begin.
    void find_leaves(const MergedBlock& block);
    // Of what was grouped last.
    LeafTotals totals() const;

    Interruption& interruption_;
    std::vector<std::uint32_t> rank_ends_;  // (n_atoms + 1,)
    std::unique_ptr<Entry[]> by_rank_;      // (n_entries,)
    std::vector<std::uint32_t> ends_;       // (new leaves,)
    std::vector<rank_t> last_;              // (new leaves,)
    std::vector<rank_t> ranks_;             // (grouped entries,)
    std::vector<mass_t> units_;             // (grouped entries,)
    std::vector<count_t> copies_;           // (grouped entries,)
    std::vector<count_t> weights_;          // (grouped entries,)
};

}  // namespace hdicore
