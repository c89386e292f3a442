// scoring/tile_slices.cpp: looks up the entries of some rows, 16 rows at a time, tree by tree
// SPDX-License-Identifier: BSD-3-Clause
#include "scoring/tile_slices.hpp"

#include "base/types.hpp"

namespace hdicore {

void TileSlices::assign(std::size_t output, const leaf_t* leaves, std::size_t stride, std::size_t n,
                        const PackedLeaves* packed) {
    const bool is_validated = index_.is_validated();
    const UniformUnits* uniform = index_.uniform();
    for (std::size_t k = 0; k < n; ++k) ends_[k] = slices_.get() + k * n_trees_;
    for (std::size_t first = 0; first < n; first += RowTiles::tile_rows) {
        const std::size_t end = std::min(n, first + RowTiles::tile_rows);
        for (std::size_t t = 0; t < n_trees_; ++t) {
            const std::uint32_t* leaf_begin = index_.leaf_begin(output, t);
            const std::size_t base = index_.tree_begin(output, t);
            const std::uint32_t count_row = index_.first_count_row(output, t);
            // Those of the next tile. From tree to tree the stride is too long for the processor to
            // guess.
            prefetch_line(leaves + t * stride + end);
            for (std::size_t k = first; k < end; ++k) {
                const leaf_t leaf = leaves[t * stride + k];
                std::uint32_t begin_in_tree, size;
                if (packed != nullptr) {
                    begin_in_tree = packed->begin(leaf);
                    size = packed->size(leaf);
                } else {
                    if (leaf == no_leaf) continue;
                    if (!is_validated) index_.check_leaf(output, t, leaf);
                    begin_in_tree = leaf_begin[leaf];
                    size = leaf_begin[leaf + 1] - begin_in_tree;
                }
                if (size == 0) continue;
                const std::size_t begin = base + begin_in_tree;
                *ends_[k]++ = {begin, uniform == nullptr ? begin : uniform->begin(size), size,
                               count_row + static_cast<std::uint32_t>(leaf)};
            }
        }
    }
}

void TileSlices::next_output(std::size_t k) noexcept {
    const std::size_t n_entries = index_.n_entries() / index_.n_outputs();
    const auto n_leaves = static_cast<std::uint32_t>(index_.n_leaves());
    for (EntrySlice* slice = slices_.get() + k * n_trees_; slice != ends_[k]; ++slice) {
        slice->begin += n_entries;
        slice->leaf += n_leaves;
    }
}

}  // namespace hdicore
