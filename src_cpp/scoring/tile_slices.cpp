// scoring/tile_slices.cpp: looks up the entries of some rows, 16 rows at a time, tree by tree
// SPDX-License-Identifier: BSD-3-Clause
#include "scoring/tile_slices.hpp"

#include "base/prefetch.hpp"

namespace hdicore {

void TileSlices::assign(std::size_t output, const leaf_t* leaves, std::size_t stride,
                        std::size_t n) {
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
                if (leaf == no_leaf) continue;
                if (!is_validated) index_.check_leaf(output, t, leaf);
                const std::uint32_t size = leaf_begin[leaf + 1] - leaf_begin[leaf];
                if (size == 0) continue;
                const std::size_t begin = base + leaf_begin[leaf];
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
