// kernels/avx2.cpp: the kernels for x86 processors with AVX2 (and FMA, BMI1, BMI2, POPCNT)
// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/kernels.hpp"
#include "kernels/x86.hpp"

#ifdef HDICORE_X86

#include <algorithm>
#include <array>
#include <numeric>

#define HDICORE_AVX2 HDICORE_TARGET("avx2,fma,bmi,bmi2,popcnt")

namespace hdicore {
namespace {

// Entries handled at once.
constexpr std::uint32_t step = EntryBuffer::slack;

// Whether `step` entries more than the slice has can be read. The portable kernels read no further
// than a slice goes, and so take the slices at the end of the arrays.
template <class Rank>
bool has_room(const EntrySlice& slice, std::span<const Rank> ranks,
              std::span<const std::uint32_t> units) noexcept {
    return slice.begin + slice.n + step <= ranks.size() &&
           slice.units + slice.n + step <= units.size();
}

// Loaded from step - n on, all bits of the first n lanes.
template <class Lane>
alignas(64) constexpr auto first_lanes = [] {
    std::array<Lane, 2 * step> made{};
    std::fill_n(made.begin(), step, static_cast<Lane>(~Lane{0}));
    return made;
}();

// For each byte, the places of its bits, ascending.
alignas(64) constexpr auto places_of_bits = [] {
    std::array<std::array<std::uint8_t, 8>, 256> made{};
    for (std::size_t byte = 0; byte < made.size(); ++byte) {
        std::size_t n = 0;
        for (unsigned k = 0; k < 8; ++k) {
            if ((byte >> k & 1) != 0) made[byte][n++] = static_cast<std::uint8_t>(k);
        }
    }
    return made;
}();

// 16 ranks or units.
struct Pair {
    __m256i first;
    __m256i second;
};

HDICORE_AVX2 inline __m256i load_8(const std::uint32_t* from) noexcept {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
HDICORE_AVX2 inline __m256i load_8(const std::uint16_t* from) noexcept {
    return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
HDICORE_AVX2 inline void store_8(std::uint32_t* to, __m256i lanes) noexcept {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), lanes);
}
template <class From>
HDICORE_AVX2 inline Pair load(const From* from) noexcept {
    return {load_8(from), load_8(from + 8)};
}
HDICORE_AVX2 inline void store(std::uint32_t* to, const Pair& lanes) noexcept {
    store_8(to, lanes.first);
    store_8(to + 8, lanes.second);
}

template <class Rank>
HDICORE_AVX2 std::size_t copy_entries(std::span<const EntrySlice> slices,
                                      std::span<const Rank> ranks,
                                      std::span<const std::uint32_t> units,
                                      EntryBuffer& buffer) noexcept {
    std::size_t n_read = 0;
    for (; n_read < slices.size() && buffer.n < EntryBuffer::enough; ++n_read) {
        const EntrySlice& slice = slices[n_read];
        if (!has_room(slice, ranks, units)) {
            portable_kernels.entries<Rank>().copy(slices.subspan(n_read, 1), ranks, units, buffer);
            continue;
        }
        std::uint32_t e = 0;
        do {
            // A second half that is not needed is read where the first is: it would often lie in
            // one more cache line.
            const std::uint32_t second = slice.n - e > 8 ? e + 8 : e;
            const Rank* from = ranks.data() + slice.begin;
            store(buffer.ranks + buffer.n + e, {load_8(from + e), load_8(from + second)});
            const std::uint32_t* unit = units.data() + slice.units;
            store(buffer.units + buffer.n + e, {load_8(unit + e), load_8(unit + second)});
            e += step;
        } while (e < slice.n);
        buffer.n += slice.n;
    }
    return n_read;
}

// How many of the first n of 16 ranks lie in a tail.
struct NarrowLimits {
    __m256i low;
    __m256i high;

    HDICORE_AVX2 explicit NarrowLimits(const Tails& tails) noexcept
        : low(_mm256_set1_epi16(static_cast<short>(tails.low))),
          high(_mm256_set1_epi16(static_cast<short>(tails.high))) {}

    HDICORE_AVX2 static std::uint32_t count(__m256i equal, std::uint32_t n) noexcept {
        const auto bits = static_cast<std::uint32_t>(_mm256_movemask_epi8(equal));
        return static_cast<std::uint32_t>(_mm_popcnt_u32(_bzhi_u32(bits, 2 * n))) / 2;
    }
    HDICORE_AVX2 std::uint32_t below(const std::uint16_t* ranks, std::uint32_t n) const noexcept {
        const __m256i r = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ranks));
        return count(_mm256_cmpeq_epi16(_mm256_min_epu16(r, low), r), n);
    }
    HDICORE_AVX2 std::uint32_t above(const std::uint16_t* ranks, std::uint32_t n) const noexcept {
        const __m256i r = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ranks));
        return count(_mm256_cmpeq_epi16(_mm256_max_epu16(r, high), r), n);
    }
};

struct WideLimits {
    __m256i low;
    __m256i high;

    HDICORE_AVX2 explicit WideLimits(const Tails& tails) noexcept
        : low(_mm256_set1_epi32(static_cast<int>(tails.low))),
          high(_mm256_set1_epi32(static_cast<int>(tails.high))) {}

    HDICORE_AVX2 static std::uint32_t count(__m256i first, __m256i second,
                                            std::uint32_t n) noexcept {
        const int bits = _mm256_movemask_ps(_mm256_castsi256_ps(first)) |
                         _mm256_movemask_ps(_mm256_castsi256_ps(second)) << 8;
        return static_cast<std::uint32_t>(
            _mm_popcnt_u32(_bzhi_u32(static_cast<std::uint32_t>(bits), n)));
    }
    HDICORE_AVX2 std::uint32_t below(const rank_t* ranks, std::uint32_t n) const noexcept {
        const Pair r = load(ranks);
        return count(_mm256_cmpeq_epi32(_mm256_min_epu32(r.first, low), r.first),
                     _mm256_cmpeq_epi32(_mm256_min_epu32(r.second, low), r.second), n);
    }
    HDICORE_AVX2 std::uint32_t above(const rank_t* ranks, std::uint32_t n) const noexcept {
        const Pair r = load(ranks);
        return count(_mm256_cmpeq_epi32(_mm256_max_epu32(r.first, high), r.first),
                     _mm256_cmpeq_epi32(_mm256_max_epu32(r.second, high), r.second), n);
    }
};

// Entries of a leaf ascend, so those of a tail are its first or its last ones: 16 are copied from
// where they begin, and those that are too many are overwritten by the next ones.
template <class Rank, class Limits>
struct TailCopy {
    Limits limits;
    __m256i low_mass = _mm256_setzero_si256();
    __m256i high_mass = _mm256_setzero_si256();
    EntryBuffer& buffer;

    HDICORE_AVX2 TailCopy(const Tails& tails, EntryBuffer& to) noexcept
        : limits(tails), buffer(to) {}

    // Appends n <= 16 entries, rarely more than 8. Their units fit 32 bits together.
    HDICORE_AVX2 void keep(const Rank* ranks, const std::uint32_t* units, std::uint32_t n,
                           __m256i& mass) noexcept {
        __m256i sum = put_8(ranks, units, 0, n);
        if (n > 8) sum = _mm256_add_epi32(sum, put_8(ranks, units, 8, n));
        buffer.n += n;
        mass = _mm256_add_epi64(mass, _mm256_and_si256(sum, _mm256_set1_epi64x(0xffffffff)));
        mass = _mm256_add_epi64(mass, _mm256_srli_epi64(sum, 32));
    }

    // Copies 8 entries from number e on, and returns the units of those among the first n.
    HDICORE_AVX2 __m256i put_8(const Rank* ranks, const std::uint32_t* units, std::uint32_t e,
                               std::uint32_t n) noexcept {
        const __m256i u = load_8(units + e);
        store_8(buffer.ranks + buffer.n + e, load_8(ranks + e));
        store_8(buffer.units + buffer.n + e, u);
        return _mm256_and_si256(u, load_8(first_lanes<std::uint32_t>.data() + step - n + e));
    }

    HDICORE_AVX2 void copy(const Rank* ranks, const std::uint32_t* units,
                           std::uint32_t size) noexcept {
        std::uint32_t n = step;
        for (std::uint32_t e = 0; e < size && n == step; e += step) {
            n = limits.below(ranks + e, std::min(size - e, step));
            keep(ranks + e, units + e, n, low_mass);
        }
        n = step;
        for (std::uint32_t end = size; end > 0 && n == step;) {
            const std::uint32_t e = std::max(end, step) - step;
            n = limits.above(ranks + e, end - e);
            keep(ranks + end - n, units + end - n, n, high_mass);
            end = e;
        }
    }

    HDICORE_AVX2 static mass_t total(__m256i masses) noexcept {
        mass_t lanes[4];
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), masses);
        return std::accumulate(lanes, lanes + 4, mass_t{0});
    }
};

template <class Rank, class Limits>
HDICORE_AVX2 std::size_t copy_tails(std::span<const EntrySlice> slices, std::span<const Rank> ranks,
                                    std::span<const std::uint32_t> units, Tails& tails,
                                    EntryBuffer& buffer) noexcept {
    TailCopy<Rank, Limits> copy(tails, buffer);
    std::size_t n_read = 0;
    for (; n_read < slices.size() && buffer.n < EntryBuffer::enough; ++n_read) {
        const EntrySlice& slice = slices[n_read];
        if (!has_room(slice, ranks, units)) {
            portable_kernels.entries<Rank>().copy_tails(slices.subspan(n_read, 1), ranks, units,
                                                        tails, buffer);
            continue;
        }
        const Rank* first = ranks.data() + slice.begin;
        tails.first = std::min<rank_t>(tails.first, first[0]);
        tails.last = std::max<rank_t>(tails.last, first[slice.n - 1]);
        copy.copy(first, units.data() + slice.units, slice.n);
    }
    tails.low_mass += copy.total(copy.low_mass);
    tails.high_mass += copy.total(copy.high_mass);
    return n_read;
}

HDICORE_AVX2 inline __m256 load_counts(const std::uint8_t* from) noexcept {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
}
HDICORE_AVX2 inline __m256 load_counts(const std::uint16_t* from) noexcept {
    return _mm256_cvtepi32_ps(load_8(from));
}

template <class Count>
HDICORE_AVX2 void sum_counts(const Count* counts, std::size_t row_length,
                             std::span<const EntrySlice> slices, const double* entry_mass,
                             float* sums) noexcept {
    constexpr std::size_t n_parts = sum_block / 8;
    __m256 parts[n_parts];
    for (__m256& part : parts) part = _mm256_setzero_ps();
    for (std::size_t l = 0; l < slices.size(); ++l) {
        const Count* row = counts + slices[l].leaf * row_length;
        const __m256 mass = _mm256_set1_ps(static_cast<float>(entry_mass[l]));
        for (std::size_t k = 0; k < n_parts; ++k) {
            parts[k] = _mm256_fmadd_ps(load_counts(row + 8 * k), mass, parts[k]);
        }
    }
    for (std::size_t k = 0; k < n_parts; ++k) _mm256_storeu_ps(sums + 8 * k, parts[k]);
}

// For each set of 4 words, the halves of its members, in front.
alignas(64) constexpr auto halves_of = [] {
    std::array<std::array<std::uint32_t, 8>, 16> made{};
    for (unsigned set = 0; set < 16; ++set) {
        std::size_t n = 0;
        for (unsigned k = 0; k < 4; ++k) {
            if ((set >> k & 1) == 0) continue;
            made[set][n++] = 2 * k;
            made[set][n++] = 2 * k + 1;
        }
    }
    return made;
}();

HDICORE_AVX2 std::size_t list_nonzero_quads(std::uint64_t* words, std::size_t begin,
                                            std::size_t end, std::uint64_t* nonzero,
                                            rank_t* bases) noexcept {
    // The rank of the first bit of each word, twice.
    const __m256i steps = _mm256_setr_epi32(0, 0, 64, 64, 128, 128, 192, 192);
    const __m256i evens = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
    std::size_t n = 0;
    std::size_t w = begin;
    for (; w + 4 <= end; w += 4) {
        auto* at = reinterpret_cast<__m256i*>(words + w);
        const __m256i bits = _mm256_loadu_si256(at);
        const __m256i empty = _mm256_cmpeq_epi64(bits, _mm256_setzero_si256());
        const auto set =
            static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(empty))) ^ 15u;
        const __m256i halves = load_8(halves_of[set].data());
        const __m256i firsts = _mm256_add_epi32(steps, _mm256_set1_epi32(static_cast<int>(64 * w)));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(nonzero + n),
                            _mm256_permutevar8x32_epi32(bits, halves));
        const __m256i moved =
            _mm256_permutevar8x32_epi32(_mm256_permutevar8x32_epi32(firsts, halves), evens);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(bases + n), _mm256_castsi256_si128(moved));
        _mm256_storeu_si256(at, _mm256_setzero_si256());
        n += static_cast<unsigned>(_mm_popcnt_u32(set));
    }
    return list_nonzero(words, w, end, n, nonzero, bases);
}

HDICORE_AVX2 std::size_t take_ranks(std::uint64_t* words, std::size_t begin, std::size_t end,
                                    std::uint64_t* nonzero, rank_t* bases, rank_t* out) noexcept {
    const std::size_t n_words = list_nonzero_quads(words, begin, end, nonzero, bases);
    std::size_t n = 0;
    for (std::size_t w = 0; w < n_words; ++w) {
        std::uint64_t bits = nonzero[w];
        const auto count = static_cast<std::size_t>(_mm_popcnt_u64(bits));
        if (count <= 4) {
            write_four_ranks(bits, bases[w], out + n);
            n += count;
            continue;
        }
        for (unsigned k = 0; k < 64; k += 8, bits >>= 8) {
            const auto byte = static_cast<unsigned>(bits & 0xff);
            const __m256i places = _mm256_cvtepu8_epi32(
                _mm_loadl_epi64(reinterpret_cast<const __m128i*>(places_of_bits[byte].data())));
            store_8(out + n,
                    _mm256_add_epi32(places, _mm256_set1_epi32(static_cast<int>(bases[w] + k))));
            n += static_cast<unsigned>(_mm_popcnt_u32(byte));
        }
    }
    return n;
}

const Kernels avx2{
    .name = "avx2",
    .of_entries = {EntryKernels<std::uint16_t>{copy_entries<std::uint16_t>,
                                               copy_tails<std::uint16_t, NarrowLimits>},
                   EntryKernels<rank_t>{copy_entries<rank_t>, copy_tails<rank_t, WideLimits>}},
    .of_counts = {sum_counts<std::uint8_t>, sum_counts<std::uint16_t>},
    .take_ranks = take_ranks,
    .list_masses = list_masses_in_turn,
    .lists_masses_fast = false,
    .min_entries_for_tails = 8,
    .min_entries_for_buckets = 32,
};

}  // namespace

const Kernels* avx2_kernels() noexcept {
    const bool supported =
        __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
        __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("bmi2") != 0 &&
        __builtin_cpu_supports("popcnt") != 0;
    return supported ? &avx2 : nullptr;
}

}  // namespace hdicore
#endif
