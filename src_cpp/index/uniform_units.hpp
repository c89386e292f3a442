// index/uniform_units.hpp: what the entries of a leaf weigh if its rows weigh alike
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.hpp"
#include "kernels/kernels.hpp"

namespace hdicore {

// Largest leaf whose units follow from its size instead of being stored.
inline constexpr std::size_t max_uniform_leaf = 65535;
// Largest of which a table holds the units. Those of larger ones are computed as they are added.
inline constexpr std::size_t max_tabulated_leaf = 1024;

// A leaf of n <= max_tabulated_leaf entries has the units units[begin(n) : begin(n) + n]. Behind
// the last are zeros, for kernels that read several at once.
struct UniformUnits {
    std::vector<std::uint32_t> units;
    std::vector<std::uint32_t> begins;  // (max_tabulated_leaf + 1,)

    // 0 for larger leaves.
    std::uint32_t begin(std::uint32_t n) const noexcept {
        return n <= max_tabulated_leaf ? begins[n] : 0;
    }
};

// The units of neighbouring entries of a leaf, which may be large: entry k of n has
// floor(2^31 (k + 1) / n) - floor(2^31 k / n).
class EqualUnits {
  public:
    // What an entry weighs in a leaf of n <= max_uniform_leaf, 32 bits of it a fraction, rounded
    // up: in a sum over n entries that is less than n 2^-32 < 1 / n too much, and so never a unit.
    static std::uint64_t step(std::uint32_t n) noexcept { return (std::uint64_t{1} << 63) / n + 1; }

    // Begins with entry number `first`.
    EqualUnits(std::uint64_t step, std::uint32_t first) noexcept
        : step_(step), upto_(step * first) {}

    mass_t next() noexcept {
        const std::uint64_t before = upto_ >> 32;
        upto_ += step_;
        return static_cast<mass_t>((upto_ >> 32) - before);
    }

  private:
    std::uint64_t step_;
    std::uint64_t upto_;
};

// One table, 2 MB, for all indices: made at the first call.
inline const UniformUnits& uniform_units() {
    static const UniformUnits table = [] {
        UniformUnits made;
        made.begins.reserve(max_tabulated_leaf + 1);
        made.begins.push_back(0);
        // Behind the last are zeros, for kernels that read several at once.
        made.units.resize(max_tabulated_leaf * (max_tabulated_leaf + 1) / 2 + EntryBuffer::slack);
        std::uint32_t* next = made.units.data();
        for (std::uint32_t n = 1; n <= max_tabulated_leaf; ++n) {
            made.begins.push_back(static_cast<std::uint32_t>(next - made.units.data()));
            EqualUnits units(EqualUnits::step(n), 0);
            for (std::uint32_t k = 0; k < n; ++k) {
                *next++ = static_cast<std::uint32_t>(units.next());
            }
        }
        return made;
    }();
    return table;
}

}  // namespace hdicore
