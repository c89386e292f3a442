// scoring/centred.hpp: intervals of training rows from targets or residuals of others
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/interruption.hpp"
#include "base/matrix.hpp"
#include "index/leaf_index.hpp"
#include "pmf/interval.hpp"

namespace hdicore {

// The training rows of a forest, and their out-of-bag means.
struct CentredRows {
    // Of the rows, each an atom of its own. It keeps row weights, or has no units.
    const LeafIndex& index;
    std::span<const std::uint32_t> rows_of_atoms;  // (n_rows,) a permutation
    // (n_trees, ceil(n_rows / 8)) bit k of a tree tells whether it drew the row of atom k
    Matrix<const std::uint8_t> drawn;
    std::span<const double> leaf_weight;  // (n_leaves,) count times weight of the rows of a leaf
    std::span<const double> y;            // (n_rows,) targets
    std::span<const double> centres;      // (n_rows,) mean over its out-of-bag trees of leaf means
    std::span<const double> n_oob;        // (n_rows,) number of trees that did not draw a row
    std::span<const double> draw_weight{};  // (n_rows,) of a row each time it is drawn, or none: 1
    std::span<const double> offsets{};      // (n_rows,) finite, or none: 0
    double scale = 1;
};

// What the atoms of a row are.
enum class Family {
    raw,      // targets
    centred,  // the row's centre plus residuals
};

struct CentredRequest {
    std::span<const std::uint32_t> rows;  // (n,) training rows to find intervals for
    Matrix<const leaf_t> leaves;          // (n, n_trees) theirs
    Matrix<const std::int32_t> counts;    // (n, n_trees) times a tree drew them
    std::span<const double> coverages;    // (n_levels,) in (0, 1]
    std::span<const Kind> kinds;          // (n_levels,) of each
    std::span<const Family> families;
    Matrix<double> results;  // (n_families * n, 2 * n_levels), lower ends first
};

// Intervals of each training row i from the trees that did not draw it, without row i itself: of
// the atoms y_j, or s_i + (y_j - s_j(i)), where s_j = scale c_j + offset_j. An atom has the weight
// that row j has in the out-of-bag distribution of row i. s_j(i) has in place of the centre c_j the
// same without y_i: (c_j - v y_i) / (1 - v), where v is the weight of y_i in c_j, and 1 - v is
// taken as min_rest at least. NaN where no tree contributes.
//
// O(entries of the row's leaves + atoms log atoms + levels * atoms) for each row. Throws
// std::invalid_argument if the index neither keeps row weights nor is without units.
void centred_oob_intervals(const CentredRows& rows, const CentredRequest& request,
                           unsigned n_threads, Interruption& interruption = Interruption::never());

inline constexpr double min_rest = 0.05;

}  // namespace hdicore
