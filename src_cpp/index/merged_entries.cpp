// index/merged_entries.cpp: makes one entry of those of each target in a new leaf
// SPDX-License-Identifier: BSD-3-Clause
#include "index/merged_entries.hpp"

#include <type_traits>
#include <utility>
#include <variant>

#include "base/fixed_point.hpp"

namespace hdicore {
namespace {

// Calls use(counts), where counts(e) are the rows behind entry e of a block, and their weight.
template <class Use>
void with_counts(const MergedBlock& block, const Use& use) {
    const std::size_t first = block.first_entry();
    const auto& weights = block.index.row_weights();
    std::visit(
        [&]<class Copies>(const Copies& copies) {
            use([&](std::uint32_t e) {
                count_t n = 1;
                if constexpr (!std::is_same_v<Copies, std::monostate>) n = copies[first + e];
                return std::pair(n, weights ? weights->entries[first + e] : n);
            });
        },
        block.index.arrays().copies);
}

}  // namespace

MergedEntries::MergedEntries(std::size_t max_leaves, std::size_t max_atoms, std::size_t max_entries,
                             bool groups, Interruption& interruption)
    : interruption_(interruption),
      rank_ends_(max_atoms + 1),
      by_rank_(std::make_unique_for_overwrite<Entry[]>(max_entries)) {
    leaf_begin.reserve(max_leaves + 1);
    ends_.reserve(max_leaves);
    if (!groups) return;
    last_.reserve(max_leaves);
    ranks_.reserve(max_entries);
    units_.reserve(max_entries);
    copies_.reserve(max_entries);
    weights_.reserve(max_entries);
}

LeafTotals MergedEntries::group(const MergedBlock& block) {
    std::visit([&](const auto& ranks) { sort_by_rank(block, ranks); }, block.index.arrays().ranks);
    find_leaves(block);
    ranks_.assign(leaf_begin.back(), 0);
    copies_.assign(leaf_begin.back(), 0);
    weights_.assign(leaf_begin.back(), 0);
    with_counts(block, [&](const auto& counts) {
        ends_.assign(leaf_begin.begin(), leaf_begin.end() - 1);
        each_entry(block, [&](rank_t rank, const Entry& entry) {
            std::uint32_t& end = ends_[entry.leaf];
            if (end == leaf_begin[entry.leaf] || ranks_[end - 1] != rank) ranks_[end++] = rank;
            const auto [copies, weight] = counts(entry.number);
            copies_[end - 1] += copies;
            weights_[end - 1] += weight;
        });
    });
    return totals();
}

void MergedEntries::share_units(int shift, count_t pool) {
    units_.resize(ranks_.size());
    for (std::size_t leaf = 0; leaf + 1 < leaf_begin.size(); ++leaf) {
        const std::size_t begin = leaf_begin[leaf];
        const std::size_t n = leaf_begin[leaf + 1] - begin;
        apportion({weights_.data() + begin, n}, shift, pool, units_.data() + begin);
    }
}

void MergedEntries::find_leaves(const MergedBlock& block) {
    const std::size_t n = block.n_leaves();
    const std::size_t n_new = n == 0 ? 0 : static_cast<std::size_t>(block.new_leaves[n - 1]) + 1;
    leaf_begin.assign(n_new + 1, 0);
    last_.assign(n_new, no_rank);
    each_entry(block, [&](rank_t rank, const Entry& entry) {
        rank_t& last = last_[static_cast<std::size_t>(entry.leaf)];
        leaf_begin[static_cast<std::size_t>(entry.leaf) + 1] += last != rank;
        last = rank;
    });
    std::partial_sum(leaf_begin.begin(), leaf_begin.end(), leaf_begin.begin());
}

LeafTotals MergedEntries::totals() const {
    LeafTotals all;
    all.n_distinct = ranks_.size();
    for (std::size_t leaf = 0; leaf + 1 < leaf_begin.size(); ++leaf) {
        count_t n_counted = 0;
        count_t weight = 0;
        for (std::size_t e = leaf_begin[leaf]; e < leaf_begin[leaf + 1]; ++e) {
            n_counted += copies_[e];
            weight += weights_[e];
        }
        all.n_counted += n_counted;
        all.max_counted = std::max(all.max_counted, n_counted);
        all.max_weight = std::max(all.max_weight, weight);
    }
    return all;
}

}  // namespace hdicore
