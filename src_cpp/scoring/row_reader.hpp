// scoring/row_reader.hpp: one thread's way from a block of rows to the leaf slices of each
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/interruption.hpp"
#include "index/leaf_index.hpp"
#include "scoring/leaf_source.hpp"
#include "scoring/packed_leaves.hpp"
#include "scoring/tile_slices.hpp"

namespace hdicore {

// Numbers of rows that have the same leaves, one at least.
class SameRows {
  public:
    SameRows(std::size_t begin, std::span<const std::uint32_t> numbers) noexcept
        : begin_(begin), numbers_(numbers) {}

    std::size_t size() const noexcept { return numbers_.size(); }
    std::size_t operator[](std::size_t k) const noexcept { return begin_ + numbers_[k]; }

  private:
    std::size_t begin_;
    std::span<const std::uint32_t> numbers_;  // counted from begin
};

// Scratch memory of one thread.
class RowReader {
  public:
    // For blocks of up to max_rows. Unless it needs leaves, `use` below must not look at
    // EntrySlice::leaf.
    RowReader(const LeafIndex& index, const LeafSource& source, bool needs_leaves,
              Interruption& interruption, std::size_t max_rows)
        : index_(index),
          source_(source),
          interruption_(interruption),
          rows_between_checks_(rows_of_entries(std::size_t{1} << 20)),
          rows_at_once_(std::min(TileSlices::preferred_rows(index), max_rows)),
          slices_(index, rows_at_once_) {
        source.reserve(max_rows, block_);
        // The lanes of a tile are packed whole, which single rows would pay for.
        if (!needs_leaves && max_rows > RowTiles::tile_rows) packed_ = PackedLeaves::of(index);
    }

    // Calls use(rows, output, slices, next) for all rows of [begin, end) and each output, for rows
    // together that are equal or at neighbouring places with the same leaves; `next` are the slices
    // of those that follow, or none.
    template <class Use>
    void read(std::size_t begin, std::size_t end, const Use& use) {
        find_leaves(begin, end);
        read_slices(begin, use);
    }

    // The two parts of read(). The second replaces the leaves of the block.
    const RowBlock& find_leaves(std::size_t begin, std::size_t end) {
        source_.leaves(begin, end, block_, interruption_);
        return block_;
    }
    template <class Use>
    void read_slices(std::size_t begin, const Use& use) {
        const std::size_t stride = block_.stride(), n_trees = index_.n_trees();
        if (packed_) packed_->pack(0, n_trees, {block_.leaves.data(), n_trees * stride});
        for (std::size_t first = 0; first < block_.n_places(); first += rows_at_once_) {
            const std::size_t n = std::min(rows_at_once_, block_.n_places() - first);
            for (std::size_t o = 0; o < index_.n_outputs(); ++o) {
                const bool moves_on = o > 0 && index_.tables().outputs_begin_alike;
                if (moves_on) {
                    slices_.next_output(0);
                } else {
                    slices_.assign(o, block_.leaves.data() + first, stride, n,
                                   packed_ ? &*packed_ : nullptr);
                }
                std::size_t next_check = 0;
                for (std::size_t k = 0, end = 0; k < n; k = end) {
                    if (k >= next_check) {
                        interruption_.check();
                        next_check = k + rows_between_checks_;
                    }
                    const std::size_t place = first + k;
                    end = block_.end_of_same_leaves(place, first + n, n_trees) - first;
                    if (moves_on && end < n) slices_.next_output(end);
                    const RowSlices next = end < n ? slices_.row(end) : RowSlices();
                    use(SameRows(begin, block_.rows_at(place, first + end)), o, slices_.row(k),
                        next);
                }
            }
        }
    }

  private:
    // Rows of a tile that read about so many entries, at least one.
    std::size_t rows_of_entries(std::size_t n) const {
        const double each = index_.entries_per_leaf() * static_cast<double>(index_.n_trees()) + 1;
        const auto rows = static_cast<std::size_t>(static_cast<double>(n) / each);
        return std::clamp<std::size_t>(rows, 1, RowTiles::tile_rows);
    }

    const LeafIndex& index_;
    const LeafSource& source_;
    Interruption& interruption_;
    std::size_t rows_between_checks_;
    std::size_t rows_at_once_;
    RowBlock block_;
    TileSlices slices_;
    std::optional<PackedLeaves> packed_;
};

}  // namespace hdicore
