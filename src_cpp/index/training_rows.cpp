// index/training_rows.cpp: checks leaf ids, counts, weights and targets, and sorts the targets
// SPDX-License-Identifier: BSD-3-Clause
#include "index/training_rows.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>

#include "base/fixed_point.hpp"
#include "base/refusal.hpp"
#include "index/leaf_table.hpp"

namespace hdicore {
namespace {

constexpr count_t max_total = count_t{1} << 52;

std::string at(const char* name, std::size_t row, std::size_t tree) {
    return std::string(name) + "[" + std::to_string(row) + ", " + std::to_string(tree) + "]";
}

// Refuses the first leaf id or count below 0 among rows [begin, end), of which there is one.
[[noreturn]] void refuse_negative(const TreeBlock& block, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
        for (std::size_t k = 0; k < block.n_trees(); ++k) {
            const TreeColumn column = block.column(k, 0);
            const std::size_t place = i * column.step;
            if (column.leaves[place] < 0) {
                refuse(at("leaves", i, column.tree) + " must not be negative, got " +
                       std::to_string(column.leaves[place]));
            }
            if (column.counts != nullptr && column.counts[place] < 0) {
                refuse(at("counts", i, column.tree) + " must not be negative, got " +
                       std::to_string(column.counts[place]));
            }
        }
    }
    refuse_changed_rows();
}

// Sums up rows [begin, end) of one tree. Returns whether all leaf ids and counts are at least 0.
template <class Step>
bool sum_up(const TreeColumn& column, Step step, std::size_t begin, std::size_t end,
            ColumnTotals& totals) noexcept {
    leaf_t signs = 0;
    leaf_t max_leaf = 0;
    for (std::size_t i = begin; i < end; ++i) {
        signs |= column.leaves[i * step];
        max_leaf = std::max(max_leaf, column.leaves[i * step]);
    }
    totals.n_leaves = std::max<std::int64_t>(totals.n_leaves, std::int64_t{max_leaf} + 1);
    if (column.counts == nullptr) {
        totals.n_counted += end - begin;
        return signs >= 0;
    }
    std::int64_t sum = 0;
    for (std::size_t i = begin; i < end; ++i) {
        const std::int32_t count = column.counts[i * step];
        signs |= count;
        totals.max_count = std::max(totals.max_count, count);
        sum += count;
    }
    totals.n_counted += static_cast<count_t>(sum);
    return signs >= 0;
}

}  // namespace

void refuse_changed_rows() {
    refuse("leaves or counts changed while they were read");
}

void check_sizes(const TrainingRows& rows) {
    if (rows.n_rows() < 1) refuse("y must hold at least one training row");
    if (rows.n_rows() > std::numeric_limits<rank_t>::max()) {
        refuse("y must hold fewer than 2**32 rows");
    }
    if (rows.n_outputs() < 1) refuse("y must hold at least one output");
    if (!rows.event.empty()) {
        if (rows.n_outputs() > 1 || rows.pooled) refuse("event needs one output, not pooled");
        if (std::ranges::none_of(rows.event, std::identity())) {
            refuse("event must be true for one row at least: all rows are censored");
        }
    }
    if (!rows.n_leaves.empty() && rows.n_leaves.size() != rows.n_trees) {
        refuse("n_leaves must give one number for each of " + std::to_string(rows.n_trees) +
               " trees, got " + std::to_string(rows.n_leaves.size()));
    }
}

std::vector<ColumnTotals> checked_totals(const TrainingRows& rows, const TreeBlock& block,
                                         Interruption& interruption) {
    // Stays in cache if the trees of a row are neighbours.
    constexpr std::size_t rows_at_once = 1024;
    std::vector<ColumnTotals> totals(block.n_trees());
    for (std::size_t begin = 0; begin < rows.n_rows(); begin += rows_at_once) {
        interruption.check();
        const std::size_t end = std::min(rows.n_rows(), begin + rows_at_once);
        bool proper = true;
        for (std::size_t k = 0; k < block.n_trees(); ++k) {
            const TreeColumn column = block.column(k, 0);
            if (block.row_step() == 1) {
                constexpr std::integral_constant<std::size_t, 1> one;
                proper = sum_up(column, one, begin, end, totals[k]) && proper;
            } else {
                proper = sum_up(column, column.step, begin, end, totals[k]) && proper;
            }
        }
        if (!proper) refuse_negative(block, begin, end);
    }
    for (const ColumnTotals& tree : totals) {
        if (tree.n_counted > max_total) refuse("counts of one tree must not exceed 2**52 in all");
    }
    return totals;
}

std::int64_t checked_n_leaves(const TrainingRows& rows, std::size_t tree, std::int64_t n_named) {
    std::int64_t n = n_named;
    if (!rows.n_leaves.empty()) {
        n = rows.n_leaves[tree];
        if (n_named > n) {
            refuse("leaves names leaf " + std::to_string(n_named - 1) + " of tree " +
                   std::to_string(tree) + ", which has " + std::to_string(n));
        }
    }
    if (n > max_leaves_per_tree) {
        refuse("leaves of tree " + std::to_string(tree) +
               " must be small numbers below 2**28, got " + std::to_string(n - 1));
    }
    return n;
}

std::vector<count_t> checked_row_weights(const TrainingRows& rows, std::int32_t max_count) {
    const std::span<const double> weights = rows.sample_weight;
    if (weights.empty()) return {};
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (!(std::isfinite(weights[i]) && weights[i] >= 0)) {
            refuse("sample_weight[" + std::to_string(i) +
                   "] must be finite and not negative, got " + std::to_string(weights[i]));
        }
    }
    return integer_weights(weights, static_cast<std::size_t>(std::max(max_count, 1)));
}

TargetOrder::TargetOrder(std::size_t n_rows) {
    rows.resize(n_rows);
    ranks.reserve(n_rows);
    atoms.reserve(n_rows);
}

void TargetOrder::assign(const TrainingRows& in, std::size_t output, Interruption& interruption) {
    const auto y = [&](std::uint32_t row) { return in.y(row, output); };
    const auto is_event = [&](std::uint32_t row) { return in.event.empty() || in.event[row]; };
    std::iota(rows.begin(), rows.end(), 0u);
    for (const std::uint32_t row : rows) {
        if (!std::isfinite(y(row))) refuse("y[" + std::to_string(row) + "] is not finite");
    }
    std::uint32_t n_compared = 0;
    std::stable_sort(rows.begin(), rows.end(), [&](std::uint32_t a, std::uint32_t b) {
        if (++n_compared % 65536 == 0) interruption.check();
        return y(a) < y(b) || (y(a) == y(b) && is_event(a) && !is_event(b));
    });
    for (const std::uint32_t row : rows) {
        const bool is_new = atoms.empty() || atoms.back() != y(row) ||
                            (!in.event.empty() && (events.back() != 0) != is_event(row));
        if (is_new) {
            // + 0.0 makes one atom of -0.0 and 0.0 whichever comes first.
            atoms.push_back(y(row) + 0.0);
            if (!in.event.empty()) events.push_back(is_event(row));
        }
        ranks.push_back(static_cast<rank_t>(atoms.size() - 1));
    }
}

}  // namespace hdicore
