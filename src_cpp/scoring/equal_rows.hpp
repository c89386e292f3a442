// scoring/equal_rows.hpp: which rows of a block are equal, so that each is scored once
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hdicore {

// Rows that are equal if their words are: keys, which lie in tiles, or leaves, in tiles of one row.
struct RowWords {
    const std::uint32_t* data;
    std::size_t n_words;    // of a row
    std::size_t tile_rows;  // from word to word of a row

    const std::uint32_t* row(std::size_t i) const noexcept {
        return data + i / tile_rows * tile_rows * n_words + i % tile_rows;
    }
};

// Scratch memory of one thread, kept from block to block.
class EqualRows {
  public:
    // Makes room for n rows, so that finding them allocates nothing.
    void reserve(std::size_t n_words, std::size_t n);

    // Compares n rows, O(n * n_words). Rows that are said to be equal are; some that are equal may
    // be missed, where many have hashes that are nearly alike.
    void find(const RowWords& rows, std::size_t n);

    // Rows to which none before is equal, ascending.
    std::span<const std::uint32_t> distinct() const noexcept { return distinct_; }

    // Lists all rows behind each other: those equal to `distinct` row number p of `places`, a
    // permutation, are order[begins[p] : begins[p + 1]], itself first.
    void list(std::span<const std::uint32_t> places, std::vector<std::uint32_t>& order,
              std::vector<std::uint32_t>& begins);

  private:
    struct Slot {
        std::uint32_t hash;
        std::uint32_t row;
    };

    std::uint32_t hash(const RowWords& rows, std::size_t i) const noexcept;
    std::uint32_t first_equal(const RowWords& rows, std::uint32_t row) noexcept;

    std::vector<std::uint64_t> factors_;  // (n_words,)
    std::vector<Slot> table_;             // distinct rows by their hash
    std::vector<std::uint32_t> firsts_;   // (n,) the distinct row that each equals
    std::vector<std::uint32_t> distinct_;
    std::vector<std::uint32_t> ends_;  // (n,) where the next row equal to it goes
};

}  // namespace hdicore
