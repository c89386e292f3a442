// index/uniform_units.hpp: what the entries of a leaf weigh if its rows weigh alike
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hdicore {

// Largest leaf whose units are recomputed from its size instead of stored.
inline constexpr std::size_t max_uniform_leaf = 1024;

// A leaf of n entries has the units units[begin[n] : begin[n] + n]. Behind the last are zeros, for
// kernels that read several at once.
struct UniformUnits {
    std::vector<std::uint32_t> units;
    std::vector<std::uint32_t> begin;  // (max_uniform_leaf + 1,)
};

// One table, 2 MB, for all indices: made at the first call.
const UniformUnits& uniform_units();

}  // namespace hdicore
