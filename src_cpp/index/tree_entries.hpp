// index/tree_entries.hpp: the training rows of one tree, grouped by leaf and target
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/interruption.hpp"
#include "base/types.hpp"
#include "index/training_rows.hpp"

namespace hdicore {

// What decides how the entries of one tree are stored.
struct LeafStatistics {
    count_t n_counted = 0;            // rows, as often as they count
    count_t max_counted = 0;          // of one leaf
    count_t max_weight = 0;           // of the rows of one leaf together
    std::vector<count_t> n_distinct;  // (n_outputs,) pairs of a leaf and a target in it
};

// Throws std::invalid_argument.
[[noreturn]] void refuse_changed_rows();

// Scratch memory of one thread, and the entries of the tree grouped last.
class TreeEntries {
  public:
    std::vector<std::uint32_t> leaf_begin;  // (n_leaves + 1,)
    std::vector<rank_t> ranks;              // (n_entries,)
    std::vector<mass_t> units;              // (n_entries,)
    std::vector<count_t> weights;           // (n_entries,)

    // For trees of up to max_leaves leaves, for which it allocates nothing later.
    TreeEntries(const TrainingRows& rows, std::span<const count_t> row_weights,
                std::size_t max_leaves, Interruption& interruption);

    // Fills in the statistics of one tree, in all outputs.
    void measure(std::size_t tree, std::size_t n_leaves, std::span<const TargetOrder> orders,
                 LeafStatistics& statistics);

    // Groups the rows of one tree: one entry for each target of a leaf. Units are shares of `pool`,
    // or of each leaf's total if it is 0.
    void group(std::size_t tree, std::size_t n_leaves, const TargetOrder& order, int shift,
               count_t pool);

    // (n_entries,) rows behind each entry, as often as they count.
    std::span<const count_t> copies() const noexcept {
        return row_weights_.empty() ? weights : copies_;
    }

    // Groups rows of equal weight: each row is an entry as often as it counts, so that entries need
    // no units. Writes n_entries ranks to `out`.
    template <class Rank>
    void place(std::size_t tree, std::size_t n_leaves, const TargetOrder& order,
               std::size_t n_entries, Rank* out);

  private:
    template <class Use>
    void each_row(const Use& use) {
        in_pieces(in_.n_rows, interruption_, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) use(i);
        });
    }

    count_t count_of(std::size_t row, std::size_t tree) const noexcept {
        return in_.counts == nullptr ? 1
                                     : static_cast<count_t>(in_.counts[row * in_.n_trees + tree]);
    }

    // Fills leaf_ and weight_: count times row weight, if there are any.
    void collect_column(std::size_t tree, std::size_t n_leaves,
                        std::span<const count_t> row_weights);
    // Keeps only the max_samples_leaf rows of lowest hash in each leaf.
    void thin_leaves(std::size_t tree, std::size_t n_leaves);
    // Sums the weights of each leaf, in total_.
    void sum_weights(std::size_t n_leaves);
    count_t count_distinct(std::size_t n_leaves, const TargetOrder& order);
    void group_rows(std::size_t tree, std::size_t n_leaves, const TargetOrder& order);

    const TrainingRows& in_;
    std::span<const count_t> row_weights_;
    Interruption& interruption_;
    std::vector<leaf_t> leaf_;        // (n_rows,)
    std::vector<count_t> weight_;     // (n_rows,)
    std::vector<rank_t> last_;        // (n_leaves,)
    std::vector<std::uint32_t> end_;  // (n_leaves,)
    std::vector<count_t> total_;      // (n_leaves,)
    std::vector<count_t> copies_;     // (n_entries,) if rows have weights
    std::vector<std::pair<std::uint64_t, std::size_t>> hashed_;  // (n_rows,) if leaves are thinned
};

template <class Rank>
void TreeEntries::place(std::size_t tree, std::size_t n_leaves, const TargetOrder& order,
                        std::size_t n_entries, Rank* out) {
    collect_column(tree, n_leaves, {});
    leaf_begin.assign(n_leaves + 1, 0);
    each_row([n = leaf_begin.data() + 1, leaf = leaf_.data(), weight = weight_.data()](
                 std::size_t i) { n[leaf[i]] += static_cast<std::uint32_t>(weight[i]); });
    count_t total = 0;
    for (const count_t weight : weight_) total += std::min<count_t>(weight, n_entries + 1);
    if (total != n_entries) refuse_changed_rows();
    std::partial_sum(leaf_begin.begin(), leaf_begin.end(), leaf_begin.begin());
    end_.assign(leaf_begin.begin(), leaf_begin.end() - 1);
    each_row([out, rows = order.rows.data(), ranks = order.ranks.data(), ends = end_.data(),
              leaf = leaf_.data(), weight = weight_.data()](std::size_t p) {
        const std::uint32_t row = rows[p];
        std::uint32_t& end = ends[leaf[row]];
        for (count_t k = 0; k < weight[row]; ++k) out[end++] = static_cast<Rank>(ranks[p]);
    });
}

}  // namespace hdicore
