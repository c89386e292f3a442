// forest/split_gains.hpp: how much the splits on each feature explain
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <vector>

#include "base/interruption.hpp"
#include "forest/forest.hpp"

namespace hdicore {

// By how much the splits on each feature reduce the weighted squared error of the means, summed
// over trees, (n_features,): one into weights u, v with means a, b reduces it by
// u v / (u + v) (a - b)^2 (Breiman, Friedman, Olshen and Stone 1984). `weights` and `means`,
// (n_leaves,) each, are of the leaves, tree after tree; the forest must be checked. O(n_nodes).
// Throws std::invalid_argument.
std::vector<double> split_gains(const Forest& forest, std::span<const double> weights,
                                std::span<const double> means,
                                Interruption& interruption = Interruption::never());

}  // namespace hdicore
