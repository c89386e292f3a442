// index/merge_leaves.hpp: an index of the same rows in fewer, larger leaves
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>

#include "base/interruption.hpp"
#include "base/types.hpp"
#include "index/leaf_index.hpp"

namespace hdicore {

// Gives each leaf a new number, and makes one of neighbours that have the same: in every bit the
// index of rows that lie in these leaves. `new_leaves` (n_leaves,), tree after tree, begins with 0
// in each tree and rises by 0 or 1. Rows that max_samples_leaf left out stay out. The index must be
// checked, and have row weights unless its leaves are uniform: it does not know else what each row
// weighs. O(n_entries + n_outputs * n_trees * n_atoms) over n_threads threads. Throws
// std::invalid_argument.
LeafIndex merge_leaves(const LeafIndex& index, std::span<const leaf_t> new_leaves,
                       unsigned n_threads = 1, Interruption& interruption = Interruption::never());

}  // namespace hdicore
