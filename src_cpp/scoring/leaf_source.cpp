// scoring/leaf_source.cpp: routes or checks a block of rows, and sorts it by leaf
// SPDX-License-Identifier: BSD-3-Clause
#include "scoring/leaf_source.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

namespace hdicore {
namespace {

// Rows of which the leaves, or features, fit into 32 MB; a tile at least.
std::size_t rows_by_memory(std::size_t n_columns) noexcept {
    return std::max(RowTiles::tile_rows, (std::size_t{1} << 23) / n_columns);
}

// Leaves that are sorted as one.
std::size_t leaves_at_a_place(std::size_t n_leaves) noexcept {
    return n_leaves / 4096 + 1;
}
std::size_t n_places(std::size_t n_leaves) noexcept {
    return n_leaves / leaves_at_a_place(n_leaves) + 2;
}

// Sorts n rows by their leaf, leaves[i * step], to about one part in 4096.
void sort_by_leaf(const leaf_t* leaves, std::size_t step, std::size_t n, std::size_t n_leaves,
                  RowBlock& block) {
    const std::size_t bin_width = leaves_at_a_place(n_leaves);
    const auto place = [&](std::size_t i) {
        return static_cast<std::size_t>(leaves[i * step] + 1) / bin_width;
    };
    block.counts.assign(n_places(n_leaves), 0);
    for (std::size_t i = 0; i < n; ++i) ++block.counts[place(i) + 1];
    std::partial_sum(block.counts.begin(), block.counts.end(), block.counts.begin());
    block.order.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
        block.order[block.counts[place(i)]++] = static_cast<std::uint32_t>(i);
    }
}

}  // namespace

RoutedRows::RoutedRows(const Forest& forest, const RowMatrix& rows) : forest_(forest), rows_(rows) {
    if (rows.n_features() != forest.n_features()) {
        throw std::invalid_argument("X has " + std::to_string(rows.n_features()) +
                                    " features, but the forest expects " +
                                    std::to_string(forest.n_features()));
    }
}

// Large enough that fetching a tree's nodes is shared by many rows, and as small as that allows, so
// that the rows and their leaves stay in cache and memory stays bounded however many trees there
// are.
std::size_t RoutedRows::block_rows() const noexcept {
    const std::size_t by_rows = (std::size_t{1} << 17) / rows_.n_features();
    const std::size_t by_tree = forest_.nbytes() / forest_.n_trees() / 16;
    const std::size_t by_memory = rows_by_memory(forest_.n_trees() + rows_.n_features());
    const std::size_t by_cache = std::clamp<std::size_t>(std::max(by_rows, by_tree), 256, 16384);
    return std::min(by_cache, by_memory);
}

void RoutedRows::reserve(std::size_t n, RowBlock& block) const {
    block.leaves.reserve(forest_.n_trees() * stride_of(n));
    block.order.reserve(n);
    block.counts.reserve(n_places(forest_.n_leaves(0)));
    block.tiles.reserve(rows_.n_features(), n);
}

void RoutedRows::leaves(std::size_t begin, std::size_t end, RowBlock& block,
                        Interruption& interruption) const {
    const std::size_t n = end - begin;
    block.leaves.resize(forest_.n_trees() * stride_of(n));
    block.tiles.assign(rows_, begin, end);
    if (n > RowTiles::tile_rows) {
        forest_.route(block.tiles, 0, 1, block.leaves.data());
        sort_by_leaf(block.leaves.data(), 1, n, forest_.n_leaves(0), block);
        block.tiles.assign(rows_, begin, block.order);
    } else {
        block.order.resize(n);
        std::iota(block.order.begin(), block.order.end(), 0u);
    }
    route_tiles(block, interruption);
}

void RoutedRows::route(std::size_t begin, std::size_t end, RowBlock& block,
                       Interruption& interruption) const {
    block.leaves.resize(forest_.n_trees() * stride_of(end - begin));
    block.tiles.assign(rows_, begin, end);
    route_tiles(block, interruption);
}

void RoutedRows::route_tiles(RowBlock& block, Interruption& interruption) const {
    const std::size_t stride = stride_of(block.tiles.n_rows());
    const std::size_t trees_at_once = (std::size_t{1} << 18) / stride + 1;
    for (std::size_t t = 0; t < forest_.n_trees(); t += trees_at_once) {
        interruption.check();
        forest_.route(block.tiles, t, std::min(t + trees_at_once, forest_.n_trees()),
                      block.leaves.data() + t * stride);
    }
}

std::size_t GivenLeaves::block_rows() const noexcept {
    return std::min<std::size_t>(1024, rows_by_memory(index_.n_trees()));
}

void GivenLeaves::reserve(std::size_t n, RowBlock& block) const {
    block.leaves.reserve(index_.n_trees() * stride_of(n));
    block.given.reserve(index_.n_trees() * n);
    block.order.reserve(n);
    block.counts.reserve(n_places(index_.n_leaves(0)));
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
            throw std::invalid_argument("leaves[" + std::to_string(begin + i) + ", " +
                                        std::to_string(t) + "] must be a leaf of tree " +
                                        std::to_string(t) + why + ", or -1, got " +
                                        std::to_string(leaf));
        }
    }
    sort_by_leaf(given, m, n, index_.n_leaves(0), block);
    const std::size_t stride = stride_of(n);
    block.leaves.resize(m * stride);
    for (std::size_t p = 0; p < stride; ++p) {
        const leaf_t* row = given + block.order[std::min(p, n - 1)] * m;
        leaf_t* leaves = block.leaves.data() + p;
        for (std::size_t t = 0; t < m; ++t) leaves[t * stride] = row[t];
    }
}

}  // namespace hdicore
