// pmf/bucket_masses.hpp: masses of runs of atoms, which tell where what is asked for may lie
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "base/fixed_point.hpp"
#include "base/types.hpp"

namespace hdicore {

inline constexpr std::size_t n_buckets = 128;

// The atoms of one output, cut into buckets: runs of about equal length.
struct BucketEdges {
    // atoms (n_atoms,) are not empty.
    explicit BucketEdges(std::span<const double> atoms);

    // The bucket that holds a rank. O(1).
    std::size_t bucket_of(rank_t rank) const noexcept;

    std::array<rank_t, n_buckets + 1> begin;  // bucket b holds the ranks [begin[b], begin[b + 1])
    std::array<double, n_buckets> lower;      // smallest atom of bucket b, or of those above it
    // Largest atom of the buckets up to b, or the smallest of all if they have none.
    std::array<double, n_buckets> upper;
};

using BucketSet = std::array<bool, n_buckets>;

// Runs of buckets, [first, end) each, ascending.
struct BucketRuns {
    struct Run {
        std::size_t first;
        std::size_t end;
    };
    static constexpr std::size_t max_runs = n_buckets / 2;

    std::array<Run, max_runs> runs;
    std::size_t n = 0;
};

// Masses of the buckets in one row's distribution, in units of narrow_shift, to within a bound.
class BucketMasses {
  public:
    // Number of buckets that are summed at once.
    static constexpr std::size_t block = 32;

    // Sums n_trees > 0 leaves whose ranks lie in [first, last]: sum(b, sums) writes the mass that
    // the leaves have below each of the buckets b to b + block - 1. O(n_buckets) calls of it.
    template <class Sum>
    void assign(const BucketEdges& edges, std::size_t n_trees, rank_t first, rank_t last,
                const Sum& sum) noexcept {
        edges_ = &edges;
        n_trees_ = n_trees;
        const auto whole = static_cast<float>(n_trees) * static_cast<float>(1u << narrow_shift);
        const std::size_t first_bucket = edges.bucket_of(first);
        const std::size_t last_bucket = edges.bucket_of(last);
        for (std::size_t b = 0; b < n_buckets; b += block) {
            float* sums = below_.data() + b;
            if (b > last_bucket) {
                std::fill_n(sums, block, whole);
            } else if (b + block <= first_bucket) {
                std::fill_n(sums, block, 0.0f);
            } else {
                sum(b, sums);
            }
        }
        below_[n_buckets] = whole;
        // Let u = 2^-24, T trees, W = 2^31 T units in all. A float sum of T products differs from
        // the sum of whole units by at most
        //   2 u W        rounding of T entry masses and T products, relative to each,
        //   0.65 u W (T + 1)  rounding of T additions: after k of them the sum is at most 2^31 k,
        //                or 1.3 times that with the errors so far, as T <= 2^22,
        //   2^-7 u W     less than one unit a tree, by which units are rounded down.
        // 2 u W more are for the rounding of a mass to float and of its sum with the bound.
        error_ = whole * static_cast<float>(n_trees + 8) * 0x1p-24f;
    }

    // As Steps::needed.
    mass_t needed(double level) const noexcept {
        return required_units(level, n_trees_, narrow_shift);
    }

    // Marks the buckets that may hold the first atom up to which the mass reaches `units`.
    void mark_reaching(mass_t units, BucketSet& marked) const noexcept;

    // Marks the buckets that may hold an end of an interval of at least `units` that is shortest,
    // or as short up to tie_tolerance, or up to `reach` >= 1 times as wide. O(n_buckets).
    void mark_shortest(mass_t units, double reach, BucketSet& marked) const noexcept;

    // The marked buckets as runs. Two runs become one if the mass between them is at most the share
    // `max_gap` of all.
    void list_runs(const BucketSet& marked, float max_gap, BucketRuns& runs) const noexcept;

  private:
    const BucketEdges* edges_ = nullptr;
    std::size_t n_trees_ = 0;
    float error_ = 0;
    // Mass below each bucket, and of all.
    std::array<float, n_buckets + 1> below_;
};

}  // namespace hdicore
