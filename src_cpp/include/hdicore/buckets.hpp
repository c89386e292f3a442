// hdicore/buckets.hpp: large leaves -> masses of runs of atoms, which tell where an end may lie
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "hdicore/instructions.hpp"
#include "hdicore/types.hpp"

namespace hdicore {

inline constexpr std::size_t n_buckets = 128;

// The atoms of one output, cut into runs of about equal length.
struct BucketEdges {
    // atoms (n_atoms,) are not empty.
    explicit BucketEdges(std::span<const double> atoms);
    // O(1).
    std::size_t bucket_of(rank_t rank) const noexcept;

    std::array<rank_t, n_buckets + 1> begin;  // bucket b holds the ranks [begin[b], begin[b + 1])
    std::array<double, n_buckets> lower;      // least atom of bucket b, or of those above it
    std::array<double, n_buckets> upper;      // largest atom of bucket b, or of those below it
};

// How many entries of each leaf lie below each bucket, (n_outputs * n_leaves, n_buckets); 8 bits
// each if no leaf has more than 255.
struct BucketCounts {
    std::vector<BucketEdges> edges;  // (n_outputs,)
    std::variant<std::vector<std::uint8_t>, std::vector<std::uint16_t>> below;
    // Outermost ranks of each leaf, (n_outputs * n_leaves,).
    struct Ends {
        rank_t first;
        rank_t last;
    };
    std::vector<Ends> ends;

    std::size_t nbytes() const noexcept;
};

using BucketSet = std::array<bool, n_buckets>;

// Masses of the buckets in one row's distribution, in trees, to within a known error.
class BucketMasses {
  public:
    // Sums up leaves: leaf l is row leaves[l] of `below`, each of its entries weighs weights[l] of
    // a tree, and all ranks lie in [first, last]. O(n_leaves * n_buckets).
    template <class Count>
    void assign(const BucketEdges& edges, const Count* below, std::span<const std::size_t> leaves,
                std::span<const float> weights, rank_t first, rank_t last,
                Instructions instructions) noexcept;

    // Adds the buckets that may hold the first atom up to which the mass reaches `units`.
    void mark_reaching(mass_t units, BucketSet& marked) const noexcept;

    // Adds the buckets that may hold an end of an interval of at least `units` that is shortest, or
    // as short up to the tolerance of shortest_interval. O(n_buckets).
    void mark_shortest(mass_t units, BucketSet& marked) const noexcept;

    std::size_t n_trees() const noexcept { return n_trees_; }
    const BucketEdges& edges() const noexcept { return *edges_; }
    float below(std::size_t bucket) const noexcept { return below_[bucket]; }

  private:
    const BucketEdges* edges_ = nullptr;
    std::size_t n_trees_ = 0;
    float error_ = 0;
    alignas(64) std::array<float, n_buckets + 1> below_;
};

}  // namespace hdicore
