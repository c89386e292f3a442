// immintrin.h: the intrinsics of kernels/avx512.cpp as loops, to test it on any processor
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
struct __m512i {
    unsigned char bytes[64];
};
struct __m512 {
    unsigned char bytes[64];
};

namespace emulated {

inline constexpr std::uint32_t all = 0xffff;

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

}  // namespace emulated

// Constants.
inline __m512i _mm512_setzero_si512() noexcept {
    return {};
}
inline __m512 _mm512_setzero_ps() noexcept {
    return {};
}
inline __m256i _mm256_set1_epi32(int x) noexcept {
    return emulated::fill<int, __m256i>(emulated::all, [=](std::size_t) { return x; });
}
inline __m512i _mm512_set1_epi32(int x) noexcept {
    return emulated::fill<int, __m512i>(emulated::all, [=](std::size_t) { return x; });
}
inline __m512i _mm512_set1_epi64(long long x) noexcept {
    return emulated::fill<long long, __m512i>(emulated::all, [=](std::size_t) { return x; });
}
inline __m512 _mm512_set1_ps(float x) noexcept {
    return emulated::fill<float, __m512>(emulated::all, [=](std::size_t) { return x; });
}
template <class... Lane>
__m256i _mm256_setr_epi32(Lane... lanes) noexcept {
    return std::bit_cast<__m256i>(std::array{lanes...});
}
template <class... Lane>
__m512i _mm512_setr_epi32(Lane... lanes) noexcept {
    return std::bit_cast<__m512i>(std::array{lanes...});
}

// Loads and stores.
inline __m128i _mm_loadu_si128(const __m128i* from) noexcept {
    return emulated::load<std::uint8_t, __m128i>(emulated::all, from);
}
inline __m256i _mm256_loadu_si256(const __m256i* from) noexcept {
    return emulated::load<std::uint16_t, __m256i>(emulated::all, from);
}
inline __m256i _mm256_maskz_loadu_epi16(__mmask16 mask, const void* from) noexcept {
    return emulated::load<std::uint16_t, __m256i>(mask, from);
}
inline __m512i _mm512_maskz_loadu_epi32(__mmask16 mask, const void* from) noexcept {
    return emulated::load<std::uint32_t, __m512i>(mask, from);
}
inline __m512i _mm512_maskz_loadu_epi64(__mmask8 mask, const void* from) noexcept {
    return emulated::load<std::uint64_t, __m512i>(mask, from);
}
inline void _mm256_storeu_si256(__m256i* to, __m256i from) noexcept {
    std::memcpy(static_cast<void*>(to), &from, sizeof from);
}
inline void _mm512_storeu_si512(void* to, __m512i from) noexcept {
    std::memcpy(to, &from, sizeof from);
}
inline void _mm512_storeu_ps(void* to, __m512 from) noexcept {
    std::memcpy(to, &from, sizeof from);
}
inline void _mm512_mask_storeu_epi64(void* to, __mmask8 mask, __m512i from) noexcept {
    for (std::size_t k = 0; k < 8; ++k) {
        if (emulated::selects(mask, k)) {
            std::memcpy(static_cast<char*>(to) + 8 * k, from.bytes + 8 * k, 8);
        }
    }
}

// Lanes of another width or type.
inline __m512i _mm512_maskz_cvtepu8_epi32(__mmask16 mask, __m128i from) noexcept {
    const auto x = emulated::lanes<std::uint8_t>(from);
    return emulated::fill<std::uint32_t, __m512i>(mask, [&](std::size_t k) { return x[k]; });
}
inline __m512i _mm512_maskz_cvtepu16_epi32(__mmask16 mask, __m256i from) noexcept {
    const auto x = emulated::lanes<std::uint16_t>(from);
    return emulated::fill<std::uint32_t, __m512i>(mask, [&](std::size_t k) { return x[k]; });
}
inline __m512 _mm512_maskz_cvtepi32_ps(__mmask16 mask, __m512i from) noexcept {
    const auto x = emulated::lanes<std::int32_t>(from);
    return emulated::fill<float, __m512>(mask, [&](std::size_t k) { return x[k]; });
}

// Selection.
inline __m512i _mm512_maskz_mov_epi32(__mmask16 mask, __m512i from) noexcept {
    return emulated::load<std::uint32_t, __m512i>(mask, &from);
}
inline __m256i _mm256_maskz_compress_epi32(__mmask8 mask, __m256i from) noexcept {
    return emulated::compress<std::uint32_t>(mask, from);
}
inline __m512i _mm512_maskz_compress_epi32(__mmask16 mask, __m512i from) noexcept {
    return emulated::compress<std::uint32_t>(mask, from);
}
inline __m512i _mm512_maskz_compress_epi64(__mmask8 mask, __m512i from) noexcept {
    return emulated::compress<std::uint64_t>(mask, from);
}

// Comparisons.
inline __mmask16 _mm512_mask_cmple_epu32_mask(__mmask16 mask, __m512i a, __m512i b) noexcept {
    return emulated::compare<std::uint32_t>(mask, a, b, [](auto x, auto y) { return x <= y; });
}
inline __mmask16 _mm512_mask_cmpge_epu32_mask(__mmask16 mask, __m512i a, __m512i b) noexcept {
    return emulated::compare<std::uint32_t>(mask, a, b, [](auto x, auto y) { return x >= y; });
}
inline __mmask8 _mm512_test_epi64_mask(__m512i a, __m512i b) noexcept {
    return static_cast<__mmask8>(emulated::compare<std::uint64_t>(
        emulated::all, a, b, [](auto x, auto y) { return (x & y) != 0; }));
}

// Arithmetic.
inline __m256i _mm256_add_epi32(__m256i a, __m256i b) noexcept {
    return emulated::add<std::uint32_t>(a, b);
}
inline __m512i _mm512_add_epi32(__m512i a, __m512i b) noexcept {
    return emulated::add<std::uint32_t>(a, b);
}
inline __m512i _mm512_add_epi64(__m512i a, __m512i b) noexcept {
    return emulated::add<std::uint64_t>(a, b);
}
inline __m512i _mm512_and_si512(__m512i a, __m512i b) noexcept {
    const auto x = emulated::lanes<std::uint32_t>(a), y = emulated::lanes<std::uint32_t>(b);
    return emulated::fill<std::uint32_t, __m512i>(emulated::all,
                                                  [&](std::size_t k) { return x[k] & y[k]; });
}
inline __m512i _mm512_maskz_srli_epi64(__mmask8 mask, __m512i from, unsigned n_bits) noexcept {
    const auto x = emulated::lanes<std::uint64_t>(from);
    return emulated::fill<std::uint64_t, __m512i>(mask,
                                                  [&](std::size_t k) { return x[k] >> n_bits; });
}
inline __m512i _mm512_mask_min_epu32(__m512i others, __mmask16 mask, __m512i a,
                                     __m512i b) noexcept {
    const auto x = emulated::lanes<std::uint32_t>(a), y = emulated::lanes<std::uint32_t>(b);
    return emulated::fill<std::uint32_t, __m512i>(
        mask, [&](std::size_t k) { return x[k] < y[k] ? x[k] : y[k]; },
        emulated::lanes<std::uint32_t>(others));
}
inline __m512i _mm512_maskz_max_epu32(__mmask16 mask, __m512i a, __m512i b) noexcept {
    const auto x = emulated::lanes<std::uint32_t>(a), y = emulated::lanes<std::uint32_t>(b);
    return emulated::fill<std::uint32_t, __m512i>(
        mask, [&](std::size_t k) { return x[k] > y[k] ? x[k] : y[k]; });
}
inline __m512 _mm512_fmadd_ps(__m512 a, __m512 b, __m512 c) noexcept {
    const auto x = emulated::lanes<float>(a), y = emulated::lanes<float>(b);
    const auto z = emulated::lanes<float>(c);
    return emulated::fill<float, __m512>(emulated::all,
                                         [&](std::size_t k) { return std::fma(x[k], y[k], z[k]); });
}
inline int _mm_popcnt_u32(unsigned x) noexcept {
    return std::popcount(x);
}
inline long long _mm_popcnt_u64(unsigned long long x) noexcept {
    return std::popcount(x);
}
