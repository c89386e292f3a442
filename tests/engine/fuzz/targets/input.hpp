// input.hpp: a fuzzer's bytes -> numbers, and small changes of arrays
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace fuzz {

// Ends the program if `condition` does not hold: a fuzzer records that as a crash.
inline void require(bool condition, const char* file, int line, const char* text) {
    if (condition) return;
    std::fprintf(stderr, "%s:%d: not true: %s\n", file, line, text);
    std::abort();
}
#define REQUIRE(condition) fuzz::require((condition), __FILE__, __LINE__, #condition)

// Reads numbers from the front of the bytes. Pseudo-random bytes follow the last one; the first
// four bytes are their seed. So few bytes make a large object, and each further byte sets more of
// it.
class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {
        state_ = bits<std::uint32_t>();
    }

    template <class T>
    T bits() {
        static_assert(std::is_trivially_copyable_v<T>);
        std::uint8_t bytes[sizeof(T)];
        for (std::uint8_t& byte : bytes) byte = at_ < size_ ? data_[at_++] : random_byte();
        T value;
        std::memcpy(&value, bytes, sizeof(T));
        return value;
    }

    // In [0, n), n > 0, from as few bytes as n needs.
    std::size_t below(std::size_t n) {
        if (n <= 1) return 0;
        if (n <= 256) return bits<std::uint8_t>() % n;
        if (n <= 65536) return bits<std::uint16_t>() % n;
        return bits<std::uint64_t>() % n;
    }
    bool one_in(std::size_t n) { return below(n) == n - 1; }

    // Any double: mostly multiples of 1/4, so that values tie; some extreme; some of arbitrary
    // bits.
    double real() {
        using limits = std::numeric_limits<double>;
        constexpr double extremes[] = {limits::infinity(),
                                       -limits::infinity(),
                                       limits::quiet_NaN(),
                                       limits::max(),
                                       limits::lowest(),
                                       limits::min(),
                                       limits::denorm_min(),
                                       -limits::denorm_min(),
                                       -0.0,
                                       0x1.ffffffp127,
                                       0x1.fffffefffffffp127,
                                       1e300,
                                       -1e300,
                                       1e-300};
        switch (below(8)) {
            case 0:
                return bits<double>();
            case 1:
                return extremes[below(std::size(extremes))];
            case 2:
                return std::ldexp(static_cast<double>(bits<std::uint32_t>()), -32);
            default:
                return static_cast<double>(bits<std::int8_t>()) / 4;
        }
    }

    // In [0, 1]; 0 and 1 are frequent.
    double share() {
        switch (below(8)) {
            case 0:
                return 0;
            case 1:
                return 1;
            case 2:
                return std::ldexp(1 + static_cast<double>(bits<std::uint32_t>()), -1000);
            case 3:
                return 1 - std::ldexp(static_cast<double>(below(64)), -53);
            case 4:
                return static_cast<double>(below(101)) / 100;
            default:
                return std::ldexp(static_cast<double>(bits<std::uint32_t>()), -32);
        }
    }

    // Changes one element of `values`: to a neighbouring number, another element, or other bits.
    template <class T>
    void poke(std::vector<T>& values) {
        if (values.empty()) return;
        T& value = values[below(values.size())];
        switch (below(4)) {
            case 0:
                value = values[below(values.size())];
                return;
            case 1:
                if constexpr (std::is_integral_v<T>) {
                    value = static_cast<T>(static_cast<std::uint64_t>(value) + below(5) - 2);
                } else if constexpr (std::is_floating_point_v<T>) {
                    value = static_cast<T>(real());
                } else {
                    poke_byte(value);
                }
                return;
            case 2:
                poke_byte(value);
                return;
            default:
                value = bits<T>();
        }
    }

    // Sets one element of `values` to a number next to `limit`.
    template <class T>
    void poke_near(std::vector<T>& values, std::size_t limit) {
        if (values.empty()) return;
        values[below(values.size())] = static_cast<T>(limit + below(3) - 1);
    }

    // Makes `values` a little longer or shorter.
    template <class T>
    void resize(std::vector<T>& values) {
        values.resize(below(values.size() + 4));
    }

  private:
    template <class T>
    void poke_byte(T& value) {
        std::uint8_t bytes[sizeof(T)];
        std::memcpy(bytes, &value, sizeof(T));
        bytes[below(sizeof(T))] ^= static_cast<std::uint8_t>(1u << below(8));
        std::memcpy(&value, bytes, sizeof(T));
    }

    // The top byte of splitmix64's next number.
    std::uint8_t random_byte() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return static_cast<std::uint8_t>(z >> 56);
    }

    const std::uint8_t* data_;
    std::size_t size_;
    std::size_t at_ = 0;
    std::uint64_t state_ = 0;
};

// The reason why `make` throws std::invalid_argument, or an empty string if it returns. Any other
// exception ends the program, as none is part of the engine's interface.
template <class Make>
std::string refusal(const Make& make) {
    try {
        make();
    } catch (const std::invalid_argument& error) {
        const std::string reason = error.what();
        REQUIRE(!reason.empty());
        return reason;
    }
    return "";
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace fuzz
