// kernels/avx512.cpp: the kernels for x86 processors with AVX-512 (F, BW, VL)
// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/kernels.hpp"
#include "kernels/x86.hpp"

#ifdef HDICORE_X86

#include <algorithm>
#include <numeric>

#define HDICORE_AVX512 HDICORE_TARGET("avx512f,avx512bw,avx512vl,popcnt")

namespace hdicore {
namespace {

constexpr std::uint32_t lanes = 16;

HDICORE_AVX512 inline __m512i load(const std::uint16_t* from, __mmask16 wanted) noexcept {
    return _mm512_maskz_cvtepu16_epi32(wanted, _mm256_maskz_loadu_epi16(wanted, from));
}
HDICORE_AVX512 inline __m512i load(const std::uint32_t* from, __mmask16 wanted) noexcept {
    return _mm512_maskz_loadu_epi32(wanted, from);
}

HDICORE_AVX512 inline __m512 load_counts(const std::uint8_t* from) noexcept {
    return _mm512_maskz_cvtepi32_ps(
        0xffff, _mm512_maskz_cvtepu8_epi32(
                    0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
HDICORE_AVX512 inline __m512 load_counts(const std::uint16_t* from) noexcept {
    return _mm512_maskz_cvtepi32_ps(
        0xffff, _mm512_maskz_cvtepu16_epi32(
                    0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
}

// A mask of the first `count` lanes, or of all.
inline __mmask16 first_lanes(std::uint32_t count) noexcept {
    return static_cast<__mmask16>(count >= lanes ? 0xffffu : (1u << count) - 1);
}

template <class Rank>
HDICORE_AVX512 std::size_t copy_entries(std::span<const EntrySlice> slices,
                                        std::span<const Rank> all_ranks,
                                        std::span<const std::uint32_t> all_units,
                                        EntryBuffer& buffer) noexcept {
    std::size_t n = buffer.n;
    std::size_t n_read = 0;
    for (; n_read < slices.size() && n < EntryBuffer::enough; ++n_read) {
        const EntrySlice& slice = slices[n_read];
        const Rank* ranks = all_ranks.data() + slice.begin;
        const std::uint32_t* units = all_units.data() + slice.units;
        std::uint32_t e = 0;
        do {
            const __mmask16 wanted = first_lanes(slice.n - e);
            _mm512_storeu_si512(buffer.ranks + n + e, load(ranks + e, wanted));
            _mm512_storeu_si512(buffer.units + n + e, load(units + e, wanted));
            e += lanes;
        } while (e < slice.n);
        n += slice.n;
    }
    buffer.n = n;
    return n_read;
}

// Tails and buffer in registers.
struct TailCopy {
    __m512i low;
    __m512i high;
    __m512i first;
    __m512i last;
    __m512i low_mass;
    __m512i high_mass;
    rank_t* ranks;
    std::uint32_t* units;
    std::size_t n;

    HDICORE_AVX512 TailCopy(const Tails& tails, const EntryBuffer& buffer) noexcept
        : low(_mm512_set1_epi32(static_cast<int>(tails.low))),
          high(_mm512_set1_epi32(static_cast<int>(tails.high))),
          first(_mm512_set1_epi32(static_cast<int>(tails.first))),
          last(_mm512_set1_epi32(static_cast<int>(tails.last))),
          low_mass(_mm512_setzero_si512()),
          high_mass(_mm512_setzero_si512()),
          ranks(buffer.ranks),
          units(buffer.units),
          n(buffer.n) {}

    HDICORE_AVX512 static void add(__m512i& mass, __mmask16 wanted, __m512i units) noexcept {
        const __m512i kept = _mm512_maskz_mov_epi32(wanted, units);
        mass = _mm512_add_epi64(mass, _mm512_and_si512(kept, _mm512_set1_epi64(0xffffffff)));
        mass = _mm512_add_epi64(mass, _mm512_maskz_srli_epi64(0xff, kept, 32));
    }

    // Stores all 16 lanes whatever the mask selects: the buffer has room for that.
    HDICORE_AVX512 unsigned keep(__mmask16 wanted, __m512i r, __m512i u) noexcept {
        _mm512_storeu_si512(ranks + n, _mm512_maskz_compress_epi32(wanted, r));
        _mm512_storeu_si512(units + n, _mm512_maskz_compress_epi32(wanted, u));
        const auto count = static_cast<unsigned>(_mm_popcnt_u32(wanted));
        n += count;
        return count;
    }

    template <class Rank>
    HDICORE_AVX512 void copy_short(const Rank* from, const std::uint32_t* from_units,
                                   std::uint32_t size) noexcept {
        const __mmask16 all = first_lanes(size);
        const __m512i r = load(from, all);
        const __m512i u = load(from_units, all);
        const __mmask16 below = _mm512_mask_cmple_epu32_mask(all, r, low);
        const __mmask16 above = _mm512_mask_cmpge_epu32_mask(all, r, high);
        first = _mm512_mask_min_epu32(first, all, first, r);
        last = _mm512_maskz_max_epu32(0xffff, last, r);
        add(low_mass, below, u);
        add(high_mass, above, u);
        keep(static_cast<__mmask16>(below | above), r, u);
    }

    template <class Rank>
    HDICORE_AVX512 void copy_long(const Rank* from, const std::uint32_t* from_units,
                                  std::uint32_t size) noexcept {
        for (std::uint32_t e = 0; e < size; e += lanes) {
            const __mmask16 all = first_lanes(size - e);
            const __m512i r = load(from + e, all);
            const __m512i u = load(from_units + e, all);
            const __mmask16 below = _mm512_mask_cmple_epu32_mask(all, r, low);
            first = _mm512_mask_min_epu32(first, all, first, r);
            add(low_mass, below, u);
            if (keep(below, r, u) < lanes) break;
        }
        for (std::uint32_t end = size; end > 0;) {
            const std::uint32_t e = end > lanes ? end - lanes : 0;
            const __mmask16 all = first_lanes(end - e);
            const __m512i r = load(from + e, all);
            const __m512i u = load(from_units + e, all);
            const __mmask16 above = _mm512_mask_cmpge_epu32_mask(all, r, high);
            last = _mm512_maskz_max_epu32(0xffff, last, r);
            add(high_mass, above, u);
            if (keep(above, r, u) < lanes) break;
            end = e;
        }
    }

    HDICORE_AVX512 void store(Tails& tails, EntryBuffer& buffer) const noexcept {
        buffer.n = n;
        mass_t masses[8];
        _mm512_storeu_si512(masses, low_mass);
        tails.low_mass = std::accumulate(masses, masses + 8, tails.low_mass);
        _mm512_storeu_si512(masses, high_mass);
        tails.high_mass = std::accumulate(masses, masses + 8, tails.high_mass);
        rank_t outermost[lanes];
        _mm512_storeu_si512(outermost, first);
        tails.first = *std::min_element(outermost, outermost + lanes);
        _mm512_storeu_si512(outermost, last);
        tails.last = *std::max_element(outermost, outermost + lanes);
    }
};

template <class Rank>
HDICORE_AVX512 std::size_t copy_tails(std::span<const EntrySlice> slices,
                                      std::span<const Rank> ranks,
                                      std::span<const std::uint32_t> units, Tails& tails,
                                      EntryBuffer& buffer) noexcept {
    TailCopy copy(tails, buffer);
    std::size_t n_read = 0;
    for (; n_read < slices.size() && copy.n < EntryBuffer::enough; ++n_read) {
        const EntrySlice& slice = slices[n_read];
        if (slice.n <= lanes) {
            copy.copy_short(ranks.data() + slice.begin, units.data() + slice.units, slice.n);
        } else {
            copy.copy_long(ranks.data() + slice.begin, units.data() + slice.units, slice.n);
        }
    }
    copy.store(tails, buffer);
    return n_read;
}

template <class Count>
HDICORE_AVX512 void sum_counts(const Count* counts, std::size_t row_length,
                               std::span<const EntrySlice> slices, const double* entry_mass,
                               float* sums) noexcept {
    constexpr std::size_t n_parts = sum_block / lanes;
    __m512 parts[n_parts];
    for (__m512& part : parts) part = _mm512_setzero_ps();
    for (std::size_t l = 0; l < slices.size(); ++l) {
        const Count* row = counts + slices[l].leaf * row_length;
        const __m512 mass = _mm512_set1_ps(static_cast<float>(entry_mass[l]));
        for (std::size_t k = 0; k < n_parts; ++k) {
            parts[k] = _mm512_fmadd_ps(load_counts(row + k * lanes), mass, parts[k]);
        }
    }
    for (std::size_t k = 0; k < n_parts; ++k) _mm512_storeu_ps(sums + k * lanes, parts[k]);
}

HDICORE_AVX512 std::size_t list_nonzero_octets(std::uint64_t* words, std::size_t begin,
                                               std::size_t end, std::uint64_t* nonzero,
                                               rank_t* bases) noexcept {
    constexpr std::size_t words_at_once = 8;
    const __m256i steps = _mm256_setr_epi32(0, 64, 128, 192, 256, 320, 384, 448);
    std::size_t n = 0;
    for (std::size_t w = begin; w < end; w += words_at_once) {
        const auto all =
            static_cast<__mmask8>(end - w >= words_at_once ? 0xffu : (1u << (end - w)) - 1);
        const __m512i bits = _mm512_maskz_loadu_epi64(all, words + w);
        const __mmask8 holding = _mm512_test_epi64_mask(bits, bits);
        const __m256i firsts = _mm256_add_epi32(steps, _mm256_set1_epi32(static_cast<int>(64 * w)));
        _mm512_storeu_si512(nonzero + n, _mm512_maskz_compress_epi64(holding, bits));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(bases + n),
                            _mm256_maskz_compress_epi32(holding, firsts));
        _mm512_mask_storeu_epi64(words + w, all, _mm512_setzero_si512());
        n += static_cast<unsigned>(_mm_popcnt_u32(holding));
    }
    return n;
}

HDICORE_AVX512 std::size_t take_ranks(std::uint64_t* words, std::size_t begin, std::size_t end,
                                      std::uint64_t* nonzero, rank_t* bases, rank_t* out) noexcept {
    const std::size_t n_words = list_nonzero_octets(words, begin, end, nonzero, bases);
    const __m512i steps = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    std::size_t n = 0;
    for (std::size_t w = 0; w < n_words; ++w) {
        std::uint64_t bits = nonzero[w];
        const auto count = static_cast<std::size_t>(_mm_popcnt_u64(bits));
        if (count <= 4) {
            write_four_ranks(bits, bases[w], out + n);
            n += count;
            continue;
        }
        for (unsigned k = 0; k < 64; k += lanes, bits >>= lanes) {
            const auto members = static_cast<__mmask16>(bits);
            const __m512i all =
                _mm512_add_epi32(steps, _mm512_set1_epi32(static_cast<int>(bases[w] + k)));
            _mm512_storeu_si512(out + n, _mm512_maskz_compress_epi32(members, all));
            n += static_cast<unsigned>(_mm_popcnt_u32(members));
        }
    }
    return n;
}

HDICORE_AVX512 std::size_t list_masses(const mass_t* mass, rank_t first, rank_t last,
                                       rank_t* out) noexcept {
    __m512i ranks =
        _mm512_add_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                         _mm512_set1_epi32(static_cast<int>(first)));
    std::size_t n = 0;
    for (std::size_t rank = first; rank <= last; rank += lanes) {
        const __mmask16 all = first_lanes(static_cast<std::uint32_t>(last + 1 - rank));
        const auto low = static_cast<__mmask8>(all);
        const auto high = static_cast<__mmask8>(all >> 8);
        const __m512i a = _mm512_maskz_loadu_epi64(low, mass + rank);
        const __m512i b = _mm512_maskz_loadu_epi64(high, mass + rank + 8);
        const auto members = static_cast<__mmask16>(_mm512_test_epi64_mask(a, a) |
                                                    (_mm512_test_epi64_mask(b, b) << 8));
        _mm512_storeu_si512(out + n, _mm512_maskz_compress_epi32(members, ranks));
        ranks = _mm512_add_epi32(ranks, _mm512_set1_epi32(lanes));
        n += static_cast<unsigned>(_mm_popcnt_u32(members));
    }
    return n;
}

const Kernels avx512{
    .name = "avx512",
    .of_entries = {EntryKernels<std::uint16_t>{copy_entries<std::uint16_t>,
                                               copy_tails<std::uint16_t>},
                   EntryKernels<rank_t>{copy_entries<rank_t>, copy_tails<rank_t>}},
    .of_counts = {sum_counts<std::uint8_t>, sum_counts<std::uint16_t>},
    .take_ranks = take_ranks,
    .list_masses = list_masses,
    .lists_masses_fast = true,
    .min_entries_for_tails = 4,
    .min_entries_for_buckets = 32,
};

}  // namespace

const Kernels* avx512_kernels() noexcept {
    const bool supported = __builtin_cpu_supports("avx512f") != 0 &&
                           __builtin_cpu_supports("avx512bw") != 0 &&
                           __builtin_cpu_supports("avx512vl") != 0;
    return supported ? &avx512 : nullptr;
}

}  // namespace hdicore
#endif
