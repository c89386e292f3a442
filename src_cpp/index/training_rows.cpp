// index/training_rows.cpp: checks leaf ids, counts, weights and targets, and sorts the targets
// SPDX-License-Identifier: BSD-3-Clause
#include "index/training_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include "base/fixed_point.hpp"
#include "index/leaf_index.hpp"

namespace hdicore {
namespace {

constexpr count_t max_total = count_t{1} << 52;

[[noreturn]] void refuse(const std::string& why) {
    throw std::invalid_argument(why);
}

std::string at(const char* name, std::size_t row, std::size_t tree) {
    return std::string(name) + "[" + std::to_string(row) + ", " + std::to_string(tree) + "]";
}

void check_sizes(const TrainingRows& rows) {
    if (rows.n_rows < 1) refuse("y must hold at least one training row");
    if (rows.n_rows > std::numeric_limits<rank_t>::max()) {
        refuse("y must hold fewer than 2**32 rows");
    }
    if (rows.n_outputs < 1) refuse("y must hold at least one output");
    if (!rows.n_leaves.empty() && rows.n_leaves.size() != rows.n_trees) {
        refuse("n_leaves must give one number for each of " + std::to_string(rows.n_trees) +
               " trees, got " + std::to_string(rows.n_leaves.size()));
    }
}

// Largest leaf id + 1 of each tree, after checking every leaf id and count.
std::vector<std::int64_t> checked_sizes(const TrainingRows& rows, Interruption& interruption) {
    const std::size_t m = rows.n_trees;
    std::vector<std::int64_t> sizes(m, 0);
    std::vector<count_t> totals(m, 0);
    for (std::size_t i = 0; i < rows.n_rows; ++i) {
        if (i % 1024 == 0) interruption.check();
        for (std::size_t t = 0; t < m; ++t) {
            const leaf_t leaf = rows.leaves[i * m + t];
            if (leaf < 0) {
                refuse(at("leaves", i, t) + " must not be negative, got " + std::to_string(leaf));
            }
            sizes[t] = std::max<std::int64_t>(sizes[t], std::int64_t{leaf} + 1);
            if (rows.counts == nullptr) continue;
            const std::int32_t count = rows.counts[i * m + t];
            if (count < 0) {
                refuse(at("counts", i, t) + " must not be negative, got " + std::to_string(count));
            }
            totals[t] += static_cast<count_t>(count);
        }
    }
    if (std::ranges::any_of(totals, [](count_t total) { return total > max_total; })) {
        refuse("counts of one tree must not exceed 2**52 in all");
    }
    return sizes;
}

}  // namespace

std::vector<offset_t> checked_leaf_offsets(const TrainingRows& rows, Interruption& interruption) {
    check_sizes(rows);
    std::vector<std::int64_t> sizes = checked_sizes(rows, interruption);
    std::vector<offset_t> offsets(rows.n_trees + 1, 0);
    for (std::size_t t = 0; t < rows.n_trees; ++t) {
        if (!rows.n_leaves.empty()) {
            if (sizes[t] > rows.n_leaves[t]) {
                refuse("leaves names leaf " + std::to_string(sizes[t] - 1) + " of tree " +
                       std::to_string(t) + ", which has " + std::to_string(rows.n_leaves[t]));
            }
            sizes[t] = rows.n_leaves[t];
        }
        if (sizes[t] > max_leaves_per_tree) {
            refuse("leaves of tree " + std::to_string(t) +
                   " must be small numbers below 2**28, got " + std::to_string(sizes[t] - 1));
        }
        offsets[t + 1] = offsets[t] + sizes[t];
    }
    return offsets;
}

std::vector<count_t> checked_row_weights(const TrainingRows& rows) {
    if (rows.sample_weight == nullptr) return {};
    const std::span weights(rows.sample_weight, rows.n_rows);
    for (std::size_t i = 0; i < rows.n_rows; ++i) {
        if (!(std::isfinite(weights[i]) && weights[i] >= 0)) {
            refuse("sample_weight[" + std::to_string(i) +
                   "] must be finite and not negative, got " + std::to_string(weights[i]));
        }
    }
    std::int32_t copies = 1;
    if (rows.counts != nullptr) {
        copies = *std::max_element(rows.counts, rows.counts + rows.n_rows * rows.n_trees);
    }
    return integer_weights(weights, static_cast<std::size_t>(std::max(copies, 1)));
}

std::vector<std::uint64_t> known_leaves(const TrainingRows& rows,
                                        std::span<const offset_t> leaf_offsets,
                                        Interruption& interruption) {
    std::vector<std::uint64_t> known((static_cast<std::size_t>(leaf_offsets.back()) + 63) / 64, 0);
    in_pieces(rows.n_rows * rows.n_trees, interruption, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            const std::size_t t = i % rows.n_trees;
            const leaf_t leaf = rows.leaves[i];
            // Checked before, but it may have been changed since.
            if (leaf < 0 || leaf >= leaf_offsets[t + 1] - leaf_offsets[t]) {
                refuse(at("leaves", i / rows.n_trees, t) + " changed while it was read");
            }
            const auto bit = static_cast<std::size_t>(leaf_offsets[t] + leaf);
            known[bit / 64] |= std::uint64_t{1} << bit % 64;
        }
    });
    return known;
}

TargetOrder::TargetOrder(std::size_t n_rows) {
    rows.resize(n_rows);
    ranks.reserve(n_rows);
    atoms.reserve(n_rows);
}

void TargetOrder::assign(const TrainingRows& in, std::size_t output, Interruption& interruption) {
    const auto y = [&](std::uint32_t row) { return in.y[row * in.n_outputs + output]; };
    std::iota(rows.begin(), rows.end(), 0u);
    for (const std::uint32_t row : rows) {
        if (!std::isfinite(y(row))) refuse("y[" + std::to_string(row) + "] is not finite");
    }
    std::uint32_t n_compared = 0;
    std::stable_sort(rows.begin(), rows.end(), [&](std::uint32_t a, std::uint32_t b) {
        if (++n_compared % 65536 == 0) interruption.check();
        return y(a) < y(b);
    });
    for (const std::uint32_t row : rows) {
        // + 0.0 makes one atom of -0.0 and 0.0 whichever comes first.
        if (atoms.empty() || atoms.back() != y(row)) atoms.push_back(y(row) + 0.0);
        ranks.push_back(static_cast<rank_t>(atoms.size() - 1));
    }
}

}  // namespace hdicore
