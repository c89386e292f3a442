// merge/tails.hpp: leaves -> their entries in one list: all, or those at both ends
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "base/types.hpp"
#include "kernels/instructions.hpp"

namespace hdicore {

// The entries of one leaf.
struct Leaf {
    std::size_t begin;  // of its ranks, n of them, ascending
    std::size_t units;  // of its units, n of them
    std::uint32_t n;    // > 0, but for pick_all
};

// Entries of ranks <= low and >= high, what they weigh, and the outermost ranks of the leaves read.
struct Tails {
    rank_t low;
    rank_t high;
    rank_t first = std::numeric_limits<rank_t>::max();
    rank_t last = 0;
    mass_t low_mass = 0;
    mass_t high_mass = 0;
};

// Guesses where tails that hold at least a given share each end: the mean, over the leaves, of the
// rank at that share of a leaf's entries. Leaves differ, which makes their mixture wider than each
// of them, so that this is mostly a little too far in.
class TailGuess {
  public:
    explicit TailGuess(double share) noexcept : share_(static_cast<std::uint64_t>(share * one)) {}

    // Ranks (n,) of one more leaf.
    template <class Rank>
    void add(const Rank* ranks, std::uint32_t n) noexcept {
        // The share of few entries is no whole number: rounding it up and down in turn, by a
        // sequence that fills [0, 1) evenly, gives the mean that interpolation would.
        turn_ += golden;
        const std::uint64_t inner = (share_ * n + turn_ % one) / one;
        const std::uint64_t from_end = std::min<std::uint64_t>(inner, n - 1);
        low_ += ranks[from_end];
        high_ += ranks[n - 1 - from_end];
        ++n_leaves_;
    }

    Tails tails() const noexcept {
        return {static_cast<rank_t>(low_ / n_leaves_), static_cast<rank_t>(high_ / n_leaves_)};
    }

  private:
    static constexpr std::uint64_t one = std::uint64_t{1} << 16;
    static constexpr std::uint64_t golden = 40503;  // 2^16 / 1.618...

    std::uint64_t share_;
    std::uint64_t turn_ = 0;
    std::uint64_t low_ = 0;
    std::uint64_t high_ = 0;
    std::uint64_t n_leaves_ = 0;
};

// Entries picked from leaves, in no order.
struct Picked {
    // A pick may pass this by the entries of one leaf, and writes up to 16 behind those.
    static constexpr std::size_t enough = 1024;

    rank_t* ranks;
    std::uint32_t* units;
    std::size_t n = 0;
};

// Picks all entries of leaf after leaf, until all are read or picked.n >= Picked::enough. Returns
// the number of leaves read, of which some may be empty. The arrays have n_ranks and n_units
// elements.
template <class Rank>
std::size_t pick_all(std::span<const Leaf> leaves, std::span<const Rank> ranks,
                     std::span<const std::uint32_t> units, Instructions instructions,
                     Picked& picked) noexcept;

// Picks the entries of `tails` from leaf after leaf and adds to their masses, until all leaves are
// read or picked.n >= Picked::enough. Returns the number of leaves read.
// O(leaves + entries of the tails).
template <class Rank>
std::size_t pick_tails(std::span<const Leaf> leaves, const Rank* ranks, const std::uint32_t* units,
                       Instructions instructions, Tails& tails, Picked& picked) noexcept;

}  // namespace hdicore
