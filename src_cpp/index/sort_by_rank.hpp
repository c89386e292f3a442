// index/sort_by_rank.hpp: sorts the entries of a leaf by rank, in linear time if there are many
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace hdicore {

// Sorts keys whose ranks stand in bits [low_bit, low_bit + n_bits), and which ascend in the bits
// below; above are zeros. `scratch` has room for as many.
template <class Key>
void sort_by_rank(std::span<Key> keys, int low_bit, int n_bits, Key* scratch) noexcept {
    constexpr std::size_t n_digits = 256;
    if (keys.size() < n_digits) {
        std::sort(keys.begin(), keys.end());
        return;
    }
    // Digit by digit, from the last: a radix sort.
    Key* from = keys.data();
    Key* to = scratch;
    for (int bit = low_bit; bit < low_bit + n_bits; bit += 8) {
        const auto digit = [bit](Key key) {
            return static_cast<std::size_t>(key >> bit) % n_digits;
        };
        std::size_t ends[n_digits + 1] = {};
        for (std::size_t k = 0; k < keys.size(); ++k) ++ends[digit(from[k]) + 1];
        for (std::size_t d = 0; d < n_digits; ++d) ends[d + 1] += ends[d];
        for (std::size_t k = 0; k < keys.size(); ++k) to[ends[digit(from[k])]++] = from[k];
        std::swap(from, to);
    }
    if (from != keys.data()) std::copy_n(from, keys.size(), keys.data());
}

}  // namespace hdicore
