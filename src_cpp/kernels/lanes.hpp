// kernels/lanes.hpp: what the sets without masked instructions need to work on 16 entries at once
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/kernels.hpp"

namespace hdicore {

// Entries handled at once.
inline constexpr std::uint32_t step = EntryBuffer::slack;

// Whether `step` entries more than the slice has can be read. The portable kernels read no further
// than a slice goes, and so take the slices at the end of the arrays.
template <class Rank>
inline bool has_room(const EntrySlice& slice, std::span<const Rank> ranks,
                     std::span<const std::uint32_t> units) noexcept {
    return slice.begin + slice.n + step <= ranks.size() &&
           slice.units + slice.n + step <= units.size();
}

// Loaded from step - n on, all bits of the first n lanes.
template <class Lane>
alignas(64) inline constexpr auto first_lanes = [] {
    std::array<Lane, 2 * step> made{};
    std::fill_n(made.begin(), step, static_cast<Lane>(~Lane{0}));
    return made;
}();

// For each byte, the places of its bits, ascending.
alignas(64) inline constexpr auto places_of_bits = [] {
    std::array<std::array<std::uint8_t, 8>, 256> made{};
    for (std::size_t byte = 0; byte < made.size(); ++byte) {
        std::size_t n = 0;
        for (unsigned k = 0; k < 8; ++k) {
            if ((byte >> k & 1) != 0) made[byte][n++] = static_cast<std::uint8_t>(k);
        }
    }
    return made;
}();

}  // namespace hdicore
