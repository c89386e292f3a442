// scoring/leaf_source.hpp: rows -> leaves, block by block, from a forest or given by the caller
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interruption.hpp"
#include "base/matrix.hpp"
#include "base/types.hpp"
#include "forest/forest.hpp"
#include "index/leaf_index.hpp"
#include "scoring/equal_rows.hpp"

namespace hdicore {

// Space for the leaves of so many rows in one tree: full tiles.
constexpr std::size_t stride_of(std::size_t n_rows) noexcept {
    return (n_rows + RowTiles::tile_rows - 1) / RowTiles::tile_rows * RowTiles::tile_rows;
}

// A block of rows and their leaves; memory is kept from block to block. Rows that are equal stand
// at one place. Places are in the order of their leaves in the first tree, as neighbours there
// share most of their way and many leaves elsewhere, which are then in cache.
struct RowBlock {
    std::vector<std::uint32_t> order;  // (n_rows,) numbers of the rows, counted from the first
    // (n_places + 1,) the rows at place p are order[begins[p] : begins[p + 1]]
    std::vector<std::uint32_t> begins;
    // (n_trees, stride()) at least: those of a tree stand together; places that fill up the stride
    // have any leaf.
    std::vector<leaf_t> leaves;
    // Scratch memory of sources.
    std::vector<leaf_t> given;  // (n_rows, n_trees) copy of what the caller gave
    RowTiles tiles;
    EqualRows equal_rows;
    std::vector<std::uint32_t> places;  // (n_places,) a row of each
    std::vector<std::uint32_t> counts;  // for sorting

    std::size_t n_places() const noexcept { return begins.size() - 1; }
    std::size_t stride() const noexcept { return stride_of(n_places()); }
    // The rows at places [first, last).
    std::span<const std::uint32_t> rows_at(std::size_t first, std::size_t last) const noexcept {
        return std::span(order).subspan(begins[first], begins[last] - begins[first]);
    }
    // The first place in [place + 1, end] with another leaf in some tree; `end` if there is none.
    // O(n_trees) for each that has the same leaves; others mostly differ in the first few trees.
    std::size_t end_of_same_leaves(std::size_t place, std::size_t end,
                                   std::size_t n_trees) const noexcept {
        const leaf_t* own = leaves.data() + place;
        std::size_t n = 1;
        const auto is_same = [&] {
            for (std::size_t t = 0; t < n_trees; ++t) {
                if (own[t * stride()] != own[t * stride() + n]) return false;
            }
            return true;
        };
        while (place + n < end && is_same()) ++n;
        return place + n;
    }
};

// Where the leaves of the rows to score come from.
class LeafSource {
  public:
    virtual ~LeafSource() = default;
    virtual std::size_t n_rows() const noexcept = 0;
    // Rows that are best taken at once. Throws as leaves() does.
    virtual std::size_t block_rows() const = 0;
    // Makes room for blocks of up to n rows, so that leaves() allocates nothing.
    virtual void reserve(std::size_t n, RowBlock& block) const = 0;
    // The leaves of rows [begin, end) to `block`. Throws std::invalid_argument at rows that cannot
    // be used. Called from many threads.
    virtual void leaves(std::size_t begin, std::size_t end, RowBlock& block,
                        Interruption& interruption) const = 0;
};

// Rows walk down a forest.
class RoutedRows final : public LeafSource {
  public:
    RoutedRows(const Forest& forest, const RowMatrix& rows);
    std::size_t n_rows() const noexcept override { return rows_.n_rows(); }
    std::size_t block_rows() const override;
    void reserve(std::size_t n, RowBlock& block) const override;
    void leaves(std::size_t begin, std::size_t end, RowBlock& block,
                Interruption& interruption) const override;
    // Each row at a place of its own, in the order of the rows, which the block does not tell.
    void route(std::size_t begin, std::size_t end, RowBlock& block,
               Interruption& interruption) const;

  private:
    bool often_equal() const;
    void route_tiles(RowBlock& block, Interruption& interruption) const;

    const Forest& forest_;
    RowMatrix rows_;
};

// Leaves found by the caller; no_leaf where a tree does not contribute. Each block is copied and
// the copy checked, so that writing to the leaves meanwhile changes results at most.
class GivenLeaves final : public LeafSource {
  public:
    // leaves is (n_rows, n_trees).
    GivenLeaves(const LeafIndex& index, Matrix<const leaf_t> leaves)
        : index_(index), leaves_(leaves) {}
    std::size_t n_rows() const noexcept override { return leaves_.rows(); }
    std::size_t block_rows() const noexcept override;
    void reserve(std::size_t n, RowBlock& block) const override;
    void leaves(std::size_t begin, std::size_t end, RowBlock& block,
                Interruption& interruption) const override;

  private:
    const LeafIndex& index_;
    Matrix<const leaf_t> leaves_;
};

}  // namespace hdicore
