// index/tree_entries.cpp: counting sort of training rows by leaf, in order of y
// SPDX-License-Identifier: BSD-3-Clause
#include "index/tree_entries.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "base/fixed_point.hpp"

namespace hdicore {
namespace {

constexpr auto no_rank = std::numeric_limits<rank_t>::max();

// Scatters the bits of x (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
// 2014).
std::uint64_t hash(std::uint64_t x) noexcept {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

}  // namespace

void refuse_changed_rows() {
    throw std::invalid_argument("leaves or counts changed while they were read");
}

TreeEntries::TreeEntries(const TrainingRows& rows, std::span<const count_t> row_weights,
                         std::size_t max_leaves, Interruption& interruption)
    : in_(rows), row_weights_(row_weights), interruption_(interruption) {
    leaf_begin.reserve(max_leaves + 1);
    end_.reserve(max_leaves);
    last_.reserve(max_leaves);
    total_.reserve(max_leaves);
    leaf_.resize(in_.n_rows);
    weight_.resize(in_.n_rows);
    ranks.reserve(in_.n_rows);
    units.reserve(in_.n_rows);
    weights.reserve(in_.n_rows);
    if (!row_weights.empty()) copies_.reserve(in_.n_rows);
    if (in_.max_samples_leaf > 0) hashed_.reserve(in_.n_rows);
}

void TreeEntries::measure(std::size_t tree, std::size_t n_leaves,
                          std::span<const TargetOrder> orders, LeafStatistics& statistics) {
    if (!row_weights_.empty()) {
        collect_column(tree, n_leaves, row_weights_);
        sum_weights(n_leaves);
        statistics.max_weight = *std::max_element(total_.begin(), total_.end());
    }
    collect_column(tree, n_leaves, {});
    for (std::size_t i = 0; i < row_weights_.size(); ++i) {
        if (row_weights_[i] == 0) weight_[i] = 0;
    }
    sum_weights(n_leaves);
    statistics.max_counted = *std::max_element(total_.begin(), total_.end());
    if (row_weights_.empty()) statistics.max_weight = statistics.max_counted;
    statistics.n_counted = std::accumulate(total_.begin(), total_.end(), count_t{0});
    for (std::size_t o = 0; o < orders.size(); ++o) {
        statistics.n_distinct[o] = count_distinct(n_leaves, orders[o]);
    }
}

count_t TreeEntries::count_distinct(std::size_t n_leaves, const TargetOrder& order) {
    last_.assign(n_leaves, no_rank);
    count_t n = 0;
    each_row([&n, rows = order.rows.data(), ranks = order.ranks.data(), weight = weight_.data(),
              leaf = leaf_.data(), last = last_.data()](std::size_t p) {
        const std::uint32_t row = rows[p];
        if (weight[row] == 0) return;
        rank_t& before = last[leaf[row]];
        n += before != ranks[p];
        before = ranks[p];
    });
    return n;
}

void TreeEntries::group(std::size_t tree, std::size_t n_leaves, const TargetOrder& order, int shift,
                        count_t pool) {
    collect_column(tree, n_leaves, row_weights_);
    group_rows(tree, n_leaves, order);
    units.resize(ranks.size());
    for (std::size_t leaf = 0; leaf < n_leaves; ++leaf) {
        const std::size_t begin = leaf_begin[leaf];
        const std::size_t n = leaf_begin[leaf + 1] - begin;
        apportion({weights.data() + begin, n}, shift, pool, units.data() + begin);
    }
}

void TreeEntries::group_rows(std::size_t tree, std::size_t n_leaves, const TargetOrder& order) {
    leaf_begin.assign(n_leaves + 1, 0);
    last_.assign(n_leaves, no_rank);
    each_row([&](std::size_t p) {
        if (weight_[order.rows[p]] == 0) return;
        const auto leaf = static_cast<std::size_t>(leaf_[order.rows[p]]);
        leaf_begin[leaf + 1] += last_[leaf] != order.ranks[p];
        last_[leaf] = order.ranks[p];
    });
    std::partial_sum(leaf_begin.begin(), leaf_begin.end(), leaf_begin.begin());

    ranks.assign(leaf_begin.back(), 0);
    weights.assign(leaf_begin.back(), 0);
    copies_.assign(row_weights_.empty() ? 0 : leaf_begin.back(), 0);
    end_.assign(leaf_begin.begin(), leaf_begin.end() - 1);
    each_row([&](std::size_t p) {
        const std::uint32_t row = order.rows[p];
        if (weight_[row] == 0) return;
        const auto leaf = static_cast<std::size_t>(leaf_[row]);
        const rank_t rank = order.ranks[p];
        std::uint32_t& end = end_[leaf];
        if (end == leaf_begin[leaf] || ranks[end - 1] != rank) ranks[end++] = rank;
        weights[end - 1] += weight_[row];
        if (!row_weights_.empty()) copies_[end - 1] += count_of(row, tree);
    });
}

void TreeEntries::collect_column(std::size_t tree, std::size_t n_leaves,
                                 std::span<const count_t> row_weights) {
    const leaf_t* leaves = in_.leaves + tree;
    const std::size_t step = in_.n_trees;
    leaf_t* leaf = leaf_.data();
    count_t* weight = weight_.data();
    // They were checked before, but may have been changed since.
    std::uint32_t max_leaf = 0;
    if (in_.counts == nullptr) {
        each_row([=, &max_leaf](std::size_t i) {
            leaf[i] = leaves[i * step];
            max_leaf = std::max(max_leaf, static_cast<std::uint32_t>(leaf[i]));
            weight[i] = 1;
        });
    } else {
        const std::int32_t* counts = in_.counts + tree;
        each_row([=, &max_leaf](std::size_t i) {
            leaf[i] = leaves[i * step];
            max_leaf = std::max(max_leaf, static_cast<std::uint32_t>(leaf[i]));
            weight[i] = static_cast<count_t>(counts[i * step]);
        });
    }
    if (max_leaf >= n_leaves) refuse_changed_rows();
    const count_t* row_weight = row_weights.data();
    if (!row_weights.empty()) each_row([=](std::size_t i) { weight[i] *= row_weight[i]; });
    if (in_.max_samples_leaf > 0) thin_leaves(tree, n_leaves);
}

void TreeEntries::thin_leaves(std::size_t tree, std::size_t n_leaves) {
    hashed_.clear();
    each_row([&](std::size_t i) {
        const bool weighs = row_weights_.empty() || row_weights_[i] > 0;
        if (weighs && weight_[i] > 0) hashed_.push_back({hash(hash(in_.seed ^ hash(tree)) ^ i), i});
    });
    std::sort(hashed_.begin(), hashed_.end());
    end_.assign(n_leaves, 0);
    for (const auto& [_, row] : hashed_) {
        std::uint32_t& n = end_[static_cast<std::size_t>(leaf_[row])];
        if (n == in_.max_samples_leaf) {
            weight_[row] = 0;
        } else {
            ++n;
        }
    }
}

void TreeEntries::sum_weights(std::size_t n_leaves) {
    total_.assign(n_leaves, 0);
    each_row([total = total_.data(), leaf = leaf_.data(), weight = weight_.data()](std::size_t i) {
        total[leaf[i]] += weight[i];
    });
}

}  // namespace hdicore
