// hdicore/tails.hpp: leaves -> the entries at both ends, all that an interval of high coverage
// needs SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hdicore/types.hpp"

namespace hdicore {

// Which instructions a kernel uses; the results are the same bits.
enum class Instructions { portable, avx512 };

// The widest that this processor has. The environment variable HDICORE_INSTRUCTIONS, read once, may
// say "portable".
Instructions widest_instructions() noexcept;

// The entries of one leaf.
struct Leaf {
    std::size_t begin;  // of its ranks, n of them, ascending
    std::size_t units;  // of its units, n of them
    std::uint32_t n;    // > 0
};

// Entries of ranks <= low and >= high, and what they weigh.
struct Tails {
    rank_t low;
    rank_t high;
    mass_t low_mass = 0;
    mass_t high_mass = 0;
};

// Where tails that hold at least `share` each probably end: the mean, over the leaves, of the rank
// at that share of a leaf's entries. Leaves differ, which makes their mixture wider than each of
// them, so that this is mostly a little too far in. O(leaves).
template <class Rank>
Tails guess_tails(std::span<const Leaf> leaves, const Rank* ranks, double share) noexcept;

// Entries picked from leaves, in no order.
struct Picked {
    // A pick may pass this by the entries of one leaf, and writes up to 16 behind those.
    static constexpr std::size_t enough = 1024;

    rank_t* ranks;
    std::uint32_t* units;
    std::size_t n = 0;
};

// Picks the entries of `tails` from leaf after leaf and adds to their masses, until all leaves are
// read or picked.n >= Picked::enough. Returns the number of leaves read.
// O(leaves + entries of the tails).
template <class Rank>
std::size_t pick_tails(std::span<const Leaf> leaves, const Rank* ranks, const std::uint32_t* units,
                       Instructions instructions, Tails& tails, Picked& picked) noexcept;

}  // namespace hdicore
