// scoring/tile_slices.hpp: the leaves of some rows -> the slices of entries of each row
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
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
    // Rows taken at once. With several outputs so many that what one output reads stays in cache
    // from row to row: their slices are 4 MB. With one output a tile.
    static std::size_t preferred_rows(const LeafIndex& index) noexcept {
        if (index.n_outputs() == 1) return RowTiles::tile_rows;
        const std::size_t n_tiles =
            (std::size_t{1} << 22) / sizeof(EntrySlice) / index.n_trees() / RowTiles::tile_rows;
        return std::max<std::size_t>(n_tiles, 1) * RowTiles::tile_rows;
    }

    // For up to max_rows rows at once.
    TileSlices(const LeafIndex& index, std::size_t max_rows)
        : index_(index),
          n_trees_(index.n_trees()),
          slices_(std::make_unique_for_overwrite<EntrySlice[]>(max_rows * n_trees_)),
          ends_(std::make_unique_for_overwrite<EntrySlice*[]>(max_rows)) {}

    // Takes n <= max_rows rows; leaves[t * stride + k] is the leaf of row k in tree t, or no_leaf,
    // or packed, if `packed` is not null; slices do not tell their leaf then. O(n * n_trees).
    // Neighbouring rows share many leaves, which are then in cache. Throws std::invalid_argument at
    // a damaged leaf, if the index is not checked.
    void assign(std::size_t output, const leaf_t* leaves, std::size_t stride, std::size_t n,
                const PackedLeaves* packed = nullptr);

    // Moves row k on to its slices in the next output of an index whose outputs begin alike.
    // O(n_trees), and touches nothing but the slices.
    void next_output(std::size_t k) noexcept;

    // Valid until the next of these calls.
    RowSlices row(std::size_t k) const noexcept {
        const EntrySlice* begin = slices_.get() + k * n_trees_;
        return {begin, static_cast<std::size_t>(ends_[k] - begin)};
    }

  private:
    const LeafIndex& index_;
    std::size_t n_trees_;
    std::unique_ptr<EntrySlice[]> slices_;  // (max_rows, n_trees) those of row k end at ends_[k]
    std::unique_ptr<EntrySlice*[]> ends_;   // (max_rows,)
};

}  // namespace hdicore
