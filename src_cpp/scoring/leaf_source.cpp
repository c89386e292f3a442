// scoring/leaf_source.cpp: routes or checks a block of rows, and sorts it by leaf
// SPDX-License-Identifier: BSD-3-Clause
#include "scoring/leaf_source.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/refusal.hpp"

namespace hdicore {
namespace {

// Rows of which the leaves, or features, fit into 32 MB; a tile at least.
std::size_t rows_by_memory(std::size_t n_columns) noexcept {
    return std::max(RowTiles::tile_rows, (std::size_t{1} << 23) / n_columns);
}

// Leaves that are sorted as one.
std::size_t leaves_in_a_bin(std::size_t n_leaves) noexcept {
    return n_leaves / 4096 + 1;
}
std::size_t n_bins(std::size_t n_leaves) noexcept {
    return n_leaves / leaves_in_a_bin(n_leaves) + 2;
}

RowWords keys_of(const RowTiles& tiles, std::size_t n_features) noexcept {
    return {tiles.tile(0), n_features, RowTiles::tile_rows};
}

// Gives the distinct rows their places, sorted by their leaf, leaves[row * step], to about one part
// in 4096.
void sort_by_leaf(const leaf_t* leaves, std::size_t step, std::size_t n_leaves, RowBlock& block) {
    const std::size_t bin_width = leaves_in_a_bin(n_leaves);
    const auto bin = [&](std::uint32_t row) {
        return static_cast<std::size_t>(leaves[row * step] + 1) / bin_width;
    };
    const std::span<const std::uint32_t> rows = block.equal_rows.distinct();
    block.counts.assign(n_bins(n_leaves), 0);
    for (const std::uint32_t row : rows) ++block.counts[bin(row) + 1];
    std::partial_sum(block.counts.begin(), block.counts.end(), block.counts.begin());
    block.places.resize(rows.size());
    for (const std::uint32_t row : rows) block.places[block.counts[bin(row)]++] = row;
    block.equal_rows.list(block.places, block.order, block.begins);
}

// Gives each of n rows a place, in their order.
void keep_order(std::size_t n, RowBlock& block) {
    block.begins.resize(n + 1);
    std::iota(block.begins.begin(), block.begins.end(), 0u);
    block.order.assign(block.begins.begin(), block.begins.end() - 1);
}

// Makes room for so many leaves: to shrink and grow again would clear them.
void make_room(std::size_t n_leaves, RowBlock& block) {
    if (block.leaves.size() < n_leaves) block.leaves.resize(n_leaves);
}

void reserve_rows(std::size_t n_words, std::size_t n, std::size_t n_leaves, RowBlock& block) {
    block.order.reserve(n);
    block.begins.reserve(n + 1);
    block.places.reserve(n);
    block.counts.reserve(n_bins(n_leaves));
    if (n > RowTiles::tile_rows) block.equal_rows.reserve(n_words, n);
}

}  // namespace

RoutedRows::RoutedRows(const Forest& forest, const RowMatrix& rows) : forest_(forest), rows_(rows) {
    if (rows.n_features() != forest.n_features()) {
        refuse("X has " + std::to_string(rows.n_features()) + " features, but the forest expects " +
               std::to_string(forest.n_features()));
    }
}

// Large enough that fetching a tree's nodes is shared by many rows, and as small as that allows, so
// that the rows and their leaves stay in cache and memory stays bounded however many trees there
// are. Of rows that are often equal more are needed for as many places.
std::size_t RoutedRows::block_rows() const {
    const std::size_t by_rows = (std::size_t{1} << 17) / rows_.n_features();
    const std::size_t by_tree = forest_.nbytes() / forest_.n_trees() / 16;
    const std::size_t by_memory = rows_by_memory(forest_.n_trees() + rows_.n_features());
    const std::size_t by_cache = std::clamp<std::size_t>(std::max(by_rows, by_tree), 256, 16384);
    const bool few_places = rows_.n_rows() > by_cache && often_equal();
    return std::min(few_places ? 4 * by_cache : by_cache, by_memory);
}

// Whether one of 32 rows, or more, is equal to one of a thousand before it.
bool RoutedRows::often_equal() const {
    const std::size_t n = std::min<std::size_t>(rows_.n_rows(), 1024);
    RowTiles tiles;
    tiles.assign(rows_, 0, n);
    EqualRows equal_rows;
    equal_rows.reserve(rows_.n_features(), n);
    equal_rows.find(keys_of(tiles, rows_.n_features()), n);
    return 32 * (n - equal_rows.distinct().size()) >= n;
}

void RoutedRows::reserve(std::size_t n, RowBlock& block) const {
    block.leaves.reserve(forest_.n_trees() * stride_of(n));
    block.tiles.reserve(rows_.n_features(), n);
    reserve_rows(rows_.n_features(), n, forest_.n_leaves(0), block);
}

void RoutedRows::leaves(std::size_t begin, std::size_t end, RowBlock& block,
                        Interruption& interruption) const {
    const std::size_t n = end - begin;
    block.tiles.assign(rows_, begin, end);
    if (n > RowTiles::tile_rows) {
        make_room(stride_of(n), block);
        block.equal_rows.find(keys_of(block.tiles, rows_.n_features()), n);
        forest_.route(block.tiles, 0, 1, block.leaves.data());
        sort_by_leaf(block.leaves.data(), 1, forest_.n_leaves(0), block);
        block.tiles.assign(rows_, begin, block.places);
    } else {
        keep_order(n, block);
    }
    make_room(forest_.n_trees() * block.stride(), block);
    route_tiles(block, interruption);
}

void RoutedRows::route(std::size_t begin, std::size_t end, RowBlock& block,
                       Interruption& interruption) const {
    make_room(forest_.n_trees() * stride_of(end - begin), block);
    block.tiles.assign(rows_, begin, end);
    route_tiles(block, interruption);
}

void RoutedRows::route_tiles(RowBlock& block, Interruption& interruption) const {
    const std::size_t stride = stride_of(block.tiles.n_rows());
    // Few rows walk down many trees at once.
    const std::size_t trees_at_once = (std::size_t{1} << 18) / stride + 1;
    for (std::size_t t = 0; t < forest_.n_trees(); t += trees_at_once) {
        interruption.check();
        const std::size_t last = std::min(t + trees_at_once, forest_.n_trees());
        forest_.route(block.tiles, t, last, block.leaves.data() + t * stride);
    }
}

std::size_t GivenLeaves::block_rows() const noexcept {
    // Not 1,024 tiles: leaves of a row that lie a power of two apart want the same lines of cache.
    return std::min(1023 * RowTiles::tile_rows, rows_by_memory(2 * index_.n_trees()));
}

void GivenLeaves::reserve(std::size_t n, RowBlock& block) const {
    block.leaves.reserve(index_.n_trees() * stride_of(n));
    block.given.reserve(index_.n_trees() * n);
    reserve_rows(index_.n_trees(), n, index_.n_leaves(0), block);
}

void GivenLeaves::leaves(std::size_t begin, std::size_t end, RowBlock& block,
                         Interruption& interruption) const {
    interruption.check();
    const std::size_t m = index_.n_trees();
    const std::size_t n = end - begin;
    block.given.assign(leaves_.data() + begin * m, leaves_.data() + end * m);
    const leaf_t* given = block.given.data();
    const offset_t* offsets = index_.arrays().leaf_offsets.data();
    const bool all_exist = !index_.has_leaf_mask();
    for (std::size_t i = 0; i < n; ++i) {
        const leaf_t* row = given + i * m;
        for (std::size_t t = 0; t < m; ++t) {
            const leaf_t leaf = row[t];
            // Below 0 it becomes too large.
            const auto n_leaves = static_cast<std::uint64_t>(offsets[t + 1] - offsets[t]);
            if (static_cast<std::uint64_t>(leaf) < n_leaves && all_exist) continue;
            if (leaf == no_leaf || index_.has_leaf(t, leaf)) continue;
            const std::string why = index_.has_leaf_mask()
                                        ? ", in which a training row lies"
                                        : ", below " + std::to_string(index_.n_leaves(t));
            refuse("leaves[" + std::to_string(begin + i) + ", " + std::to_string(t) +
                   "] must be a leaf of tree " + std::to_string(t) + why + ", or -1, got " +
                   std::to_string(leaf));
        }
    }
    if (n > RowTiles::tile_rows) {
        block.equal_rows.find({reinterpret_cast<const std::uint32_t*>(given), m, 1}, n);
        sort_by_leaf(given, m, index_.n_leaves(0), block);
    } else {
        keep_order(n, block);
    }
    const std::size_t stride = block.stride(), n_places = block.n_places();
    make_room(m * stride, block);
    leaf_t* leaves = block.leaves.data();
    for (std::size_t p = 0; p < n_places; ++p) {
        const leaf_t* row = given + block.order[block.begins[p]] * m;
        for (std::size_t t = 0; t < m; ++t) leaves[t * stride + p] = row[t];
    }
    for (std::size_t t = 0; t < m; ++t) {
        std::fill(leaves + t * stride + n_places, leaves + (t + 1) * stride, no_leaf);
    }
}

}  // namespace hdicore
