// index/training_rows.hpp: what an index is built from, and the checks of it
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interruption.hpp"
#include "base/matrix.hpp"
#include "base/types.hpp"

namespace hdicore {

struct TrainingRows {
    std::size_t n_trees = 0;
    // Leaf of each row in each tree, (n_rows, n_trees). Like `counts`, not read if blocks of trees
    // are given.
    Matrix<const leaf_t> leaves{};
    Matrix<const double> y{};  // (n_rows, n_outputs) finite
    // (n_rows,) whether y is the time of the event, not one at which it had not come yet; or none.
    std::span<const bool> event{};
    Matrix<const std::int32_t> counts{};       // (n_rows, n_trees) times a row counts, or none: 1
    std::span<const double> sample_weight{};   // (n_rows,) weight of each row, or none: 1
    std::span<const std::int64_t> n_leaves{};  // (n_trees,), or none: largest leaf given + 1
    bool mask_leaves = false;                  // queries must not name a leaf in which no row lies
    bool pooled = false;  // a row weighs the same in all leaves: large leaves count more
    // Rows to keep in a leaf, chosen by a hash of seed, tree and row; 0: all.
    std::size_t max_samples_leaf = 0;
    std::uint64_t seed = 0;

    std::size_t n_rows() const noexcept { return y.rows(); }
    std::size_t n_outputs() const noexcept { return y.cols(); }
};

// One tree's leaves of the training rows.
struct TreeColumn {
    std::size_t tree;
    std::size_t n_leaves;
    const leaf_t* leaves;        // that of row i is leaves[i * step]
    const std::int32_t* counts;  // times row i counts, counts[i * step]; or null: once
    std::size_t step;
};

// The leaves of the training rows in some trees, from number `first` on.
struct TreeBlock {
    std::size_t first = 0;
    Matrix<const leaf_t> leaves{};        // (n_rows, n_trees), or transposed
    Matrix<const std::int32_t> counts{};  // times a row counts, of the same shape; or none: once
    bool transposed = false;              // the matrices are (n_trees, n_rows)

    std::size_t n_trees() const noexcept { return transposed ? leaves.rows() : leaves.cols(); }
    // From row to row, and from tree to tree.
    std::size_t row_step() const noexcept { return transposed ? 1 : leaves.cols(); }
    std::size_t tree_step() const noexcept { return transposed ? leaves.cols() : 1; }
    leaf_t leaf(std::size_t row, std::size_t k) const noexcept {
        return leaves.data()[row * row_step() + k * tree_step()];
    }
    // Tree first + k.
    TreeColumn column(std::size_t k, std::size_t n_leaves) const noexcept {
        const std::int32_t* times = counts.empty() ? nullptr : counts.data() + k * tree_step();
        return {first + k, n_leaves, leaves.data() + k * tree_step(), times, row_step()};
    }
};

// Throws std::invalid_argument.
[[noreturn]] void refuse_changed_rows();

// What the leaves and counts of one tree amount to.
struct ColumnTotals {
    std::int64_t n_leaves = 0;  // largest leaf id + 1
    count_t n_counted = 0;      // rows, as often as they count
    std::int32_t max_count = 1;
};

// These check their part of the rows, and throw std::invalid_argument.

void check_sizes(const TrainingRows& rows);

// Checks every leaf id and count of a block. O(n_rows * n_trees).
std::vector<ColumnTotals> checked_totals(const TrainingRows& rows, const TreeBlock& block,
                                         Interruption& interruption);

// Leaves that a tree is to have, if rows lie in `n_named` of them.
std::int64_t checked_n_leaves(const TrainingRows& rows, std::size_t tree, std::int64_t n_named);

// The row weights as whole numbers, (n_rows,), or none. Rows count up to `max_count` times.
std::vector<count_t> checked_row_weights(const TrainingRows& rows, std::int32_t max_count);

// The rows of one output in ascending order of y, events before others of their time.
struct TargetOrder {
    std::vector<std::uint32_t> rows;   // (n_rows,)
    std::vector<rank_t> ranks;         // (n_rows,) rank of rows[p]
    std::vector<double> atoms;         // (n_atoms,)
    std::vector<std::uint8_t> events;  // (n_atoms,) or none; see LeafIndexArrays

    // Makes room, so that sorting on another thread allocates nothing but a copy of the rows.
    explicit TargetOrder(std::size_t n_rows);
    // O(n_rows log n_rows).
    void assign(const TrainingRows& rows, std::size_t output, Interruption& interruption);
};

}  // namespace hdicore
