// scoring/tile_slices.hpp: the leaves of a tile of rows -> the slices of entries of each row
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "forest/forest.hpp"
#include "index/leaf_index.hpp"
#include "merge/accumulator.hpp"
#include "scoring/packed_leaves.hpp"

namespace hdicore {

// Scratch memory of one thread.
class TileSlices {
  public:
    explicit TileSlices(const LeafIndex& index)
        : index_(index),
          n_trees_(index.n_trees()),
          slices_(std::make_unique_for_overwrite<EntrySlice[]>(RowTiles::tile_rows * n_trees_)) {}

    // Takes n <= tile_rows rows; leaves[t * stride + k] is the leaf of row k in tree t, or no_leaf,
    // or packed, if `packed` is not null; slices do not tell their leaf then. O(n * n_trees).
    // Neighbouring rows share many leaves, which are then in cache. Throws std::invalid_argument at
    // a damaged leaf, if the index is not checked.
    void assign(const leaf_t* leaves, std::size_t stride, std::size_t n,
                const PackedLeaves* packed = nullptr);

    // Valid until the next call of assign.
    RowSlices row(std::size_t k) const noexcept {
        const EntrySlice* begin = slices_.get() + k * n_trees_;
        return {begin, static_cast<std::size_t>(ends_[k] - begin)};
    }

  private:
    const LeafIndex& index_;
    std::size_t n_trees_;
    std::unique_ptr<EntrySlice[]> slices_;  // (tile_rows, n_trees) those of row k end at ends_[k]
    std::array<EntrySlice*, RowTiles::tile_rows> ends_;
};

}  // namespace hdicore
