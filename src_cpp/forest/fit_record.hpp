// forest/fit_record.hpp: whether rows are those of a fit, by what trees recorded of their leaves
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/interruption.hpp"
#include "base/matrix.hpp"
#include "base/types.hpp"

namespace hdicore {

// What scikit-learn recorded of the leaves of a tree, from left to right.
struct FitRecord {
    std::span<const double> weight;  // (n_leaves,)
    Matrix<const double> value;      // (n_leaves, n_outputs)
    Matrix<const double> bounds;     // (2, n_leaves) of monotonic constraints, or empty
    bool medians;                    // whether values are medians of targets, not means
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

// How the leaves of each tree differ from those that the rows make. A finite bound of a leaf may
// have moved its value from its side by any length. Sums that overflow prove nothing.
//
// O(n_rows * n_outputs) a tree. Throws std::invalid_argument for leaves that a tree does not have.
template <class Count>
std::vector<Difference> compare(std::span<const FitRecord> trees, const FitRows<Count>& rows,
                                unsigned n_threads, Interruption& interruption);

}  // namespace hdicore
