// scoring/route.hpp: many rows at once, from their features to their leaves
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>

#include "base/interruption.hpp"
#include "forest/forest.hpp"

namespace hdicore {

// Leaves of all rows, to `out`, (n_rows, n_trees), by scikit-learn's node ids or by leaf numbers.
// Throws std::invalid_argument at rows that cannot be used.
void route_all(const Forest& forest, const RowMatrix& rows, bool node_ids, unsigned n_threads,
               Matrix<leaf_t> out, Interruption& interruption = Interruption::never());

// Leaves of all rows in the trees from number `first` on, to `out`, (some trees, n_rows), by leaf
// numbers. Rows are routed in `order`, a permutation, or as they come if it is empty. Throws as
// route_all does.
void route_trees(const Forest& forest, const RowMatrix& rows, std::size_t first,
                 std::span<const std::uint32_t> order, unsigned n_threads, Matrix<leaf_t> out,
                 Interruption& interruption = Interruption::never());

}  // namespace hdicore
