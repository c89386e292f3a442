// pmf/buckets.cpp: sums up bucket counts, and bounds the mass and width of every window of buckets
// SPDX-License-Identifier: BSD-3-Clause
#include "pmf/buckets.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/shares.hpp"

#ifdef HDICORE_AVX512
#include <immintrin.h>
#endif

namespace hdicore {
namespace {

constexpr auto whole_tree = static_cast<float>(mass_t{1} << narrow_shift);

// Buckets that are summed up at once.
constexpr std::size_t block = 32;

template <class Count>
void sum_portably(const Count* below, std::span<const std::size_t> rows,
                  std::span<const double> grains, float* sums) noexcept {
    std::fill_n(sums, block, 0.0f);
    for (std::size_t l = 0; l < rows.size(); ++l) {
        const Count* counts = below + rows[l] * n_buckets;
        const auto grain = static_cast<float>(grains[l]);
        for (std::size_t b = 0; b < block; ++b) {
            sums[b] += static_cast<float>(counts[b]) * grain;
        }
    }
}

#ifdef HDICORE_AVX512
HDICORE_TARGET_AVX512 inline __m512 load(const std::uint8_t* from) noexcept {
    return _mm512_maskz_cvtepi32_ps(
        0xffff, _mm512_maskz_cvtepu8_epi32(
                    0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
HDICORE_TARGET_AVX512 inline __m512 load(const std::uint16_t* from) noexcept {
    return _mm512_maskz_cvtepi32_ps(
        0xffff, _mm512_maskz_cvtepu16_epi32(
                    0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
}

template <class Count>
HDICORE_TARGET_AVX512 void sum_with_avx512(const Count* below, std::span<const std::size_t> rows,
                                           std::span<const double> grains, float* sums) noexcept {
    constexpr std::size_t lanes = 16;
    constexpr std::size_t n_parts = block / lanes;
    __m512 parts[n_parts];
    for (__m512& part : parts) part = _mm512_setzero_ps();
    for (std::size_t l = 0; l < rows.size(); ++l) {
        const Count* counts = below + rows[l] * n_buckets;
        const __m512 grain = _mm512_set1_ps(static_cast<float>(grains[l]));
        for (std::size_t k = 0; k < n_parts; ++k) {
            parts[k] = _mm512_fmadd_ps(load(counts + k * lanes), grain, parts[k]);
        }
    }
    for (std::size_t k = 0; k < n_parts; ++k) {
        _mm512_storeu_ps(sums + k * lanes, parts[k]);
    }
}
#endif

}  // namespace

BucketEdges::BucketEdges(std::span<const double> atoms) {
    for (std::size_t b = 0; b <= n_buckets; ++b) {
        begin[b] = static_cast<rank_t>(b * atoms.size() / n_buckets);
    }
    for (std::size_t b = 0; b < n_buckets; ++b) {
        lower[b] = atoms[begin[b]];
        upper[b] = atoms[std::max<rank_t>(begin[b + 1], 1) - 1];
    }
}

std::size_t BucketEdges::bucket_of(rank_t rank) const noexcept {
    // The division that begin was made by may be too low: by one, or more if atoms are few.
    std::size_t b = rank * n_buckets / begin[n_buckets];
    while (begin[b + 1] <= rank) ++b;
    return b;
}

template <class Rank, class Count>
void BucketEdges::count_below(std::span<const Rank> ranks, Count* below) const noexcept {
    std::size_t b = 0;
    for (std::size_t e = 0; e < ranks.size(); ++e) {
        while (begin[b] <= ranks[e]) below[b++] = static_cast<Count>(e);
    }
    std::fill(below + b, below + n_buckets, static_cast<Count>(ranks.size()));
}

std::size_t BucketCounts::nbytes() const noexcept {
    return edges.size() * sizeof(BucketEdges) + ends.size() * sizeof(Ends) +
           std::visit([](const auto& counts) { return counts.size() * sizeof(counts[0]); }, below);
}

template <class Count>
void BucketMasses::assign(const BucketEdges& edges, const Count* below,
                          std::span<const std::size_t> rows, std::span<const double> grains,
                          rank_t first, rank_t last,
                          [[maybe_unused]] Instructions instructions) noexcept {
    edges_ = &edges;
    n_trees_ = rows.size();
    if (rows.empty()) return;
    const float whole = static_cast<float>(n_trees_) * whole_tree;
    const std::size_t first_bucket = edges.bucket_of(first);
    const std::size_t last_bucket = edges.bucket_of(last);
    for (std::size_t b = 0; b < n_buckets; b += block) {
        float* sums = below_.data() + b;
        if (b > last_bucket) {
            std::fill_n(sums, block, whole);
        } else if (b + block <= first_bucket) {
            std::fill_n(sums, block, 0.0f);
#ifdef HDICORE_AVX512
        } else if (instructions == Instructions::avx512) {
            sum_with_avx512(below + b, rows, grains, sums);
#endif
        } else {
            sum_portably(below + b, rows, grains, sums);
        }
    }
    below_[n_buckets] = whole;
    // Each of n_trees additions may be off by half a unit in the last place of the sum; the rest is
    // for what is rounded before and after, and for the units.
    error_ = whole * static_cast<float>(n_trees_ + 8) * 0x1p-24f;
}

void BucketMasses::list_runs(const BucketSet& marked, float gap, BucketRuns& found) const noexcept {
    const float most = gap * below_[n_buckets];
    found.n = 0;
    for (std::size_t b = 0; b < n_buckets; ++b) {
        if (!marked[b]) continue;
        if (found.n > 0 && below_[b] - below_[found.runs[found.n - 1].end] <= most) {
            found.runs[found.n - 1].end = b + 1;
        } else {
            found.runs[found.n++] = {b, b + 1};
        }
    }
}

void BucketMasses::mark_reaching(mass_t units, BucketSet& marked) const noexcept {
    const float mass = static_cast<float>(units);
    std::size_t b = 0;
    while (b + 1 < n_buckets && below_[b + 1] < mass - error_) ++b;
    do marked[b] = true;
    while (below_[b + 1] < mass + error_ && ++b < n_buckets);
}

void BucketMasses::mark_shortest(mass_t units, BucketSet& marked) const noexcept {
    const std::array<double, n_buckets>& lower = edges_->lower;
    const std::array<double, n_buckets>& upper = edges_->upper;
    const float mass = static_cast<float>(units);
    const float least = mass - 3 * error_;
    const float surely = mass + 3 * error_;
    // A window that begins where bucket b does needs bucket near[b], and none beyond far[b].
    std::array<std::uint8_t, n_buckets + 1> near;
    std::array<std::uint8_t, n_buckets + 1> far;
    std::size_t first = 0;
    while (below_[first + 1] == 0) ++first;
    double shortest = std::numeric_limits<double>::infinity();
    std::size_t end = first;  // of the buckets in which a window may begin
    std::size_t n = first;
    for (; end <= n_buckets; ++end) {
        while (n < n_buckets && below_[n + 1] < below_[end] + least) ++n;
        // Mostly none: the errors are small beside a bucket.
        std::size_t f = n;
        while (f < n_buckets && below_[f + 1] < below_[end] + surely) ++f;
        near[end] = static_cast<std::uint8_t>(n);
        far[end] = static_cast<std::uint8_t>(f);
        if (n == n_buckets) break;
        if (f < n_buckets && end < n_buckets) {
            shortest = std::min(shortest, upper[f] - lower[end]);
        }
    }
    end = std::min(end, n_buckets);
    const double limit =
        shortest + 0x1p-48 * std::max(std::fabs(lower[0]), std::fabs(upper[n_buckets - 1]));
    for (std::size_t b = first; b < end; ++b) {
        if (lower[near[b]] - upper[b] > limit) continue;
        marked[b] = true;
        const std::size_t last = std::min<std::size_t>(far[b + 1], n_buckets - 1);
        for (std::size_t e = near[b]; e <= last && lower[e] - upper[b] <= limit; ++e) {
            marked[e] = true;
        }
    }
}

template void BucketEdges::count_below(std::span<const std::uint16_t>,
                                       std::uint8_t*) const noexcept;
template void BucketEdges::count_below(std::span<const std::uint16_t>,
                                       std::uint16_t*) const noexcept;
template void BucketEdges::count_below(std::span<const rank_t>, std::uint8_t*) const noexcept;
template void BucketEdges::count_below(std::span<const rank_t>, std::uint16_t*) const noexcept;
template void BucketMasses::assign(const BucketEdges&, const std::uint8_t*,
                                   std::span<const std::size_t>, std::span<const double>, rank_t,
                                   rank_t, Instructions) noexcept;
template void BucketMasses::assign(const BucketEdges&, const std::uint16_t*,
                                   std::span<const std::size_t>, std::span<const double>, rank_t,
                                   rank_t, Instructions) noexcept;

}  // namespace hdicore
