// scoring/scorer.hpp: many rows at once, from their leaves to the answers to a request
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>

#include "forest/forest.hpp"
#include "index/leaf_index.hpp"
#include "pmf/request.hpp"
#include "scoring/leaf_source.hpp"
#include "scoring/row_blocks.hpp"

namespace hdicore {

// Answers `request` for every row of `source`. If leave_out (n_rows,) is given, it names the
// training row to be left out of the leaves of each row, and the index must have kept its row
// weights. If the intervals have `centres`, the mean of those of a row's leaves is added to both
// its ends; those that are read must be finite. Rows of a block that are equal, or neighbours with
// the same leaves, are merged once.
//
// Memory beside the results: for each thread 4 * block_rows * (n_trees + n_features) bytes (32 MB,
// or 16 rows, at most by default), 60 bytes for each row of a block, and 16 more for means, 0.4 kB
// a tree or, with several outputs, 4 MB if that is more, with bucket counts 1.5 kB a tree more, and
// 30 bytes for each atom of an output; and one number for each block. Throws std::invalid_argument
// at rows that cannot be used.
void score(const LeafIndex& index, const LeafSource& source,
           std::span<const std::uint32_t> leave_out, const Request& request,
           const Execution& execution);

// Throws std::invalid_argument if a censored index has no answer to the request.
void check_censored(const LeafIndex& index, const Request& request);

// Throws std::invalid_argument unless leave_out (n_rows,), if given, names training rows of an
// index that kept their weights.
void check_leave_out(const LeafIndex& index, std::span<const std::uint32_t> leave_out,
                     std::size_t n_rows);

// Throws std::invalid_argument unless the index is of the forest's trees, and has their leaves.
void check_same_trees(const Forest& forest, const LeafIndex& index);

}  // namespace hdicore
