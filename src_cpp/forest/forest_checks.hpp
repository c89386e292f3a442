// forest/forest_checks.hpp: the checks that all ways of making a forest have in common
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/types.hpp"

namespace hdicore {

// These throw std::invalid_argument.

[[noreturn]] void refuse_tree(std::size_t tree, const std::string& why);
void check_tree_offsets(std::span<const offset_t> offsets, std::size_t n_nodes);
std::size_t checked_n_features(std::int64_t n_features);

}  // namespace hdicore
