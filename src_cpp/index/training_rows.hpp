// index/training_rows.hpp: what an index is built from, and the checks of it
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interruption.hpp"
#include "base/types.hpp"

namespace hdicore {

struct TrainingRows {
    std::size_t n_rows;
    std::size_t n_trees;
    std::size_t n_outputs;
    const leaf_t* leaves;                    // (n_rows, n_trees) leaf of each row in each tree
    const double* y;                         // (n_rows, n_outputs) finite
    const std::int32_t* counts;              // (n_rows, n_trees) times a row counts, or null: once
    const double* sample_weight;             // (n_rows,) weight of each row, or null: 1
    std::span<const std::int64_t> n_leaves;  // (n_trees,), or empty: largest leaf given + 1
    bool only_known_leaves = false;          // queries must not name a leaf in which no row lies
    bool pooled = false;  // a row weighs the same in all leaves: large leaves count more
    // Rows to keep in a leaf, chosen by a hash of seed, tree and row; 0: all.
    std::size_t max_samples_leaf = 0;
    std::uint64_t seed = 0;
};

// These check their part of the rows, and throw std::invalid_argument.

// Offsets of the leaves of each tree, (n_trees + 1,).
std::vector<offset_t> checked_leaf_offsets(const TrainingRows& rows, Interruption& interruption);

// The row weights as whole numbers, (n_rows,), or none.
std::vector<count_t> checked_row_weights(const TrainingRows& rows);

// A bit for each leaf: whether a row lies in it, 64 to an element.
std::vector<std::uint64_t> known_leaves(const TrainingRows& rows,
                                        std::span<const offset_t> leaf_offsets,
                                        Interruption& interruption);

// The rows of one output in ascending order of y.
struct TargetOrder {
    std::vector<std::uint32_t> rows;  // (n_rows,)
    std::vector<rank_t> ranks;        // (n_rows,) rank of rows[p]
    std::vector<double> atoms;        // (n_atoms,)

    // Makes room, so that sorting on another thread allocates nothing but a copy of the rows.
    explicit TargetOrder(std::size_t n_rows);
    // O(n_rows log n_rows).
    void assign(const TrainingRows& rows, std::size_t output, Interruption& interruption);
};

}  // namespace hdicore
