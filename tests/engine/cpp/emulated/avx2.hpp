// avx2.hpp: the intrinsics of kernels/avx2.cpp as loops, to test it on any processor
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "lanes.hpp"

// Those that kernels/avx512.cpp uses too.
inline __m256i _mm256_set1_epi32(int x) noexcept {
    return emulated::fill<int, __m256i>(emulated::all, [=](std::size_t) { return x; });
}
template <class... Lane>
__m256i _mm256_setr_epi32(Lane... lanes) noexcept {
    return std::bit_cast<__m256i>(std::array{lanes...});
}
inline __m128i _mm_loadu_si128(const __m128i* from) noexcept {
    return emulated::load<std::uint8_t, __m128i>(emulated::all, from);
}
inline __m256i _mm256_loadu_si256(const __m256i* from) noexcept {
    return emulated::load<std::uint16_t, __m256i>(emulated::all, from);
}
inline void _mm256_storeu_si256(__m256i* to, __m256i from) noexcept {
    std::memcpy(static_cast<void*>(to), &from, sizeof from);
}
inline __m256i _mm256_add_epi32(__m256i a, __m256i b) noexcept {
    return emulated::add<std::uint32_t>(a, b);
}
inline int _mm_popcnt_u32(unsigned x) noexcept {
    return std::popcount(x);
}
inline long long _mm_popcnt_u64(unsigned long long x) noexcept {
    return std::popcount(x);
}

// Constants.
inline __m256i _mm256_setzero_si256() noexcept {
    return {};
}
inline __m256 _mm256_setzero_ps() noexcept {
    return {};
}
inline __m256i _mm256_set1_epi16(short x) noexcept {
    return emulated::fill<short, __m256i>(emulated::all, [=](std::size_t) { return x; });
}
inline __m256i _mm256_set1_epi64x(long long x) noexcept {
    return emulated::fill<long long, __m256i>(emulated::all, [=](std::size_t) { return x; });
}
inline __m256 _mm256_set1_ps(float x) noexcept {
    return emulated::fill<float, __m256>(emulated::all, [=](std::size_t) { return x; });
}

// Loads and stores.
inline __m128i _mm_loadl_epi64(const __m128i* from) noexcept {
    return emulated::load<std::uint8_t, __m128i>(0xff, from);
}
inline void _mm_storeu_si128(__m128i* to, __m128i from) noexcept {
    std::memcpy(static_cast<void*>(to), &from, sizeof from);
}
inline void _mm256_storeu_ps(void* to, __m256 from) noexcept {
    std::memcpy(to, &from, sizeof from);
}

// Lanes of another width or type.
inline __m256i _mm256_cvtepu8_epi32(__m128i from) noexcept {
    const auto x = emulated::lanes<std::uint8_t>(from);
    return emulated::fill<std::uint32_t, __m256i>(emulated::all,
                                                  [&](std::size_t k) { return x[k]; });
}
inline __m256i _mm256_cvtepu16_epi32(__m128i from) noexcept {
    const auto x = emulated::lanes<std::uint16_t>(from);
    return emulated::fill<std::uint32_t, __m256i>(emulated::all,
                                                  [&](std::size_t k) { return x[k]; });
}
inline __m256 _mm256_cvtepi32_ps(__m256i from) noexcept {
    const auto x = emulated::lanes<std::int32_t>(from);
    return emulated::fill<float, __m256>(emulated::all, [&](std::size_t k) { return x[k]; });
}
inline __m256 _mm256_castsi256_ps(__m256i from) noexcept {
    return std::bit_cast<__m256>(from);
}
inline __m256d _mm256_castsi256_pd(__m256i from) noexcept {
    return std::bit_cast<__m256d>(from);
}
inline __m128i _mm256_castsi256_si128(__m256i from) noexcept {
    return emulated::load<std::uint8_t, __m128i>(emulated::all, &from);
}

// Selection.
inline __m256i _mm256_permutevar8x32_epi32(__m256i from, __m256i places) noexcept {
    const auto x = emulated::lanes<std::uint32_t>(from),
               at = emulated::lanes<std::uint32_t>(places);
    return emulated::fill<std::uint32_t, __m256i>(emulated::all,
                                                  [&](std::size_t k) { return x[at[k] % 8]; });
}
inline unsigned _bzhi_u32(unsigned bits, unsigned n) noexcept {
    return n < 32 ? bits & ((1u << n) - 1) : bits;
}

// Comparisons.
namespace emulated {

// All bits of the lanes that are equal.
template <class T>
__m256i equal(__m256i a, __m256i b) noexcept {
    const auto x = lanes<T>(a), y = lanes<T>(b);
    return fill<T, __m256i>(all, [&](std::size_t k) { return x[k] == y[k] ? ~T{0} : T{0}; });
}

// The highest bit of each lane.
template <class T, class Register>
int signs(const Register& from) noexcept {
    const auto x = lanes<T>(from);
    unsigned found = 0;
    for (std::size_t k = 0; k < x.size(); ++k) found |= static_cast<unsigned>(x[k] < 0) << k;
    return static_cast<int>(found);
}

}  // namespace emulated

inline __m256i _mm256_cmpeq_epi16(__m256i a, __m256i b) noexcept {
    return emulated::equal<std::uint16_t>(a, b);
}
inline __m256i _mm256_cmpeq_epi32(__m256i a, __m256i b) noexcept {
    return emulated::equal<std::uint32_t>(a, b);
}
inline __m256i _mm256_cmpeq_epi64(__m256i a, __m256i b) noexcept {
    return emulated::equal<std::uint64_t>(a, b);
}
inline int _mm256_movemask_epi8(__m256i from) noexcept {
    return emulated::signs<std::int8_t>(from);
}
inline int _mm256_movemask_ps(__m256 from) noexcept {
    return emulated::signs<std::int32_t>(from);
}
inline int _mm256_movemask_pd(__m256d from) noexcept {
    return emulated::signs<std::int64_t>(from);
}

// Arithmetic.
inline __m256i _mm256_add_epi64(__m256i a, __m256i b) noexcept {
    return emulated::add<std::uint64_t>(a, b);
}
inline __m256i _mm256_and_si256(__m256i a, __m256i b) noexcept {
    const auto x = emulated::lanes<std::uint32_t>(a), y = emulated::lanes<std::uint32_t>(b);
    return emulated::fill<std::uint32_t, __m256i>(emulated::all,
                                                  [&](std::size_t k) { return x[k] & y[k]; });
}
inline __m256i _mm256_srli_epi64(__m256i from, unsigned n_bits) noexcept {
    const auto x = emulated::lanes<std::uint64_t>(from);
    return emulated::fill<std::uint64_t, __m256i>(emulated::all,
                                                  [&](std::size_t k) { return x[k] >> n_bits; });
}
inline __m256i _mm256_min_epu16(__m256i a, __m256i b) noexcept {
    return emulated::min<std::uint16_t>(a, b);
}
inline __m256i _mm256_max_epu16(__m256i a, __m256i b) noexcept {
    return emulated::max<std::uint16_t>(a, b);
}
inline __m256i _mm256_min_epu32(__m256i a, __m256i b) noexcept {
    return emulated::min<std::uint32_t>(a, b);
}
inline __m256i _mm256_max_epu32(__m256i a, __m256i b) noexcept {
    return emulated::max<std::uint32_t>(a, b);
}
inline __m256 _mm256_fmadd_ps(__m256 a, __m256 b, __m256 c) noexcept {
    const auto x = emulated::lanes<float>(a), y = emulated::lanes<float>(b);
    const auto z = emulated::lanes<float>(c);
    return emulated::fill<float, __m256>(emulated::all,
                                         [&](std::size_t k) { return std::fma(x[k], y[k], z[k]); });
}
