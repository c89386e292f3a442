// forest/prune.hpp: larger leaves from the same trees
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interruption.hpp"
#include "base/types.hpp"
#include "forest/forest.hpp"

namespace hdicore {

struct PrunedForest {
    Forest forest;
    // (n_leaves,) of the forest that was pruned, tree after tree: the leaf that each is part of
    // now. It begins with 0 in each tree, and never rises by more than 1.
    std::vector<leaf_t> new_leaves;
};

// Turns a node into a leaf if one of its children holds less than `min_size`, the sizes of the
// leaves below it taken together. In every bit what is built from the pruned trees if their nodes
// are numbered depth first; a tree of which nothing is pruned keeps its leaf_nodes. `leaf_sizes`
// (n_leaves,) must not be negative, and the forest be checked. O(n_nodes) over n_threads threads.
// Throws std::invalid_argument.
PrunedForest prune(const Forest& forest, std::span<const std::int64_t> leaf_sizes,
                   std::int64_t min_size, unsigned n_threads = 1,
                   Interruption& interruption = Interruption::never());

}  // namespace hdicore
