// scoring/tile_slices.hpp: the leaves of a tile of rows -> the slices of entries of each row
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>

#include "forest/forest.hpp"
#include "index/leaf_index.hpp"
#include "merge/accumulator.hpp"

namespace hdicore {

// Scratch memory of one thread: 0.4 kB a tree.
class TileSlices {
  public:
    // For up to max_rows rows at once.
    TileSlices(const LeafIndex& index, std::size_t max_rows)
        : index_(index),
          n_trees_(index.n_trees()),
          slices_(std::make_unique_for_overwrite<EntrySlice[]>(
              std::min(max_rows, RowTiles::tile_rows) * n_trees_)) {}

    // Takes n rows, n <= tile_rows and n <= max_rows; leaves[t * stride + k] is the leaf of row k
    // in tree t, or no_leaf. O(n * n_trees). Neighbouring rows share many leaves, which are then in
    // cache. Throws std::invalid_argument at a damaged leaf, if the index is not checked.
    void assign(std::size_t output, const leaf_t* leaves, std::size_t stride, std::size_t n);

    // Moves on to the slices of the same rows in the next output of an index whose outputs begin
    // alike. O(n * n_trees), and touches nothing but the slices.
    void next_output() noexcept;

    // Valid until the next of these calls.
    RowSlices row(std::size_t k) const noexcept {
        const EntrySlice* begin = slices_.get() + k * n_trees_;
        return {begin, static_cast<std::size_t>(ends_[k] - begin)};
    }

  private:
    const LeafIndex& index_;
    std::size_t n_trees_;
    std::unique_ptr<EntrySlice[]> slices_;  // (tile_rows, n_trees) those of row k end at ends_[k]
    std::array<EntrySlice*, RowTiles::tile_rows> ends_;
    std::size_t n_rows_ = 0;
};

}  // namespace hdicore
