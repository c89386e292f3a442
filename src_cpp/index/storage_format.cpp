// index/storage_format.cpp: chooses the arrays of entries, and fills them
// SPDX-License-Identifier: BSD-3-Clause
#include "index/storage_format.hpp"

#include <bit>
#include <limits>
#include <utility>

#include "base/fixed_point.hpp"
#include "index/build_context.hpp"
#include "index/uniform_units.hpp"

namespace hdicore {
namespace {

// Whether the lightest row's share of `total` is less than one unit of narrow_shift.
bool lacks_a_unit(std::span<const count_t> row_weights, count_t total) noexcept {
    count_t lightest = total;
    for (const count_t weight : row_weights) {
        if (weight > 0) lightest = std::min(lightest, weight);
    }
    return total > 0 && floor_units(lightest, total, narrow_shift) == 0;
}

}  // namespace

StorageFormat choose_format(const LeafTotals& totals, const BuildContext& context) {
    const TrainingRows& rows = context.rows;
    StorageFormat format;
    format.pool = rows.pooled ? std::bit_ceil(std::max<count_t>(totals.max_weight, 1)) : 0;
    format.short_ranks = context.has_short_ranks();
    format.wide_units = totals.need_wide_units(rows.n_trees) ||
                        lacks_a_unit(context.row_weights, std::max(totals.max_weight, format.pool));
    format.has_ties = totals.n_counted > totals.n_distinct;
    // Where many rows of a leaf share a target, merging them saves more than units cost.
    format.uniform = context.row_weights.empty() && !context.keep_row_weights &&
                     !format.wide_units && !rows.pooled && totals.max_counted <= max_uniform_leaf &&
                     totals.n_counted <= 2 * totals.n_distinct;
    format.short_copies = totals.max_counted <= std::numeric_limits<std::uint8_t>::max();
    format.keeps_weights = context.keep_row_weights;
    return format;
}

void EntryArrays::allocate(std::size_t n, const StorageFormat& format, Interruption& interruption) {
    const auto grow = [&](auto& values) { grow_in_pieces(values, n, interruption); };
    format.short_ranks ? grow(short_ranks) : grow(ranks);
    if (format.wide_units) grow(wide_units);
    if (!format.wide_units && !format.uniform) grow(narrow_units);
    if (format.has_copies() && format.short_copies) grow(short_copies);
    if (format.has_copies() && !format.short_copies) grow(copies);
    if (format.keeps_weights) grow(weights);
}

void EntryArrays::store(const EntryColumns& entries, offset_t at) {
    const auto copy = [at](const auto& from, auto& to) {
        if (!to.empty()) std::copy(from.begin(), from.end(), to.begin() + at);
    };
    copy(entries.ranks, short_ranks);
    copy(entries.ranks, ranks);
    copy(entries.units, narrow_units);
    copy(entries.units, wide_units);
    copy(entries.copies, short_copies);
    copy(entries.copies, copies);
    copy(entries.weights, weights);
}

void EntryArrays::move_to(LeafIndexArrays& arrays, const StorageFormat& format,
                          Interruption& interruption) {
    const auto take = [&](auto& values) { return Array(std::move(values), interruption); };
    if (format.short_ranks) arrays.ranks = take(short_ranks);
    if (!format.short_ranks) arrays.ranks = take(ranks);
    if (format.wide_units) arrays.units = take(wide_units);
    if (!format.wide_units && !format.uniform) arrays.units = take(narrow_units);
    if (format.has_copies() && format.short_copies) arrays.copies = take(short_copies);
    if (format.has_copies() && !format.short_copies) arrays.copies = take(copies);
}

}  // namespace hdicore
