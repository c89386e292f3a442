// merge/row_counts.cpp: counts entries by rank in a dense array
// SPDX-License-Identifier: BSD-3-Clause
#include "merge/row_counts.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace hdicore {

// An output has at most as many atoms as there are target vectors.
RowCounts::RowCounts(const LeafIndex& index)
    : index_(index), counts_(index.n_vectors()), of_leaf_(index.n_vectors()) {}

void RowCounts::add_leaf(const EntrySlice& slice, const OutputTargets& targets, rank_t left_out,
                         std::vector<std::int64_t>& counts) const noexcept {
    bool is_out = false;
    for (std::size_t e = slice.begin; e < slice.begin + slice.n; ++e) {
        const rank_t vector = index_.rank(e);
        std::int64_t& n = counts[targets.rank(vector)];
        n += static_cast<std::int64_t>(index_.copies(e));
        if (vector == left_out && !std::exchange(is_out, true)) --n;
    }
}

void RowCounts::find_largest(const OutputTargets& targets, RowSlices slices,
                             rank_t left_out) noexcept {
    for (const EntrySlice& slice : slices) {
        add_leaf(slice, targets, left_out, of_leaf_);
        for (std::size_t e = slice.begin; e < slice.begin + slice.n; ++e) {
            const rank_t rank = targets.rank(index_.rank(e));
            counts_[rank] = std::max(counts_[rank], std::exchange(of_leaf_[rank], 0));
        }
    }
}

double RowCounts::observation(const Pmf& pmf, std::size_t output, std::span<const rank_t> ranks,
                              RowSlices slices, rank_t left_out) noexcept {
    const OutputTargets targets = index_.targets(output);
    if (index_.arrays().pooled) {
        for (const EntrySlice& slice : slices) add_leaf(slice, targets, left_out, counts_);
    } else if (index_.tables().has_ties) {
        find_largest(targets, slices, left_out);
    }
    double smallest = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < ranks.size(); ++k) {
        const auto mass = static_cast<double>(pmf.cumulative[k + 1] - pmf.cumulative[k]);
        const std::int64_t n = std::exchange(counts_[ranks[k]], 0);
        smallest = std::min(smallest, n > 1 ? mass / static_cast<double>(n) : mass);
    }
    return smallest;
}

void RowCounts::count(std::span<const rank_t> ranks, RowSlices slices, rank_t left_out,
                      std::int64_t* counts) noexcept {
    const OutputTargets targets = index_.targets(0);
    for (const EntrySlice& slice : slices) add_leaf(slice, targets, left_out, counts_);
    for (std::size_t k = 0; k < ranks.size(); ++k) {
        counts[k] = std::exchange(counts_[ranks[k]], 0);
    }
}

}  // namespace hdicore
