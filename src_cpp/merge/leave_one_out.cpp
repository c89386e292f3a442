// merge/leave_one_out.cpp: shares each leaf out again, among the rows that stay
// SPDX-License-Identifier: BSD-3-Clause
#include "merge/leave_one_out.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/fixed_point.hpp"

namespace hdicore {

LeaveOneOut::LeaveOneOut(const LeafIndex& index) : index_(index) {
    if (index.row_weights()) {
        leaf_ranks_.resize(index.tables().max_leaf_size + 1);
        leaf_weights_.resize(index.tables().max_leaf_size + 1);
        leaf_units_.resize(index.tables().max_leaf_size + 1);
    } else {
        parts_.reserve(2 * index.n_trees());
        slices_.reserve(2 * index.n_trees());
    }
}

Pmf LeaveOneOut::merge(Accumulator& accumulator, std::size_t output, RowSlices slices,
                       std::uint32_t row, double* mean) noexcept {
    const RowWeights& weights = *index_.row_weights();
    RankBounds bounds{std::numeric_limits<rank_t>::max(), 0};
    std::size_t n_trees = 0;
    const rank_t left_out = rank(output, row);
    const count_t weight = weights.rows[row];
    std::optional<MeanScale> scale;
    if (mean != nullptr) scale = scale_without(output, slices, row);
    MeanSum sum;
    for (const EntrySlice& slice : slices) {
        std::size_t n = 0;
        for (std::size_t e = slice.begin; e < slice.begin + slice.n; ++e) {
            const count_t all = weights.entries[e];
            const rank_t rank = index_.rank(e);
            leaf_weights_[n] = all - (rank == left_out ? std::min(weight, all) : 0);
            leaf_ranks_[n] = rank;
            n += leaf_weights_[n] > 0;
        }
        if (n == 0) continue;
        bounds.first = std::min(bounds.first, leaf_ranks_[0]);
        bounds.last = std::max(bounds.last, leaf_ranks_[n - 1]);
        ++n_trees;
        apportion({leaf_weights_.data(), n}, index_.shift(), weights.pool, leaf_units_.data());
        for (std::size_t k = 0; k < n; ++k) accumulator.add(leaf_ranks_[k], leaf_units_[k]);
        if (scale) sum += mean_of_rest(*scale, output, n);
    }
    if (scale) {
        const bool holds_one = n_trees > 0 && bounds.first == bounds.last;
        *mean = holds_one ? index_.atoms(output)[bounds.first] : scale->mean(sum);
    }
    if (n_trees == 0) return accumulator.read_empty();
    return accumulator.read(output, n_trees, bounds);
}

MeanSum LeaveOneOut::mean_of_rest(const MeanScale& scale, std::size_t output,
                                  std::size_t n) const noexcept {
    const std::span<const double> atoms = index_.atoms(output);
    MomentSum sum;
    for (std::size_t k = 0; k < n; ++k) {
        sum.add(leaf_units_[k], scale.steps(atoms[leaf_ranks_[k]]));
    }
    return sum.over_tree(index_.shift());
}

MeanScale LeaveOneOut::scale_without(std::size_t output, RowSlices slices,
                                     std::uint32_t row) const noexcept {
    const std::span<const double> atoms = index_.atoms(output);
    const rank_t own = rank(output, row);
    std::size_t first = 0, last = atoms.size() - 1;
    if ((own == first || own == last) && first < last && is_alone(output, row) &&
        !is_left(output, slices, row)) {
        own == first ? ++first : --last;
    }
    return {atoms[first], atoms[last], index_.n_trees(), index_.shift()};
}

bool LeaveOneOut::is_left(std::size_t output, RowSlices slices, std::uint32_t row) const noexcept {
    const RowWeights& weights = *index_.row_weights();
    for (const EntrySlice& slice : slices) {
        for (std::size_t e = slice.begin; e < slice.begin + slice.n; ++e) {
            if (weights.entries[e] > weights.rows[row] && index_.rank(e) == rank(output, row)) {
                return true;
            }
        }
    }
    return false;
}

bool LeaveOneOut::is_alone(std::size_t output, std::uint32_t row) const noexcept {
    const std::size_t n_rows = index_.row_weights()->rows.size();
    for (std::uint32_t other = 0; other < n_rows; ++other) {
        if (other != row && rank(output, other) == rank(output, row)) return false;
    }
    return true;
}

template <class Rank>
std::uint32_t LeaveOneOut::cut_out(const Rank* ranks, const EntrySlice& slice,
                                   rank_t left_out) noexcept {
    const Rank* begin = ranks + slice.begin;
    const Rank* end = begin + slice.n;
    const auto at = static_cast<std::uint32_t>(std::lower_bound(begin, end, left_out) - begin);
    const std::uint32_t n_out = at < slice.n && begin[at] == left_out ? 1 : 0;
    const std::uint32_t n = slice.n - n_out;
    if (n == 0) return 0;
    const std::uint64_t step = EqualUnits::step(n);
    if (at > 0) parts_.push_back({slice.begin, at, 0, step});
    if (at < n) parts_.push_back({slice.begin + at + n_out, n - at, at, step});
    return n;
}

Pmf LeaveOneOut::merge_equal(Accumulator& accumulator, std::size_t output, RowSlices slices,
                             rank_t left_out) noexcept {
    parts_.clear();
    slices_.clear();
    RankBounds bounds{std::numeric_limits<rank_t>::max(), 0};
    std::size_t n_trees = 0;
    bool is_large = false;
    std::visit(
        [&](const auto& ranks) {
            for (const EntrySlice& slice : slices) {
                const std::size_t n_before = parts_.size();
                const std::uint32_t n = cut_out(ranks.data(), slice, left_out);
                if (n == 0) continue;
                ++n_trees;
                is_large |= n > max_tabulated_leaf;
                const std::size_t units = index_.uniform()->begin(n);
                for (std::size_t k = n_before; k < parts_.size(); ++k) {
                    const EqualEntries& part = parts_[k];
                    slices_.push_back({part.begin, units + part.first, part.n, 0});
                }
                const EqualEntries& last = parts_.back();
                bounds.first = std::min<rank_t>(bounds.first, ranks[parts_[n_before].begin]);
                bounds.last = std::max<rank_t>(bounds.last, ranks[last.begin + last.n - 1]);
            }
        },
        index_.arrays().ranks);
    if (n_trees == 0) return accumulator.read_empty();
    if (is_large) {
        accumulator.add_equal(parts_, false);
    } else {
        accumulator.add(slices_, false);
    }
    return accumulator.read(output, n_trees, bounds);
}

}  // namespace hdicore
