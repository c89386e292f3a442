// scoring/row_centres.hpp: the leaves of a block of rows -> the centres that shift their intervals
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/refusal.hpp"
#include "index/leaf_index.hpp"
#include "pmf/request.hpp"
#include "scoring/leaf_source.hpp"

namespace hdicore {

// Scratch memory of one thread.
class RowCentres {
  public:
    // The centre of a row is the mean of the numbers of its leaves, (n_leaves,) of an index of one
    // output. For blocks of up to max_rows.
    RowCentres(const LeafIndex& index, std::span<const double> numbers, std::size_t max_rows)
        : index_(index), numbers_(numbers) {
        sums_.reserve(max_rows);
        n_leaves_.reserve(max_rows);
    }

    // O(rows * n_trees), and tree by tree, so that the numbers of one stay in cache. Throws
    // std::invalid_argument at a number that is not finite.
    void find(const RowBlock& block) {
        sums_.assign(block.n_places(), 0);
        n_leaves_.assign(block.n_places(), 0);
        for (std::size_t t = 0; t < index_.n_trees(); ++t) {
            const double* of_tree = numbers_.data() + index_.arrays().leaf_offsets[t];
            const leaf_t* leaves = block.leaves.data() + t * block.stride();
            for (std::size_t p = 0; p < sums_.size(); ++p) {
                if (leaves[p] == no_leaf) continue;
                const double number = of_tree[leaves[p]];
                if (!std::isfinite(number)) {
                    refuse("centres must be finite, but that of leaf " + std::to_string(leaves[p]) +
                           " of tree " + std::to_string(t) + " is not");
                }
                sums_[p] += number;
                ++n_leaves_[p];
            }
        }
    }

    // Adds them to the intervals of the block's rows, of which the first is number `begin`: NaN
    // where no tree contributes.
    void shift(const IntervalRequest& intervals, std::size_t begin, const RowBlock& block) const {
        for (std::size_t p = 0; p < sums_.size(); ++p) {
            const double centre = sums_[p] / n_leaves_[p];
            for (const std::uint32_t row : block.rows_at(p, p + 1)) {
                intervals.shift(begin + row, centre);
            }
        }
    }

  private:
    const LeafIndex& index_;
    std::span<const double> numbers_;
    std::vector<double> sums_;      // (places of a block,)
    std::vector<double> n_leaves_;  // (places of a block,)
};

}  // namespace hdicore
