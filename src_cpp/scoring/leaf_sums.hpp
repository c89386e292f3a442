// scoring/leaf_sums.hpp: what the rows of each leaf amount to, tree by tree
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/interruption.hpp"
#include "base/matrix.hpp"
#include "base/types.hpp"

namespace hdicore {

// Where the rows of a fit lie. The functions below check the leaves as they read them, and throw
// std::invalid_argument. O(n_rows * n_trees) over n_threads threads.
struct LeavesOfRows {
    Matrix<const leaf_t> leaves;        // (n_trees, n_rows)
    std::span<const offset_t> offsets;  // (n_trees + 1,) leaves of all trees that come before

    std::size_t n_trees() const noexcept { return leaves.rows(); }
    std::size_t n_rows() const noexcept { return leaves.cols(); }
    std::size_t n_leaves(std::size_t tree) const noexcept {
        return static_cast<std::size_t>(offsets[tree + 1] - offsets[tree]);
    }
};

// Gives each row the new number of its leaf; `new_leaves` (n_leaves,) are those of all trees.
void relabel(const LeavesOfRows& rows, std::span<const leaf_t> new_leaves, Matrix<leaf_t> result,
             unsigned n_threads, Interruption& interruption);

// Counts the rows of each leaf that its tree drew, each once, (n_leaves,). `counts` (n_trees,
// n_rows) tell how often it did.
template <class Count>
void count_drawn(const LeavesOfRows& rows, Matrix<const Count> counts,
                 std::span<std::int64_t> sizes, unsigned n_threads, Interruption& interruption);

struct OutOfBagMeans {
    std::span<double> centres;      // (n_rows,) mean of the means of its leaves, 0 without any
    std::span<double> n_oob;        // (n_rows,) trees that did not draw a row
    std::span<double> leaf_means;   // (n_leaves,) of the rows drawn, 0 without any
    std::span<double> leaf_weight;  // (n_leaves,) of these rows
};

// Means of the targets of the rows that trees drew, and for each row the mean of those of its
// leaves in the trees that did not draw it. A row weighs its count times `draw_weight` (n_rows,),
// if that is not empty. Rows are summed in their order, and trees in theirs.
template <class Count>
void find_oob_means(const LeavesOfRows& rows, Matrix<const Count> counts, std::span<const double> y,
                    std::span<const double> draw_weight, const OutOfBagMeans& means,
                    unsigned n_threads, Interruption& interruption);

}  // namespace hdicore
