// scoring/scorer.cpp: blocks and threads, nothing else
// SPDX-License-Identifier: BSD-3-Clause
#include "scoring/scorer.hpp"

#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>

#include "merge/merger.hpp"
#include "scoring/row_reader.hpp"

namespace hdicore {
namespace {

// The mean of the numbers of a row's leaves; NaN where no tree contributes.
double centre_of(const LeafIndex& index, std::span<const double> centres, RowLeaves leaves) {
    double sum = 0, n = 0;
    for (std::size_t t = 0; t < index.n_trees(); ++t) {
        const leaf_t leaf = leaves[t];
        if (leaf == no_leaf) continue;
        const double centre = centres[static_cast<std::size_t>(index.arrays().leaf_offsets[t]) +
                                      static_cast<std::size_t>(leaf)];
        if (!std::isfinite(centre)) {
            throw std::invalid_argument("centres must be finite, but that of leaf " +
                                        std::to_string(leaf) + " of tree " + std::to_string(t) +
                                        " is not");
        }
        sum += centre;
        ++n;
    }
    return sum / n;
}

}  // namespace

void score(const LeafIndex& index, const LeafSource& source,
           std::span<const std::uint32_t> leave_out, const Request& request,
           const Execution& execution) {
    check_leave_out(index, leave_out, source.n_rows());
    const auto make_worker = [&](std::size_t max_rows) {
        const auto reader =
            std::make_shared<RowReader>(index, source, execution.interruption, max_rows);
        const auto merger =
            std::make_shared<Merger>(index, request, execution.strategy, execution.kernels);
        return [&, reader, merger](std::size_t begin, std::size_t end) {
            reader->read(begin, end,
                         [&](std::size_t row, std::size_t output, RowSlices slices, RowSlices next,
                             RowLeaves leaves) {
                             const std::size_t at = row * index.n_outputs() + output;
                             if (leave_out.empty()) {
                                 merger->prefetch(next);
                                 merger->evaluate(output, slices, at);
                             } else {
                                 merger->evaluate_without(output, slices, leave_out[row], at);
                             }
                             if (!request.intervals.centres.empty()) {
                                 request.intervals.shift(
                                     at, centre_of(index, request.intervals.centres, leaves));
                             }
                         });
        };
    };
    for_each_block(source.n_rows(), index.n_trees(), source.block_rows(), execution, make_worker);
}

void check_same_trees(const Forest& forest, const LeafIndex& index) {
    if (forest.n_trees() != index.n_trees()) {
        throw std::invalid_argument("index must be of the forest's " +
                                    std::to_string(forest.n_trees()) + " trees, got " +
                                    std::to_string(index.n_trees()));
    }
    for (std::size_t t = 0; t < forest.n_trees(); ++t) {
        if (forest.n_leaves(t) != index.n_leaves(t)) {
            throw std::invalid_argument(
                "index has " + std::to_string(index.n_leaves(t)) + " leaves in tree " +
                std::to_string(t) + ", but the forest has " + std::to_string(forest.n_leaves(t)));
        }
        for (std::size_t l = 0; index.has_leaf_mask() && l < index.n_leaves(t); ++l) {
            if (index.has_leaf(t, static_cast<leaf_t>(l))) continue;
            throw std::invalid_argument("index knows no training row in leaf " + std::to_string(l) +
                                        " of tree " + std::to_string(t) +
                                        "; build it with n_leaves for leaves that may be empty");
        }
    }
}

}  // namespace hdicore
