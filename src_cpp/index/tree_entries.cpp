// index/tree_entries.cpp: counting sort of training rows by leaf, in order of y
// SPDX-License-Identifier: BSD-3-Clause
#include "index/tree_entries.hpp"

#include <algorithm>
#include <type_traits>

#include "base/fixed_point.hpp"

namespace hdicore {
namespace {

// Scatters the bits of x (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
// 2014).
std::uint64_t hash(std::uint64_t x) noexcept {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

}  // namespace

TreeEntries::TreeEntries(const TrainingRows& rows, std::span<const count_t> row_weights,
                         std::size_t max_leaves, bool places, Interruption& interruption)
    : in_(rows), row_weights_(row_weights), interruption_(interruption) {
    leaf_begin.reserve(max_leaves + 1);
    end_.reserve(max_leaves);
    last_.reserve(max_leaves);
    leaf_.reserve(in_.n_rows());
    times_.reserve(in_.n_rows());
    if (in_.max_samples_leaf > 0) hashed_.reserve(in_.n_rows());
    if (places) return;
    total_.reserve(max_leaves);
    weight_.resize(in_.n_rows());
    ranks.reserve(in_.n_rows());
    units.reserve(in_.n_rows());
    weights.reserve(in_.n_rows());
    if (!row_weights.empty()) copies_.reserve(in_.n_rows());
}

void TreeEntries::measure(const TreeColumn& column, std::span<const TargetOrder> orders,
                          TreeStatistics& statistics) {
    if (!row_weights_.empty()) {
        collect_column(column, row_weights_);
        sum_weights(column.n_leaves);
        statistics.max_weight = *std::max_element(total_.begin(), total_.end());
    }
    collect_column(column, {});
    for (std::size_t i = 0; i < row_weights_.size(); ++i) {
        if (row_weights_[i] == 0) weight_[i] = 0;
    }
    sum_weights(column.n_leaves);
    statistics.max_counted = *std::max_element(total_.begin(), total_.end());
    if (row_weights_.empty()) statistics.max_weight = statistics.max_counted;
    statistics.n_counted = std::accumulate(total_.begin(), total_.end(), count_t{0});
    for (std::size_t o = 0; o < orders.size(); ++o) {
        statistics.n_distinct[o] = count_distinct(column.n_leaves, orders[o]);
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

void TreeEntries::group(const TreeColumn& column, const TargetOrder& order, int shift,
                        count_t pool) {
    collect_column(column, row_weights_);
    group_rows(column, order);
    units.resize(ranks.size());
    for (std::size_t leaf = 0; leaf < column.n_leaves; ++leaf) {
        const std::size_t begin = leaf_begin[leaf];
        const std::size_t n = leaf_begin[leaf + 1] - begin;
        apportion({weights.data() + begin, n}, shift, pool, units.data() + begin);
    }
}

void TreeEntries::group_rows(const TreeColumn& column, const TargetOrder& order) {
    leaf_begin.assign(column.n_leaves + 1, 0);
    last_.assign(column.n_leaves, no_rank);
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
        if (!row_weights_.empty()) copies_[end - 1] += times_.empty() ? 1 : times_[row];
    });
}

void TreeEntries::copy_column(const TreeColumn& column) {
    const auto copy = [&](const auto* from, auto& to) {
        to.resize(in_.n_rows());
        std::uint32_t largest = 0;
        each_row([&largest, from, step = column.step, out = to.data()](std::size_t i) {
            const auto value = static_cast<std::uint32_t>(from[i * step]);
            out[i] = static_cast<std::remove_reference_t<decltype(out[i])>>(value);
            largest = std::max(largest, value);
        });
        return largest;
    };
    // They were checked before, but may have been changed since.
    if (copy(column.leaves, leaf_) >= column.n_leaves) refuse_changed_rows();
    times_.clear();
    if (column.counts != nullptr) copy(column.counts, times_);
    if (in_.max_samples_leaf > 0) thin_leaves(column.tree, column.n_leaves);
}

void TreeEntries::collect_column(const TreeColumn& column, std::span<const count_t> row_weights) {
    copy_column(column);
    if (times_.empty()) {
        std::fill(weight_.begin(), weight_.end(), 1);
    } else {
        std::copy(times_.begin(), times_.end(), weight_.begin());
    }
    const count_t* row_weight = row_weights.data();
    if (!row_weights.empty()) {
        each_row([=, weight = weight_.data()](std::size_t i) { weight[i] *= row_weight[i]; });
    }
}

count_t TreeEntries::find_leaves(const TreeColumn& column, std::size_t n_entries) {
    copy_column(column);
    leaf_begin.assign(column.n_leaves + 1, 0);
    count_t total = times_.empty() ? in_.n_rows() : 0;
    for (const std::uint32_t n : times_) total += std::min<count_t>(n, n_entries + 1);
    if (total != n_entries) refuse_changed_rows();
    each_row([&, n = leaf_begin.data() + 1, leaf = leaf_.data()](std::size_t i) {
        n[leaf[i]] += times_.empty() ? 1 : times_[i];
    });
    const count_t largest = *std::max_element(leaf_begin.begin(), leaf_begin.end());
    std::partial_sum(leaf_begin.begin(), leaf_begin.end(), leaf_begin.begin());
    return largest;
}

void TreeEntries::thin_leaves(std::size_t tree, std::size_t n_leaves) {
    if (times_.empty()) times_.assign(in_.n_rows(), 1);
    hashed_.clear();
    each_row([&](std::size_t i) {
        const bool weighs = row_weights_.empty() || row_weights_[i] > 0;
        if (weighs && times_[i] > 0) hashed_.push_back({hash(hash(in_.seed ^ hash(tree)) ^ i), i});
    });
    std::sort(hashed_.begin(), hashed_.end());
    end_.assign(n_leaves, 0);
    for (const auto& [_, row] : hashed_) {
        std::uint32_t& n = end_[static_cast<std::size_t>(leaf_[row])];
        if (n == in_.max_samples_leaf) {
            times_[row] = 0;
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
