// merge/tails.cpp: copies entries of leaves, all or from both ends
// SPDX-License-Identifier: BSD-3-Clause
#include "merge/tails.hpp"

#include <algorithm>
#include <numeric>

#ifdef HDICORE_AVX512
#include <immintrin.h>
#endif

namespace hdicore {

namespace {

template <class From>
inline void copy_some(const From* __restrict from, std::size_t n,
                      std::uint32_t* __restrict to) noexcept {
    for (std::size_t k = 0; k < n; ++k) to[k] = from[k];
}

// 16 entries at a time: a loop over the entries of a short leaf would end in a mispredicted branch.
// What lies behind the leaf is copied along, and then written over, unless the arrays end there.
template <class Rank>
std::size_t pick_all_portably(std::span<const Leaf> leaves, std::span<const Rank> ranks,
                              std::span<const std::uint32_t> units, Picked& picked) noexcept {
    constexpr std::uint32_t step = 16;
    std::size_t n = picked.n;
    std::size_t read = 0;
    for (; read < leaves.size() && n < Picked::enough; ++read) {
        const Leaf& leaf = leaves[read];
        for (std::uint32_t e = 0; e < leaf.n; e += step) {
            const std::size_t r = leaf.begin + e;
            const std::size_t u = leaf.units + e;
            if (r + step <= ranks.size() && u + step <= units.size()) {
                copy_some(ranks.data() + r, step, picked.ranks + n + e);
                copy_some(units.data() + u, step, picked.units + n + e);
            } else {
                const std::uint32_t rest = std::min(step, leaf.n - e);
                copy_some(ranks.data() + r, rest, picked.ranks + n + e);
                copy_some(units.data() + u, rest, picked.units + n + e);
            }
        }
        n += leaf.n;
    }
    picked.n = n;
    return read;
}

template <class Rank>
std::size_t pick_portably(std::span<const Leaf> leaves, const Rank* all_ranks,
                          const std::uint32_t* all_units, Tails& tails, Picked& picked) noexcept {
    std::size_t n = picked.n;
    std::size_t read = 0;
    for (; read < leaves.size() && n < Picked::enough; ++read) {
        const Leaf& leaf = leaves[read];
        const Rank* ranks = all_ranks + leaf.begin;
        const std::uint32_t* units = all_units + leaf.units;
        tails.first = std::min<rank_t>(tails.first, ranks[0]);
        tails.last = std::max<rank_t>(tails.last, ranks[leaf.n - 1]);
        for (std::uint32_t e = 0; e < leaf.n && ranks[e] <= tails.low; ++e) {
            picked.ranks[n] = ranks[e];
            picked.units[n++] = units[e];
            tails.low_mass += units[e];
        }
        for (std::uint32_t e = leaf.n; e > 0 && ranks[e - 1] >= tails.high; --e) {
            picked.ranks[n] = ranks[e - 1];
            picked.units[n++] = units[e - 1];
            tails.high_mass += units[e - 1];
        }
    }
    picked.n = n;
    return read;
}

#ifdef HDICORE_AVX512
HDICORE_TARGET_AVX512 inline __m512i load(const std::uint16_t* from, __mmask16 wanted) noexcept {
    return _mm512_maskz_cvtepu16_epi32(wanted, _mm256_maskz_loadu_epi16(wanted, from));
}
HDICORE_TARGET_AVX512 inline __m512i load(const std::uint32_t* from, __mmask16 wanted) noexcept {
    return _mm512_maskz_loadu_epi32(wanted, from);
}

template <class Rank>
HDICORE_TARGET_AVX512 std::size_t pick_all_with_avx512(std::span<const Leaf> leaves,
                                                       std::span<const Rank> all_ranks,
                                                       std::span<const std::uint32_t> all_units,
                                                       Picked& picked) noexcept {
    constexpr std::uint32_t lanes = 16;
    std::size_t n = picked.n;
    std::size_t read = 0;
    for (; read < leaves.size() && n < Picked::enough; ++read) {
        const Leaf& leaf = leaves[read];
        const Rank* ranks = all_ranks.data() + leaf.begin;
        const std::uint32_t* units = all_units.data() + leaf.units;
        std::uint32_t e = 0;
        do {
            const auto wanted =
                static_cast<__mmask16>(leaf.n - e >= lanes ? 0xffffu : (1u << (leaf.n - e)) - 1);
            _mm512_storeu_si512(picked.ranks + n + e, load(ranks + e, wanted));
            _mm512_storeu_si512(picked.units + n + e, load(units + e, wanted));
            e += lanes;
        } while (e < leaf.n);
        n += leaf.n;
    }
    picked.n = n;
    return read;
}

// Compress stores 16 lanes whatever the mask selects: behind the picked ones lies room for that.
template <class Rank>
HDICORE_TARGET_AVX512 std::size_t pick_with_avx512(std::span<const Leaf> leaves,
                                                   const Rank* all_ranks,
                                                   const std::uint32_t* all_units, Tails& tails,
                                                   Picked& picked) noexcept {
    constexpr std::uint32_t lanes = 16;
    const __m512i low = _mm512_set1_epi32(static_cast<int>(tails.low));
    const __m512i high = _mm512_set1_epi32(static_cast<int>(tails.high));
    const __m512i lower_half = _mm512_set1_epi64(0xffffffff);
    __m512i low_mass = _mm512_setzero_si512();
    __m512i high_mass = _mm512_setzero_si512();
    __m512i first = _mm512_set1_epi32(static_cast<int>(tails.first));
    __m512i last = _mm512_set1_epi32(static_cast<int>(tails.last));
    std::size_t n = picked.n;

    const auto add_up = [&](__m512i& mass, __mmask16 wanted, __m512i units) HDICORE_TARGET_AVX512 {
        const __m512i kept = _mm512_maskz_mov_epi32(wanted, units);
        mass = _mm512_add_epi64(mass, _mm512_and_si512(kept, lower_half));
        mass = _mm512_add_epi64(mass, _mm512_maskz_srli_epi64(0xff, kept, 32));
    };
    const auto keep = [&](__mmask16 wanted, __m512i ranks, __m512i units) HDICORE_TARGET_AVX512 {
        _mm512_storeu_si512(picked.ranks + n, _mm512_maskz_compress_epi32(wanted, ranks));
        _mm512_storeu_si512(picked.units + n, _mm512_maskz_compress_epi32(wanted, units));
        const auto count = static_cast<unsigned>(_mm_popcnt_u32(wanted));
        n += count;
        return count;
    };
    const auto lanes_of = [](std::uint32_t count) {
        return static_cast<__mmask16>(count >= lanes ? 0xffffu : (1u << count) - 1);
    };

    std::size_t read = 0;
    for (; read < leaves.size() && n < Picked::enough; ++read) {
        const Leaf& leaf = leaves[read];
        const Rank* ranks = all_ranks + leaf.begin;
        const std::uint32_t* units = all_units + leaf.units;
        if (leaf.n <= lanes) {
            const __mmask16 all = lanes_of(leaf.n);
            const __m512i r = load(ranks, all);
            const __m512i u = load(units, all);
            const __mmask16 below = _mm512_mask_cmple_epu32_mask(all, r, low);
            const __mmask16 above = _mm512_mask_cmpge_epu32_mask(all, r, high);
            first = _mm512_mask_min_epu32(first, all, first, r);
            last = _mm512_maskz_max_epu32(0xffff, last, r);
            add_up(low_mass, below, u);
            add_up(high_mass, above, u);
            keep(static_cast<__mmask16>(below | above), r, u);
            continue;
        }
        for (std::uint32_t e = 0; e < leaf.n; e += lanes) {
            const __mmask16 all = lanes_of(leaf.n - e);
            const __m512i r = load(ranks + e, all);
            const __m512i u = load(units + e, all);
            const __mmask16 below = _mm512_mask_cmple_epu32_mask(all, r, low);
            first = _mm512_mask_min_epu32(first, all, first, r);
            add_up(low_mass, below, u);
            if (keep(below, r, u) < lanes) break;
        }
        for (std::uint32_t end = leaf.n; end > 0;) {
            const std::uint32_t e = end > lanes ? end - lanes : 0;
            const __mmask16 all = lanes_of(end - e);
            const __m512i r = load(ranks + e, all);
            const __m512i u = load(units + e, all);
            const __mmask16 above = _mm512_mask_cmpge_epu32_mask(all, r, high);
            last = _mm512_maskz_max_epu32(0xffff, last, r);
            add_up(high_mass, above, u);
            if (keep(above, r, u) < lanes) break;
            end = e;
        }
    }
    picked.n = n;
    mass_t low_parts[8];
    mass_t high_parts[8];
    _mm512_storeu_si512(low_parts, low_mass);
    _mm512_storeu_si512(high_parts, high_mass);
    rank_t firsts[lanes];
    rank_t lasts[lanes];
    _mm512_storeu_si512(firsts, first);
    _mm512_storeu_si512(lasts, last);
    tails.first = *std::min_element(firsts, firsts + lanes);
    tails.last = *std::max_element(lasts, lasts + lanes);
    tails.low_mass = std::accumulate(low_parts, low_parts + 8, tails.low_mass);
    tails.high_mass = std::accumulate(high_parts, high_parts + 8, tails.high_mass);
    return read;
}
#endif

}  // namespace

template <class Rank>
std::size_t pick_all(std::span<const Leaf> leaves, std::span<const Rank> ranks,
                     std::span<const std::uint32_t> units,
                     [[maybe_unused]] Instructions instructions, Picked& picked) noexcept {
#ifdef HDICORE_AVX512
    if (instructions == Instructions::avx512) {
        return pick_all_with_avx512(leaves, ranks, units, picked);
    }
#endif
    return pick_all_portably(leaves, ranks, units, picked);
}

template std::size_t pick_all(std::span<const Leaf>, std::span<const std::uint16_t>,
                              std::span<const std::uint32_t>, Instructions, Picked&) noexcept;
template std::size_t pick_all(std::span<const Leaf>, std::span<const rank_t>,
                              std::span<const std::uint32_t>, Instructions, Picked&) noexcept;

template <class Rank>
std::size_t pick_tails(std::span<const Leaf> leaves, const Rank* ranks, const std::uint32_t* units,
                       [[maybe_unused]] Instructions instructions, Tails& tails,
                       Picked& picked) noexcept {
#ifdef HDICORE_AVX512
    if (instructions == Instructions::avx512) {
        return pick_with_avx512(leaves, ranks, units, tails, picked);
    }
#endif
    return pick_portably(leaves, ranks, units, tails, picked);
}

template std::size_t pick_tails(std::span<const Leaf>, const std::uint16_t*, const std::uint32_t*,
                                Instructions, Tails&, Picked&) noexcept;
template std::size_t pick_tails(std::span<const Leaf>, const rank_t*, const std::uint32_t*,
                                Instructions, Tails&, Picked&) noexcept;

}  // namespace hdicore
