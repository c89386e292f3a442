// merge/output_merge.hpp: masses of target vectors -> the distribution of each output
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "merge/accumulator.hpp"

namespace hdicore {

// For an index of several outputs, whose leaves are merged once by target vector. Scratch memory of
// one thread: 46 bytes for each vector.
class OutputMerge {
  public:
    OutputMerge(const LeafIndex& index, const Kernels& kernels);

    // Takes what was added to the accumulator of target vectors, which is not to be read again
    // before all outputs were. O(vectors).
    void assign(Accumulator& vectors, const Added& added) noexcept;

    // The distribution of one output. O(vectors + atoms / 64).
    Pmf whole(std::size_t output) noexcept;

    // The two tails of it that hold more than 1 - min_share each, 1/2 < min_share <= 1, and a gap
    // between them; nothing if they meet. Leaves must not be pooled, and trees contribute. The
    // same.
    std::optional<PartialPmf> tails(std::size_t output, double min_share) noexcept;

    // Ranks of the atoms read last, if there was no gap.
    std::span<const rank_t> ranks() const noexcept { return accumulator_.ranks(); }

  private:
    static constexpr std::size_t max_bins = 256;

    // Finds the rank of each vector, and the masses of the bins of 2^shift ranks.
    void find_ranks(std::size_t output, int shift) noexcept;
    // Adds the vectors of rank below `low` or at least `high`. Returns the outermost ranks.
    RankBounds add_tails(rank_t low, rank_t high) noexcept;

    const LeafIndex& index_;
    Accumulator accumulator_;  // of the atoms of an output
    std::span<const mass_t> masses_;
    std::size_t n_trees_ = 0;
    std::unique_ptr<std::size_t[]> first_;     // (n_vectors,) where the ranks of a vector begin
    std::unique_ptr<rank_t[]> ranks_;          // (n_vectors,) in the output
    std::unique_ptr<std::uint32_t[]> picked_;  // (n_vectors,) vectors in the tails
    std::array<mass_t, max_bins> bins_;
};

}  // namespace hdicore
