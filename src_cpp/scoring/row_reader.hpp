// scoring/row_reader.hpp: one thread's way from a block of rows to the leaf slices of each
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/interruption.hpp"
#include "index/leaf_index.hpp"
#include "scoring/leaf_source.hpp"
#include "scoring/tile_slices.hpp"

namespace hdicore {

// The leaf of one row in each tree.
struct RowLeaves {
    const leaf_t* first;  // in tree 0
    std::size_t stride;   // from tree to tree

    leaf_t operator[](std::size_t tree) const noexcept { return first[tree * stride]; }
};

// Scratch memory of one thread.
class RowReader {
  public:
    // For blocks of up to max_rows.
    RowReader(const LeafIndex& index, const LeafSource& source, Interruption& interruption,
              std::size_t max_rows)
        : index_(index),
          source_(source),
          interruption_(interruption),
          rows_between_checks_(rows_of_entries(std::size_t{1} << 20)),
          rows_at_once_(std::min(TileSlices::preferred_rows(index), max_rows)),
          slices_(index, rows_at_once_) {
        source.reserve(max_rows, block_);
    }

    // Calls use(row, output, slices, next, leaves) for each row of [begin, end) and each output;
    // `next` are the slices of the row that follows, or none.
    template <class Use>
    void read(std::size_t begin, std::size_t end, const Use& use) {
        source_.leaves(begin, end, block_, interruption_);
        const std::size_t stride = stride_of(end - begin);
        for (std::size_t first = 0; first < end - begin; first += rows_at_once_) {
            const std::size_t n = std::min(rows_at_once_, end - begin - first);
            for (std::size_t o = 0; o < index_.n_outputs(); ++o) {
                const bool moves_on = o > 0 && index_.tables().outputs_begin_alike;
                if (moves_on) {
                    slices_.next_output(0);
                } else {
                    slices_.assign(o, block_.leaves.data() + first, stride, n);
                }
                for (std::size_t k = 0; k < n; ++k) {
                    if (k % rows_between_checks_ == 0) interruption_.check();
                    if (moves_on && k + 1 < n) slices_.next_output(k + 1);
                    const RowSlices next = k + 1 < n ? slices_.row(k + 1) : RowSlices();
                    use(begin + block_.order[first + k], o, slices_.row(k), next,
                        RowLeaves{block_.leaves.data() + first + k, stride});
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
};

// Throws std::invalid_argument unless leave_out (n_rows,), if given, names training rows of an
// index that kept their weights.
void check_leave_out(const LeafIndex& index, std::span<const std::uint32_t> leave_out,
                     std::size_t n_rows);

}  // namespace hdicore
