// kernels/portable.cpp: the kernels in plain C++
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>

#include "kernels/kernels.hpp"

namespace hdicore {
namespace {

template <class From>
inline void copy_some(const From* __restrict from, std::size_t n,
                      std::uint32_t* __restrict to) noexcept {
    for (std::size_t k = 0; k < n; ++k) to[k] = from[k];
}

// Copies 16 entries at a time: a loop over the entries of a short leaf would end in a mispredicted
// branch. Elements behind the slice are copied too and overwritten later, unless the arrays end
// there.
template <class Rank>
std::size_t copy_entries(std::span<const EntrySlice> slices, std::span<const Rank> ranks,
                         std::span<const std::uint32_t> units, EntryBuffer& buffer) noexcept {
    constexpr std::uint32_t step = EntryBuffer::slack;
    std::size_t n = buffer.n;
    std::size_t n_read = 0;
    for (; n_read < slices.size() && n < EntryBuffer::enough; ++n_read) {
        const EntrySlice& slice = slices[n_read];
        for (std::uint32_t e = 0; e < slice.n; e += step) {
            const std::size_t r = slice.begin + e;
            const std::size_t u = slice.units + e;
            if (r + step <= ranks.size() && u + step <= units.size()) {
                copy_some(ranks.data() + r, step, buffer.ranks + n + e);
                copy_some(units.data() + u, step, buffer.units + n + e);
            } else {
                const std::uint32_t rest = std::min(step, slice.n - e);
                copy_some(ranks.data() + r, rest, buffer.ranks + n + e);
                copy_some(units.data() + u, rest, buffer.units + n + e);
            }
        }
        n += slice.n;
    }
    buffer.n = n;
    return n_read;
}

template <class Rank>
std::size_t copy_tails(std::span<const EntrySlice> slices, std::span<const Rank> all_ranks,
                       std::span<const std::uint32_t> all_units, Tails& tails,
                       EntryBuffer& buffer) noexcept {
    std::size_t n = buffer.n;
    std::size_t n_read = 0;
    for (; n_read < slices.size() && n < EntryBuffer::enough; ++n_read) {
        const EntrySlice& slice = slices[n_read];
        const Rank* ranks = all_ranks.data() + slice.begin;
        const std::uint32_t* units = all_units.data() + slice.units;
        tails.first = std::min<rank_t>(tails.first, ranks[0]);
        tails.last = std::max<rank_t>(tails.last, ranks[slice.n - 1]);
        for (std::uint32_t e = 0; e < slice.n && ranks[e] <= tails.low; ++e) {
            buffer.ranks[n] = ranks[e];
            buffer.units[n++] = units[e];
            tails.low_mass += units[e];
        }
        for (std::uint32_t e = slice.n; e > 0 && ranks[e - 1] >= tails.high; --e) {
            buffer.ranks[n] = ranks[e - 1];
            buffer.units[n++] = units[e - 1];
            tails.high_mass += units[e - 1];
        }
    }
    buffer.n = n;
    return n_read;
}

template <class Count>
void sum_counts(const Count* counts, std::size_t row_length, std::span<const EntrySlice> slices,
                const double* entry_mass, float* sums) noexcept {
    std::fill_n(sums, sum_block, 0.0f);
    for (std::size_t l = 0; l < slices.size(); ++l) {
        const Count* row = counts + slices[l].leaf * row_length;
        const auto mass = static_cast<float>(entry_mass[l]);
        for (std::size_t b = 0; b < sum_block; ++b) {
            sums[b] += static_cast<float>(row[b]) * mass;
        }
    }
}

std::size_t take_ranks(std::uint64_t* words, std::size_t begin, std::size_t end,
                       std::uint64_t* nonzero, rank_t* bases, rank_t* out) noexcept {
    const std::size_t n_words = list_nonzero(words, begin, end, 0, nonzero, bases);
    std::size_t n = 0;
    for (std::size_t w = 0; w < n_words; ++w) {
        std::uint64_t bits = nonzero[w];
        const auto count = static_cast<std::size_t>(std::popcount(bits));
        for (std::size_t k = 0; k < count; k += 4) write_four_ranks(bits, bases[w], out + n + k);
        n += count;
    }
    return n;
}

}  // namespace

const Kernels portable_kernels{
    .name = "portable",
    .of_entries = {EntryKernels<std::uint16_t>{copy_entries<std::uint16_t>,
                                               copy_tails<std::uint16_t>},
                   EntryKernels<rank_t>{copy_entries<rank_t>, copy_tails<rank_t>}},
    .of_counts = {sum_counts<std::uint8_t>, sum_counts<std::uint16_t>},
    .take_ranks = take_ranks,
    .list_masses = list_masses_in_turn,
    .lists_masses_fast = false,
    .min_entries_for_tails = 16,
    .min_entries_for_buckets = 64,
};

}  // namespace hdicore
