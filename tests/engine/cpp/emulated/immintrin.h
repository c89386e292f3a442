// immintrin.h: the intrinsics of kernels/avx512.cpp as loops, and those of kernels/avx2.cpp
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "avx2.hpp"
#include "lanes.hpp"

// Constants.
inline __m512i _mm512_setzero_si512() noexcept {
    return {};
}
inline __m512 _mm512_setzero_ps() noexcept {
    return {};
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
__m512i _mm512_setr_epi32(Lane... lanes) noexcept {
    return std::bit_cast<__m512i>(std::array{lanes...});
}

// Loads and stores.
inline __m256i _mm256_maskz_loadu_epi16(__mmask16 mask, const void* from) noexcept {
    return emulated::load<std::uint16_t, __m256i>(mask, from);
}
inline __m512i _mm512_maskz_loadu_epi32(__mmask16 mask, const void* from) noexcept {
    return emulated::load<std::uint32_t, __m512i>(mask, from);
}
inline __m512i _mm512_maskz_loadu_epi64(__mmask8 mask, const void* from) noexcept {
    return emulated::load<std::uint64_t, __m512i>(mask, from);
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
