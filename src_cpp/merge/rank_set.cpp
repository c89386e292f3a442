// merge/rank_set.cpp: words that hold members are listed first, without a branch for each word
// SPDX-License-Identifier: BSD-3-Clause
#include "merge/rank_set.hpp"

#include <bit>

#ifdef HDICORE_AVX512
#include <immintrin.h>
#endif

namespace hdicore {
namespace {

// Lists the words of [begin, end) that are not zero, and sets them to zero. Returns how many.
std::size_t list_portably(std::uint64_t* words, std::size_t begin, std::size_t end,
                          std::uint64_t* found, rank_t* ranks) noexcept {
    std::size_t n = 0;
    for (std::size_t w = begin; w < end; ++w) {
        found[n] = words[w];
        ranks[n] = static_cast<rank_t>(64 * w);
        n += words[w] != 0;
        words[w] = 0;
    }
    return n;
}

// Writes the members of a word four at a time whether it has them or not: a loop over its bits
// would end in a mispredicted branch.
inline void write_four(std::uint64_t& bits, rank_t base, rank_t* out) noexcept {
    for (std::size_t k = 0; k < 4; ++k, bits &= bits - 1) {
        out[k] = base + static_cast<rank_t>(std::countr_zero(bits));
    }
}

std::size_t write_portably(const std::uint64_t* words, const rank_t* ranks, std::size_t n_words,
                           rank_t* out) noexcept {
    std::size_t n = 0;
    for (std::size_t w = 0; w < n_words; ++w) {
        std::uint64_t bits = words[w];
        const auto count = static_cast<std::size_t>(std::popcount(bits));
        for (std::size_t k = 0; k < count; k += 4) write_four(bits, ranks[w], out + n + k);
        n += count;
    }
    return n;
}

#ifdef HDICORE_AVX512
HDICORE_TARGET_AVX512 std::size_t list_with_avx512(std::uint64_t* words, std::size_t begin,
                                                   std::size_t end, std::uint64_t* found,
                                                   rank_t* ranks) noexcept {
    constexpr std::size_t lanes = 8;
    const __m256i steps = _mm256_setr_epi32(0, 64, 128, 192, 256, 320, 384, 448);
    std::size_t n = 0;
    for (std::size_t w = begin; w < end; w += lanes) {
        const auto all = static_cast<__mmask8>(end - w >= lanes ? 0xffu : (1u << (end - w)) - 1);
        const __m512i bits = _mm512_maskz_loadu_epi64(all, words + w);
        const __mmask8 holding = _mm512_test_epi64_mask(bits, bits);
        const __m256i firsts = _mm256_add_epi32(steps, _mm256_set1_epi32(static_cast<int>(64 * w)));
        _mm512_storeu_si512(found + n, _mm512_maskz_compress_epi64(holding, bits));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(ranks + n),
                            _mm256_maskz_compress_epi32(holding, firsts));
        _mm512_mask_storeu_epi64(words + w, all, _mm512_setzero_si512());
        n += static_cast<unsigned>(_mm_popcnt_u32(holding));
    }
    return n;
}

HDICORE_TARGET_AVX512 std::size_t write_with_avx512(const std::uint64_t* words, const rank_t* ranks,
                                                    std::size_t n_words, rank_t* out) noexcept {
    constexpr unsigned lanes = 16;
    const __m512i steps = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    std::size_t n = 0;
    for (std::size_t w = 0; w < n_words; ++w) {
        std::uint64_t bits = words[w];
        const auto count = static_cast<std::size_t>(_mm_popcnt_u64(bits));
        if (count <= 4) {
            write_four(bits, ranks[w], out + n);
            n += count;
            continue;
        }
        for (unsigned k = 0; k < 64; k += lanes, bits >>= lanes) {
            const auto members = static_cast<__mmask16>(bits);
            const __m512i all =
                _mm512_add_epi32(steps, _mm512_set1_epi32(static_cast<int>(ranks[w] + k)));
            _mm512_storeu_si512(out + n, _mm512_maskz_compress_epi32(members, all));
            n += static_cast<unsigned>(_mm_popcnt_u32(members));
        }
    }
    return n;
}
#endif

}  // namespace

RankSet::RankSet(std::size_t n_ranks)
    : words_((n_ranks + 63) / 64, 0), found_(words_.size() + 8), found_ranks_(words_.size() + 8) {}

std::size_t RankSet::take(rank_t first, rank_t last, [[maybe_unused]] Instructions instructions,
                          rank_t* out) noexcept {
    const std::size_t begin = first / 64;
    const std::size_t end = last / 64 + 1;
    // Members of the outermost words that stay are put aside.
    const std::uint64_t below = words_[begin] & ((std::uint64_t{1} << (first % 64)) - 1);
    const std::uint64_t above = words_[end - 1] & (~std::uint64_t{1} << (last % 64));
    words_[begin] &= ~below;
    words_[end - 1] &= ~above;
    std::size_t n = 0;
#ifdef HDICORE_AVX512
    if (instructions == Instructions::avx512) {
        n = list_with_avx512(words_.data(), begin, end, found_.data(), found_ranks_.data());
        n = write_with_avx512(found_.data(), found_ranks_.data(), n, out);
    } else
#endif
    {
        n = list_portably(words_.data(), begin, end, found_.data(), found_ranks_.data());
        n = write_portably(found_.data(), found_ranks_.data(), n, out);
    }
    words_[begin] |= below;
    words_[end - 1] |= above;
    return n;
}

}  // namespace hdicore
