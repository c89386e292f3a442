// lanes.hpp: registers as arrays of lanes, and what the emulated instructions share
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

// Processors are taken to have every instruction that is emulated here.
#define __builtin_cpu_supports(feature) 1

using __mmask8 = std::uint8_t;
using __mmask16 = std::uint16_t;
struct __m128i {
    unsigned char bytes[16];
};
struct __m256i {
    unsigned char bytes[32];
};
struct __m256 {
    unsigned char bytes[32];
};
struct __m256d {
    unsigned char bytes[32];
};
struct __m512i {
    unsigned char bytes[64];
};
struct __m512 {
    unsigned char bytes[64];
};

namespace emulated {

inline constexpr std::uint32_t all = ~0u;

inline bool selects(std::uint32_t mask, std::size_t lane) noexcept {
    return (mask >> lane & 1) != 0;
}

template <class T, class Register>
using Lanes = std::array<T, sizeof(Register) / sizeof(T)>;

template <class T, class Register>
Lanes<T, Register> lanes(const Register& from) noexcept {
    return std::bit_cast<Lanes<T, Register>>(from);
}

// value(k) in each lane k that the mask selects; in the others those of `made`.
template <class T, class Register, class Value>
Register fill(std::uint32_t mask, Value value, Lanes<T, Register> made = {}) noexcept {
    for (std::size_t k = 0; k < made.size(); ++k) {
        if (selects(mask, k)) made[k] = static_cast<T>(value(k));
    }
    return std::bit_cast<Register>(made);
}

// Reads only the lanes that the mask selects.
template <class T, class Register>
Register load(std::uint32_t mask, const void* from) noexcept {
    return fill<T, Register>(mask, [&](std::size_t k) {
        T value;
        std::memcpy(&value, static_cast<const char*>(from) + k * sizeof(T), sizeof(T));
        return value;
    });
}

// Moves the selected lanes to the front.
template <class T, class Register>
Register compress(std::uint32_t mask, const Register& from) noexcept {
    const auto given = lanes<T>(from);
    Lanes<T, Register> made{};
    std::size_t n = 0;
    for (std::size_t k = 0; k < given.size(); ++k) {
        if (selects(mask, k)) made[n++] = given[k];
    }
    return std::bit_cast<Register>(made);
}

// The selected lanes for which `is_true` holds.
template <class T, class Register, class IsTrue>
std::uint16_t compare(std::uint32_t mask, const Register& a, const Register& b,
                      IsTrue is_true) noexcept {
    const auto x = lanes<T>(a), y = lanes<T>(b);
    unsigned found = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
        if (selects(mask, k) && is_true(x[k], y[k])) found |= 1u << k;
    }
    return static_cast<std::uint16_t>(found);
}

template <class T, class Register>
Register add(const Register& a, const Register& b) noexcept {
    const auto x = lanes<T>(a), y = lanes<T>(b);
    return fill<T, Register>(all, [&](std::size_t k) { return x[k] + y[k]; });
}

template <class T, class Register>
Register min(const Register& a, const Register& b) noexcept {
    const auto x = lanes<T>(a), y = lanes<T>(b);
    return fill<T, Register>(all, [&](std::size_t k) { return x[k] < y[k] ? x[k] : y[k]; });
}

template <class T, class Register>
Register max(const Register& a, const Register& b) noexcept {
    const auto x = lanes<T>(a), y = lanes<T>(b);
    return fill<T, Register>(all, [&](std::size_t k) { return x[k] < y[k] ? y[k] : x[k]; });
}

}  // namespace emulated
