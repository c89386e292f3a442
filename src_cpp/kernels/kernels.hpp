// kernels/kernels.hpp: the loops that exist for several instruction sets, as a table of functions
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <tuple>

#include "base/types.hpp"

namespace hdicore {

// The entries of one leaf, or some neighbours of them, in the arrays of an index.
struct EntrySlice {
    std::size_t begin;   // ranks[begin : begin + n], ascending
    std::size_t units;   // units[units : units + n]
    std::uint32_t n;     // may be 0 only where a function says so
    std::uint32_t leaf;  // row of the leaf in the bucket counts, if the index has them
};

// Entries copied from slices, in any order.
struct EntryBuffer {
    // A kernel stops after the slice that reaches this number of entries, and may write up to
    // `slack` elements behind the last entry.
    static constexpr std::size_t enough = 1024;
    static constexpr std::size_t slack = 16;

    rank_t* ranks;
    std::uint32_t* units;
    std::size_t n = 0;
};

// The two tails of a distribution: entries of ranks <= low and >= high, with their masses and the
// outermost ranks of the slices read. Units of a slice fit 32 bits together.
struct Tails {
    rank_t low;  // low < high, both ranks of the index
    rank_t high;
    rank_t first = std::numeric_limits<rank_t>::max();
    rank_t last = 0;
    mass_t low_mass = 0;
    mass_t high_mass = 0;
};

template <class Rank>
struct EntryKernels {
    // Both copy slice after slice, until all are read or the buffer has enough, and return the
    // number of slices read.

    // Copies all entries. Slices may be empty.
    std::size_t (*copy)(std::span<const EntrySlice> slices, std::span<const Rank> ranks,
                        std::span<const std::uint32_t> units, EntryBuffer& buffer) noexcept;
    // Copies the entries of the tails, and adds to their masses. O(slices + entries copied).
    std::size_t (*copy_tails)(std::span<const EntrySlice> slices, std::span<const Rank> ranks,
                              std::span<const std::uint32_t> units, Tails& tails,
                              EntryBuffer& buffer) noexcept;
};

// Bucket counts are summed in blocks of so many buckets.
inline constexpr std::size_t sum_block = 32;

// Sums counts[slice.leaf * row_length + b] * entry_mass[slice] over slices, for each b < sum_block.
template <class Count>
using SumCounts = void (*)(const Count* counts, std::size_t row_length,
                           std::span<const EntrySlice> slices, const double* entry_mass,
                           float* sums) noexcept;

// One instruction set. Results are the same bits with each, except that float sums of counts may
// differ within their error bound.
struct Kernels {
    const char* name;

    std::tuple<EntryKernels<std::uint16_t>, EntryKernels<rank_t>> of_entries;
    std::tuple<SumCounts<std::uint8_t>, SumCounts<std::uint16_t>> of_counts;
    // Lists the set bits of words[begin : end] as ranks, ascending, in `out`, clears them, and
    // returns their number. `nonzero` and `bases` are scratch memory with room for the words and 8
    // more; up to RankSet::slack elements behind the last rank are written.
    std::size_t (*take_ranks)(std::uint64_t* words, std::size_t begin, std::size_t end,
                              std::uint64_t* nonzero, rank_t* bases, rank_t* out) noexcept;

    // Lists the ranks in [first, last] whose mass is not 0, ascending, in `out`, and returns their
    // number; up to RankSet::slack elements behind the last rank are written. O(last - first).
    std::size_t (*list_masses)(const mass_t* mass, rank_t first, rank_t last, rank_t* out) noexcept;
    // Whether list_masses is faster than a bit for each entry, where most masses are not 0.
    bool lists_masses_fast;

    // Average entries of a leaf from which merging only tails, or only buckets, is faster. Measured
    // with bench/speed.
    double min_entries_for_tails;
    double min_entries_for_buckets;

    template <class Rank>
    const EntryKernels<Rank>& entries() const noexcept {
        return std::get<EntryKernels<Rank>>(of_entries);
    }
    template <class Count>
    SumCounts<Count> sum_counts() const noexcept {
        return std::get<SumCounts<Count>>(of_counts);
    }
};

// The sets that this build has and this processor can run, widest last; the first is portable.
std::span<const Kernels* const> available_kernels();

// The one of that name. Throws std::invalid_argument, which names all that are available.
const Kernels& kernels_named(std::string_view name);

// The one that the environment variable HDICORE_INSTRUCTIONS names, or the widest if it is empty.
// Read until it names one; a program does not change its instructions on the way.
const Kernels& default_kernels();

// The one that every processor can run.
extern const Kernels portable_kernels;

// Lists the words of words[begin : end] that are not zero, and the ranks of their first bits,
// behind n others, and clears them: without a branch for each word. Returns the number with those
// before.
inline std::size_t list_nonzero(std::uint64_t* words, std::size_t begin, std::size_t end,
                                std::size_t n, std::uint64_t* nonzero, rank_t* bases) noexcept {
    for (std::size_t w = begin; w < end; ++w) {
        nonzero[n] = words[w];
        bases[n] = static_cast<rank_t>(64 * w);
        n += words[w] != 0;
        words[w] = 0;
    }
    return n;
}

// Kernels::list_masses without a branch for each rank.
inline std::size_t list_masses_in_turn(const mass_t* mass, rank_t first, rank_t last,
                                       rank_t* out) noexcept {
    std::size_t n = 0;
    for (std::size_t rank = first; rank <= last; ++rank) {
        out[n] = static_cast<rank_t>(rank);
        n += mass[rank] != 0;
    }
    return n;
}

// Writes the lowest four set bits of a word as ranks, whether it has so many or not, and clears
// them: a loop over the bits would end in a mispredicted branch.
inline void write_four_ranks(std::uint64_t& bits, rank_t base, rank_t* out) noexcept {
    for (std::size_t k = 0; k < 4; ++k, bits &= bits - 1) {
        out[k] = base + static_cast<rank_t>(std::countr_zero(bits));
    }
}

}  // namespace hdicore
