// pmf/bucket_masses.cpp: bounds the mass and width of every window of buckets
// SPDX-License-Identifier: BSD-3-Clause
#include "pmf/bucket_masses.hpp"

#include <cmath>
#include <cstdint>

#include "pmf/hdi.hpp"

namespace hdicore {

BucketEdges::BucketEdges(std::span<const double> atoms, std::size_t n)
    : begin(n + 1), lower(n), upper(n) {
    for (std::size_t b = 0; b <= n; ++b) {
        begin[b] = static_cast<rank_t>(b * atoms.size() / n);
    }
    for (std::size_t b = 0; b < n; ++b) {
        lower[b] = atoms[begin[b]];
        upper[b] = atoms[std::max<rank_t>(begin[b + 1], 1) - 1];
    }
}

std::size_t BucketEdges::bucket_of(rank_t rank) const noexcept {
    // The division that begin was made by may be too low: by one, or more if atoms are few.
    std::size_t b = rank * size() / begin[size()];
    while (begin[b + 1] <= rank) ++b;
    return b;
}

std::size_t BucketEdges::nbytes() const noexcept {
    return begin.size() * sizeof(rank_t) + (lower.size() + upper.size()) * sizeof(double);
}

void BucketMasses::list_runs(const BucketSet& marked, float max_gap,
                             BucketRuns& runs) const noexcept {
    const float max_mass = max_gap * below_[n_];
    runs.n = 0;
    for (std::size_t b = 0; b < n_; ++b) {
        if (!marked[b]) continue;
        if (runs.n == BucketRuns::max_runs ||
            (runs.n > 0 && below_[b] - below_[runs.runs[runs.n - 1].end] <= max_mass)) {
            runs.runs[runs.n - 1].end = b + 1;
        } else {
            runs.runs[runs.n++] = {b, b + 1};
        }
    }
}

// Write B[b] for the exact mass below bucket b and F[b] for below_[b]; |F[b] - B[b]| <= error_. The
// atom lies in the first bucket b with B[b + 1] >= units. Buckets before it have F[b + 1] < units +
// error_, and it has F[b + 1] >= units - error_: it is among those marked.
void BucketMasses::mark_reaching(mass_t units, BucketSet& marked) const noexcept {
    const float mass = static_cast<float>(units);
    std::size_t b = 0;
    while (b + 1 < n_ && below_[b + 1] < mass - error_) ++b;
    do marked[b] = true;
    while (below_[b + 1] < mass + error_ && ++b < n_);
}

// With B, F and error_ as above: such an interval starts in a bucket b with B[b] <= W - units,
// where W is the mass of all, and ends in a bucket e with B[e + 1] >= units. F[b] and F[e + 1]
// differ from these by error_ at most, and a second one is for the rounding of the limits.
void BucketMasses::mark_ends(mass_t units, BucketSet& marked) const noexcept {
    const float mass = static_cast<float>(units);
    const float last_start = below_[n_] - mass + 2 * error_;
    const float first_end = mass - 2 * error_;
    for (std::size_t b = 0; b < n_; ++b) {
        if (below_[b] <= last_start || below_[b + 1] >= first_end) marked[b] = true;
    }
}

// A window that starts in bucket b has a mass between B[b] and B[b + 1] before it. If it holds
// `units`, its end lies in a bucket e with B[e + 1] >= B[b] + units, so that F[e + 1] >= F[b] +
// units - 2 error_; and if B[f + 1] >= B[b] + units, then a window from the first atom of bucket b
// ends in bucket f at the latest, which F[f + 1] >= F[b] + units + 2 error_ proves. The third
// error_ is for the rounding of these sums.
void BucketMasses::mark_shortest(mass_t units, BucketSet& marked) const noexcept {
    const float mass = static_cast<float>(units);
    const float min_mass = mass - 3 * error_;
    const float sure_mass = mass + 3 * error_;
    // A window that starts where bucket b does needs bucket near[b], and none beyond far[b].
    std::array<std::uint16_t, n_fine_buckets + 1> near;
    std::array<std::uint16_t, n_fine_buckets + 1> far;
    std::size_t first = 0;
    while (below_[first + 1] == 0) ++first;
    double shortest = infinity;
    std::size_t end = first;  // of the buckets in which a window may start
    std::size_t n = first;
    for (; end <= n_; ++end) {
        while (n < n_ && below_[n + 1] < below_[end] + min_mass) ++n;
        // Mostly no step: the errors are small beside a bucket.
        std::size_t f = n;
        while (f < n_ && below_[f + 1] < below_[end] + sure_mass) ++f;
        near[end] = static_cast<std::uint16_t>(n);
        far[end] = static_cast<std::uint16_t>(f);
        if (n == n_) break;
        if (f < n_ && end < n_) {
            shortest = std::min(shortest, upper_[f] - lower_[end]);
        }
    }
    end = std::min(end, n_);
    // At least the limit of shortest_interval, whose atoms are some of these.
    const double limit =
        shortest + tie_tolerance * std::max(std::fabs(lower_[0]), std::fabs(upper_[n_ - 1]));
    for (std::size_t b = first; b < end; ++b) {
        if (lower_[near[b]] - upper_[b] > limit) continue;
        marked[b] = true;
        const std::size_t last = std::min<std::size_t>(far[b + 1], n_ - 1);
        for (std::size_t e = near[b]; e <= last && lower_[e] - upper_[b] <= limit; ++e) {
            marked[e] = true;
        }
    }
}

}  // namespace hdicore
