// merge/rank_set.hpp: ranks in any order -> the same ranks ascending, each once
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.hpp"
#include "kernels/kernels.hpp"

namespace hdicore {

// A bit for each rank.
class RankSet {
  public:
    // So many elements may be written behind the ranks taken.
    static constexpr std::size_t slack = 16;

    // Of ranks below n_ranks; empty.
    explicit RankSet(std::size_t n_ranks)
        : words_((n_ranks + 63) / 64, 0), nonzero_(words_.size() + 8), bases_(words_.size() + 8) {}

    void insert(rank_t rank) noexcept { words_[rank / 64] |= std::uint64_t{1} << (rank % 64); }

    // Moves the members in [first, last] to `out`, ascending. Returns how many there were.
    // O((last - first) / 64 + members).
    std::size_t take(rank_t first, rank_t last, const Kernels& kernels, rank_t* out) noexcept {
        const std::size_t begin = first / 64;
        const std::size_t end = last / 64 + 1;
        // Members outside stay in the set.
        const std::uint64_t below = words_[begin] & ((std::uint64_t{1} << (first % 64)) - 1);
        const std::uint64_t above = words_[end - 1] & (~std::uint64_t{1} << (last % 64));
        words_[begin] &= ~below;
        words_[end - 1] &= ~above;
        const std::size_t n =
            kernels.take_ranks(words_.data(), begin, end, nonzero_.data(), bases_.data(), out);
        words_[begin] |= below;
        words_[end - 1] |= above;
        return n;
    }

  private:
    std::vector<std::uint64_t> words_;
    // Scratch memory of the kernel: words that hold members, and the rank of their first bit.
    std::vector<std::uint64_t> nonzero_;
    std::vector<rank_t> bases_;
};

}  // namespace hdicore
