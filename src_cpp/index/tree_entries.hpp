// index/tree_entries.hpp: the training rows of one tree, grouped by leaf and target
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/interruption.hpp"
#include "base/types.hpp"
#include "index/storage_format.hpp"
#include "index/training_rows.hpp"

namespace hdicore {

// What decides how the entries of one tree are stored.
struct TreeStatistics {
    count_t n_counted = 0;            // rows, as often as they count
    count_t max_counted = 0;          // of one leaf
    count_t max_weight = 0;           // of the rows of one leaf together
    std::vector<count_t> n_distinct;  // (n_outputs,) pairs of a leaf and a target in it
};

// Scratch memory of one thread, and the entries of the tree grouped last.
class TreeEntries {
  public:
    std::vector<std::uint32_t> leaf_begin;  // (n_leaves + 1,)
    std::vector<rank_t> ranks;              // (n_entries,)
    std::vector<mass_t> units;              // (n_entries,)
    std::vector<count_t> weights;           // (n_entries,)

    // For trees of up to max_leaves leaves, for which it allocates nothing later. `places` says
    // whether rows are only placed.
    TreeEntries(const TrainingRows& rows, std::span<const count_t> row_weights,
                std::size_t max_leaves, bool places, Interruption& interruption);

    // Fills in the statistics of one tree, in all outputs.
    void measure(const TreeColumn& column, std::span<const TargetOrder> orders,
                 TreeStatistics& statistics);

    // Groups the rows of one tree: one entry for each target of a leaf. Units are shares of `pool`,
    // or of each leaf's total if it is 0.
    void group(const TreeColumn& column, const TargetOrder& order, int shift, count_t pool);

    // What was grouped last.
    EntryColumns columns() const noexcept {
        return {ranks, units, row_weights_.empty() ? weights : copies_, weights};
    }

    // Finds where leaves begin if rows weigh alike: each is an entry as often as it counts,
    // n_entries in all, so that entries need no units. Returns the entries of the largest leaf.
    count_t find_leaves(const TreeColumn& column, std::size_t n_entries);
    // Writes the ranks of these entries to `out`, in one output. Returns the number of pairs of a
    // leaf and a target in it.
    template <class Rank>
    count_t place(const TargetOrder& order, Rank* out);

  private:
    static constexpr rank_t no_rank = std::numeric_limits<rank_t>::max();

    template <class Use>
    void each_row(const Use& use) {
        in_pieces(in_.n_rows(), interruption_, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) use(i);
        });
    }

    // Copies the column: to leaf_, and to times_ if there are counts or leaves are thinned.
    void copy_column(const TreeColumn& column);
    // Copies it to leaf_ and weight_: count times row weight, if there are any.
    void collect_column(const TreeColumn& column, std::span<const count_t> row_weights);
    // Keeps only the max_samples_leaf rows of lowest hash in each leaf.
    void thin_leaves(std::size_t tree, std::size_t n_leaves);
    // Sums the weights of each leaf, in total_.
    void sum_weights(std::size_t n_leaves);
    count_t count_distinct(std::size_t n_leaves, const TargetOrder& order);
    void group_rows(const TreeColumn& column, const TargetOrder& order);

    const TrainingRows& in_;
    std::span<const count_t> row_weights_;
    Interruption& interruption_;
    std::vector<leaf_t> leaf_;          // (n_rows,)
    std::vector<std::uint32_t> times_;  // (n_rows,) or empty: once
    std::vector<count_t> weight_;       // (n_rows,)
    std::vector<rank_t> last_;          // (n_leaves,)
    std::vector<std::uint32_t> end_;    // (n_leaves,)
    std::vector<count_t> total_;        // (n_leaves,)
    std::vector<count_t> copies_;       // (n_entries,) if rows have weights
    std::vector<std::pair<std::uint64_t, std::size_t>> hashed_;  // (n_rows,) if leaves are thinned
};

template <class Rank>
count_t TreeEntries::place(const TargetOrder& order, Rank* out) {
    end_.assign(leaf_begin.begin(), leaf_begin.end() - 1);
    // If no two rows share a target, each of them is one of a leaf.
    const bool may_tie = order.atoms.size() < in_.n_rows();
    last_.assign(may_tie ? end_.size() : 0, no_rank);
    count_t n_distinct = 0;
    const auto place_all = [&]<class Times>(const Times& times) {
        each_row([&, rows = order.rows.data(), ranks = order.ranks.data(), ends = end_.data(),
                  last = last_.data(), leaf = leaf_.data()](std::size_t p) {
            const std::uint32_t row = rows[p];
            const std::uint32_t n = times(row);
            if (n == 0) return;
            const rank_t rank = ranks[p];
            if (may_tie) {
                n_distinct += last[leaf[row]] != rank;
                last[leaf[row]] = rank;
            } else {
                ++n_distinct;
            }
            std::uint32_t& end = ends[leaf[row]];
            for (std::uint32_t k = 0; k < n; ++k) out[end++] = static_cast<Rank>(rank);
        });
    };
    if (times_.empty()) {
        place_all([](std::uint32_t) { return 1u; });
    } else {
        place_all([times = times_.data()](std::uint32_t row) { return times[row]; });
    }
    return n_distinct;
}

}  // namespace hdicore
