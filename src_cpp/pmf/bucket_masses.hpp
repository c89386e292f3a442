// pmf/bucket_masses.hpp: masses of runs of atoms, which tell where what is asked for may lie
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/fixed_point.hpp"
#include "base/types.hpp"

namespace hdicore {

// Buckets of all atoms, and of leaves so large that each of these is cut further.
inline constexpr std::size_t n_buckets = 128;
inline constexpr std::size_t n_fine_buckets = 1024;
inline constexpr std::size_t fine_per_bucket = n_fine_buckets / n_buckets;

// The atoms of one output, cut into buckets: runs of about equal length.
struct BucketEdges {
    // atoms (n_atoms,) are not empty. Fine buckets are parts of the others.
    explicit BucketEdges(std::span<const double> atoms, std::size_t n = n_buckets);

    // Number of buckets.
    std::size_t size() const noexcept { return lower.size(); }
    // The bucket that holds a rank. O(1).
    std::size_t bucket_of(rank_t rank) const noexcept;
    std::size_t nbytes() const noexcept;

    std::vector<rank_t> begin;  // (n + 1,) bucket b holds the ranks [begin[b], begin[b + 1])
    std::vector<double> lower;  // (n,) smallest atom of bucket b, or of those above it
    // (n,) largest atom of the buckets up to b, or the smallest of all if they have none.
    std::vector<double> upper;
};

using BucketSet = std::array<bool, n_fine_buckets>;

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
// Buckets are those of all atoms at first; then some may be replaced by their fine ones.
class BucketMasses {
  public:
    // Number of buckets that are summed at once.
    static constexpr std::size_t block = 32;

    // Sums n_trees > 0 leaves whose ranks lie in [first, last]: sum(b, sums) writes the mass that
    // the leaves have below each of the buckets b to b + block - 1. O(n_buckets) calls of it.
    template <class Sum>
    void assign(const BucketEdges& edges, std::size_t n_trees, rank_t first, rank_t last,
                const Sum& sum) noexcept {
        n_trees_ = n_trees;
        n_ = n_buckets;
        lower_ = edges.lower.data();
        upper_ = edges.upper.data();
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

    // Replaces the marked buckets, and some beside them, by their fine ones, which `fine` has:
    // sum(f, sums) is as in assign, for the fine buckets f to f + block - 1.
    template <class Sum>
    void refine(const BucketEdges& fine, const BucketSet& marked, const Sum& sum) noexcept {
        constexpr std::size_t at_once = block / fine_per_bucket;
        const std::array<float, n_fine_buckets + 1> coarse = below_;
        n_ = 0;
        for (std::size_t b = 0; b < n_buckets; b += at_once) {
            const auto here = marked.begin() + static_cast<std::ptrdiff_t>(b);
            if (std::find(here, here + at_once, true) != here + at_once) {
                sum(b * fine_per_bucket, below_.data() + n_);
                for (std::size_t k = 0; k < block; ++k) add_fine(fine, b * fine_per_bucket + k, 1);
            } else {
                for (std::size_t k = b; k < b + at_once; ++k) {
                    below_[n_] = coarse[k];
                    add_fine(fine, k * fine_per_bucket, fine_per_bucket);
                }
            }
        }
        below_[n_] = coarse[n_buckets];
        fine_[n_] = n_fine_buckets;
        lower_ = own_lower_.data();
        upper_ = own_upper_.data();
    }

    // Number of buckets.
    std::size_t size() const noexcept { return n_; }
    // After refine: the fine bucket that bucket b begins with.
    std::size_t fine(std::size_t b) const noexcept { return fine_[b]; }

    // As StepFunction::needed.
    mass_t needed(double level) const noexcept {
        return required_units(level, n_trees_, narrow_shift);
    }

    // Marks the buckets that may hold the first atom up to which the mass reaches `units`.
    void mark_reaching(mass_t units, BucketSet& marked) const noexcept;

    // Marks the buckets that may hold an end of an interval of at least `units` that is shortest,
    // or as short up to tie_tolerance. O(n_buckets).
    void mark_shortest(mass_t units, BucketSet& marked) const noexcept;

    // Marks the buckets that may hold an end of any interval of at least `units`: two tails, or
    // all.
    void mark_ends(mass_t units, BucketSet& marked) const noexcept;

    // The marked buckets as runs. Two runs become one if the mass between them is at most the share
    // `max_gap` of all, or there are too many.
    void list_runs(const BucketSet& marked, float max_gap, BucketRuns& runs) const noexcept;

  private:
    // Appends a bucket of n fine ones.
    void add_fine(const BucketEdges& fine, std::size_t first, std::size_t n) noexcept {
        own_lower_[n_] = fine.lower[first];
        own_upper_[n_] = fine.upper[first + n - 1];
        fine_[n_++] = static_cast<std::uint16_t>(first);
    }

    std::size_t n_trees_ = 0;
    std::size_t n_ = 0;
    const double* lower_ = nullptr;  // (n,) as those of BucketEdges
    const double* upper_ = nullptr;
    float error_ = 0;
    // Mass below each bucket, and of all.
    std::array<float, n_fine_buckets + 1> below_;
    // Filled by refine.
    std::array<double, n_fine_buckets> own_lower_;
    std::array<double, n_fine_buckets> own_upper_;
    std::array<std::uint16_t, n_fine_buckets + 1> fine_;
};

}  // namespace hdicore
