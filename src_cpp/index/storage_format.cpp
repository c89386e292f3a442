// index/storage_format.cpp: fills the arrays of entries that a format says
// SPDX-License-Identifier: BSD-3-Clause
#include "index/storage_format.hpp"

#include <algorithm>
#include <utility>

namespace hdicore {
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
