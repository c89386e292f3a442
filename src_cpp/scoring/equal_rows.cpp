// scoring/equal_rows.cpp: a table of rows by their hash, which is asked for each row
// SPDX-License-Identifier: BSD-3-Clause
#include "scoring/equal_rows.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <random>

namespace hdicore {
namespace {

constexpr std::uint32_t no_row = std::numeric_limits<std::uint32_t>::max();

// Slots that are looked at for a row. Rows can be made whose hashes are alike: a bound keeps them
// from taking longer than to be scored.
constexpr std::size_t max_slots = 8;

// At most half of the slots are taken.
std::size_t n_slots(std::size_t n_rows) noexcept {
    return std::bit_ceil(2 * n_rows);
}

bool are_equal(const RowWords& rows, std::size_t a, std::size_t b) noexcept {
    const std::uint32_t* of_a = rows.row(a);
    const std::uint32_t* of_b = rows.row(b);
    for (std::size_t w = 0; w < rows.n_words; ++w) {
        if (of_a[w * rows.tile_rows] != of_b[w * rows.tile_rows]) return false;
    }
    return true;
}

}  // namespace

void EqualRows::reserve(std::size_t n_words, std::size_t n) {
    factors_.resize(n_words);
    std::ranges::generate(factors_, std::mt19937_64());
    table_.reserve(n_slots(n));
    firsts_.reserve(n);
    distinct_.reserve(n);
    ends_.reserve(n);
}

// Words times random numbers: two rows that differ have the same upper half of the sum by a chance
// of 2^-32, whatever it is in which they differ.
std::uint32_t EqualRows::hash(const RowWords& rows, std::size_t i) const noexcept {
    const std::uint32_t* words = rows.row(i);
    std::uint64_t sum = 0;
    for (std::size_t w = 0; w < rows.n_words; ++w) sum += words[w * rows.tile_rows] * factors_[w];
    return static_cast<std::uint32_t>(sum >> 32);
}

std::uint32_t EqualRows::first_equal(const RowWords& rows, std::uint32_t row) noexcept {
    const std::uint32_t own = hash(rows, row);
    for (std::size_t k = 0; k < max_slots; ++k) {
        Slot& slot = table_[(own + k) & (table_.size() - 1)];
        if (slot.row == no_row) {
            slot = {own, row};
            return row;
        }
        if (slot.hash == own && are_equal(rows, slot.row, row)) return slot.row;
    }
    return row;
}

void EqualRows::find(const RowWords& rows, std::size_t n) {
    table_.assign(n_slots(n), {0, no_row});
    firsts_.resize(n);
    distinct_.clear();
    for (std::uint32_t i = 0; i < n; ++i) {
        firsts_[i] = first_equal(rows, i);
        if (firsts_[i] == i) distinct_.push_back(i);
    }
}

void EqualRows::list(std::span<const std::uint32_t> places, std::vector<std::uint32_t>& order,
                     std::vector<std::uint32_t>& begins) {
    ends_.assign(firsts_.size(), 0);
    for (const std::uint32_t first : firsts_) ++ends_[first];
    begins.assign(1, 0);
    for (const std::uint32_t row : places) {
        begins.push_back(begins.back() + ends_[row]);
        ends_[row] = begins.end()[-2];
    }
    order.resize(firsts_.size());
    for (std::uint32_t i = 0; i < firsts_.size(); ++i) order[ends_[firsts_[i]]++] = i;
}

}  // namespace hdicore
