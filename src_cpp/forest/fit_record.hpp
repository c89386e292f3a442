// forest/fit_record.hpp: whether rows are those of a fit, by what trees recorded of their leaves
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/interruption.hpp"
#include "base/matrix.hpp"
#include "base/types.hpp"
#include "forest/forest.hpp"

namespace hdicore {

// What leaves predict, and what their impurity is.
enum class Criterion : std::uint8_t {
    squared_error,   // mean, variance
    poisson,         // mean, half the Poisson deviance
    absolute_error,  // median, mean absolute deviation from it
};

// A tree as scikit-learn fitted it; leaves are counted from left to right.
struct FitRecord {
    Column<std::int64_t> children_left;        // (n_nodes,) -1 marks a leaf
    Column<std::int64_t> children_right;       // (n_nodes,)
    Column<std::int64_t> n_rows;               // (n_nodes,) with a weight
    Column<double> weight;                     // (n_nodes,)
    Column<double> impurity;                   // (n_nodes,) mean over outputs
    Matrix<const double> value;                // (n_nodes, n_outputs)
    std::optional<Column<std::int8_t>> signs;  // (n_nodes,) of monotonic constraints on splits
    Criterion criterion;

    std::size_t n_nodes() const noexcept { return value.rows(); }
};

// In a tree a row weighs its count times its sample weight.
template <class Count>
struct FitRows {
    Matrix<const leaf_t> leaves;            // (n_trees, n_rows)
    Matrix<const Count> counts;             // (n_trees, n_rows), or empty: all 1
    std::span<const double> sample_weight;  // (n_rows,), or empty: all 1
    bool in_float32;                        // whether the products were rounded to float32
    Matrix<const double> targets;           // (n_outputs, n_rows)
};

enum class Difference : std::uint8_t { none, weights, targets };

struct Mismatch {
    std::size_t tree;
    Difference difference;
};

// The first tree of whose leaves the weight, or the value or impurity, is not what the rows say,
// and which of them; n_trees and none, if there is no such tree. Records and rows that are not
// finite, or whose sums overflow, prove nothing.
//
// Tolerances bound the rounding of the sums that scikit-learn makes, by the rows of the leaf and,
// for impurities, of its parent. Three changes are not seen: of rows that no tree drew; of the
// order of rows, if each leaf keeps its weighted targets; and below the rounding (a spread of less
// than about 1e-13 of the targets, or of less than 1e-300).
//
// O(n_rows * n_outputs + n_nodes) for each tree, medians O(n_rows log n_rows), over n_threads
// threads. Throws std::invalid_argument for leaves that a tree does not have, or children that make
// no tree.
template <class Count>
Mismatch find_mismatch(std::span<const FitRecord> trees, const FitRows<Count>& rows,
                       unsigned n_threads, Interruption& interruption);

}  // namespace hdicore
