// merge/rank_set.hpp: ranks in any order -> the same ranks ascending, each once
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.hpp"
#include "kernels/instructions.hpp"

namespace hdicore {

// A bit for each rank.
class RankSet {
  public:
    // Behind the ranks taken, so many more may be written.
    static constexpr std::size_t slack = 16;

    // Of ranks below n_ranks; empty.
    explicit RankSet(std::size_t n_ranks);

    void insert(rank_t rank) noexcept { words_[rank / 64] |= std::uint64_t{1} << (rank % 64); }

    // Moves the members in [first, last] to `out`, ascending. Returns how many there were.
    // O((last - first) / 64 + members).
    std::size_t take(rank_t first, rank_t last, Instructions instructions, rank_t* out) noexcept;

  private:
    std::vector<std::uint64_t> words_;
    // Words that hold members: their bits and the rank of the first bit.
    std::vector<std::uint64_t> found_;
    std::vector<rank_t> found_ranks_;
};

}  // namespace hdicore
