// scoring/tree_spread.hpp: how far the trees of a row agree, and its mass between two ends
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>

#include "base/matrix.hpp"
#include "index/leaf_index.hpp"
#include "scoring/leaf_source.hpp"
#include "scoring/row_blocks.hpp"

namespace hdicore {

struct SpreadRequest {
    Matrix<const double> intervals;  // (n_rows * n_outputs, 2) lower and upper end, both included
    std::span<double> spread;        // (n_rows * n_outputs,)
    std::span<double> mass;          // (n_rows * n_outputs,)
};

// For each row and output the standard deviation over trees of the means of its leaves, and the
// share of its distribution in an interval, of the same units as a merge; leaves without rows do
// not count. Both are NaN where no tree contributes, the second also at an end that is NaN.
//
// Nothing is merged: O(entries + log atoms) for each row.
void find_spread(const LeafIndex& index, const LeafSource& source, const SpreadRequest& request,
                 const Execution& execution);

}  // namespace hdicore
