// merge/row_counts.cpp: counts entries by rank in a dense array
// SPDX-License-Identifier: BSD-3-Clause
#include "merge/row_counts.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace hdicore {

template <class Combine>
void RowCounts::combine(RowSlices slices, rank_t left_out, const Combine& combine) noexcept {
    for (const EntrySlice& slice : slices) {
        const std::size_t end = slice.begin + slice.n;
        for (std::size_t e = slice.begin; e < end;) {
            const rank_t rank = index_.rank(e);
            std::int64_t n = rank == left_out ? -1 : 0;
            for (; e < end && index_.rank(e) == rank; ++e) {
                n += static_cast<std::int64_t>(index_.copies(e));
            }
            counts_[rank] = combine(counts_[rank], n);
        }
    }
}

double RowCounts::observation(const Pmf& pmf, std::span<const rank_t> ranks, RowSlices slices,
                              rank_t left_out) noexcept {
    const bool pooled = index_.arrays().pooled;
    if (pooled || index_.tables().has_ties) {
        combine(slices, left_out, [pooled](std::int64_t before, std::int64_t n) {
            return pooled ? before + n : std::max(before, n);
        });
    }
    double smallest = infinity;
    for (std::size_t k = 0; k < ranks.size(); ++k) {
        const auto mass = static_cast<double>(pmf.cumulative[k + 1] - pmf.cumulative[k]);
        const std::int64_t n = std::exchange(counts_[ranks[k]], 0);
        smallest = std::min(smallest, n > 1 ? mass / static_cast<double>(n) : mass);
    }
    return smallest;
}

void RowCounts::count(std::span<const rank_t> ranks, RowSlices slices, rank_t left_out,
                      std::int64_t* counts) noexcept {
    combine(slices, left_out, std::plus());
    for (std::size_t k = 0; k < ranks.size(); ++k) {
        counts[k] = std::exchange(counts_[ranks[k]], 0);
    }
}

}  // namespace hdicore
