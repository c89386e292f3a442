// pmf/buckets.hpp: large leaves -> masses of runs of atoms, which tell where an end may lie
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "base/types.hpp"
#include "kernels/instructions.hpp"

namespace hdicore {

inline constexpr std::size_t n_buckets = 128;

// The atoms of one output, cut into runs of about equal length.
struct BucketEdges {
    // atoms (n_atoms,) are not empty.
    explicit BucketEdges(std::span<const double> atoms);

    // The bucket that holds a rank. O(1).
    std::size_t bucket_of(rank_t rank) const noexcept;
    // How many of the ranks of a leaf, ascending, lie below each bucket, (n_buckets,).
    template <class Rank, class Count>
    void count_below(std::span<const Rank> ranks, Count* below) const noexcept;

    std::array<rank_t, n_buckets + 1> begin;  // bucket b holds the ranks [begin[b], begin[b + 1])
    std::array<double, n_buckets> lower;      // least atom of bucket b, or of those above it
    std::array<double, n_buckets>
        upper;  // largest atom of buckets up to b; the least if they have none
};

// Where the entries of each leaf lie; the leaves of output o begin at o * n_leaves.
struct BucketCounts {
    std::vector<BucketEdges> edges;  // (n_outputs,)
    // How many lie below each bucket, (n_outputs * n_leaves, n_buckets); 8 bits each if no leaf has
    // more than 255.
    std::variant<std::vector<std::uint8_t>, std::vector<std::uint16_t>> below;
    struct Ends {
        rank_t first;
        rank_t last;
    };
    std::vector<Ends> ends;  // (n_outputs * n_leaves,)

    std::size_t nbytes() const noexcept;
};

using BucketSet = std::array<bool, n_buckets>;

// Runs of buckets, [first, end) each, ascending.
struct BucketRuns {
    struct Run {
        std::size_t first;
        std::size_t end;
    };
    static constexpr std::size_t most = n_buckets / 2;

    std::array<Run, most> runs;
    std::size_t n = 0;
};

// Masses of the buckets in one row's distribution, in units, to within a known error.
class BucketMasses {
  public:
    // Sums up leaves, if any: leaf l is row rows[l] of `below`, each of its entries weighs
    // grains[l], and all ranks lie in [first, last]. O(n_leaves * n_buckets).
    template <class Count>
    void assign(const BucketEdges& edges, const Count* below, std::span<const std::size_t> rows,
                std::span<const double> grains, rank_t first, rank_t last,
                Instructions instructions) noexcept;

    // Adds the buckets that may hold the first atom up to which the mass reaches `units`.
    void mark_reaching(mass_t units, BucketSet& marked) const noexcept;

    // Adds the buckets that may hold an end of an interval of at least `units` that is shortest, or
    // as short up to the tolerance of shortest_interval. O(n_buckets).
    void mark_shortest(mass_t units, BucketSet& marked) const noexcept;

    // Leaves that were summed up; the rest is of use if there are any.
    std::size_t n_trees() const noexcept { return n_trees_; }
    const BucketEdges& edges() const noexcept { return *edges_; }
    // The marked buckets, and what lies between two of them if it holds no more than the share
    // `gap` of all mass.
    void list_runs(const BucketSet& marked, float gap, BucketRuns& found) const noexcept;

  private:
    const BucketEdges* edges_ = nullptr;
    std::size_t n_trees_ = 0;
    float error_ = 0;
    // Mass below each bucket, and of all.
    std::array<float, n_buckets + 1> below_;
};

}  // namespace hdicore
