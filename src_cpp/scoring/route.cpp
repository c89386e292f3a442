// scoring/route.cpp: routes blocks of rows over threads, and transposes their leaves
// SPDX-License-Identifier: BSD-3-Clause
#include "scoring/route.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "scoring/leaf_source.hpp"
#include "scoring/row_blocks.hpp"

namespace hdicore {
namespace {

// (n_trees, stride) to (n_rows, n_trees), in squares that stay in cache.
void transpose(const leaf_t* in, std::size_t stride, std::size_t n_rows, std::size_t n_trees,
               leaf_t* out) {
    constexpr std::size_t side = 16;
    for (std::size_t i = 0; i < n_rows; i += side) {
        for (std::size_t t = 0; t < n_trees; t += side) {
            for (std::size_t k = i; k < std::min(n_rows, i + side); ++k) {
                for (std::size_t u = t; u < std::min(n_trees, t + side); ++u) {
                    out[k * n_trees + u] = in[u * stride + k];
                }
            }
        }
    }
}

// Leaf numbers, (n_trees, stride), become node ids.
void to_node_ids(const Forest& forest, std::size_t stride, leaf_t* leaves) {
    const std::int32_t* ids = forest.leaf_nodes().data();
    for (std::size_t t = 0; t < forest.n_trees(); ++t) {
        for (std::size_t i = 0; i < stride; ++i) {
            leaf_t& leaf = leaves[t * stride + i];
            leaf = ids[leaf];
        }
        ids += forest.n_leaves(t);
    }
}

}  // namespace

void route_all(const Forest& forest, const RowMatrix& rows, bool node_ids, unsigned n_threads,
               Matrix<leaf_t> out, Interruption& interruption) {
    const RoutedRows source(forest, rows);
    const std::size_t m = forest.n_trees();
    const Execution execution{.n_threads = n_threads, .interruption = interruption};
    const auto make_worker = [&](std::size_t max_rows) {
        const auto block = std::make_shared<RowBlock>();
        source.reserve(max_rows, *block);
        return [&, block](std::size_t begin, std::size_t end) {
            const std::size_t stride = stride_of(end - begin);
            source.route(begin, end, *block, interruption);
            if (node_ids) to_node_ids(forest, stride, block->leaves.data());
            transpose(block->leaves.data(), stride, end - begin, m, out.data() + begin * m);
        };
    };
    for_each_block(rows.n_rows(), m, source.block_rows(), execution, make_worker);
}

void route_trees(const Forest& forest, const RowMatrix& rows, std::size_t first,
                 std::span<const std::uint32_t> order, unsigned n_threads, Matrix<leaf_t> out,
                 Interruption& interruption) {
    const RoutedRows source(forest, rows);
    const Execution execution{.n_threads = n_threads, .interruption = interruption};
    struct Scratch {
        RowTiles tiles;
        std::vector<leaf_t> leaves;  // of one tree
    };
    const auto make_worker = [&](std::size_t max_rows) {
        const auto scratch = std::make_shared<Scratch>();
        scratch->tiles.reserve(rows.n_features(), max_rows);
        scratch->leaves.resize(stride_of(max_rows));
        return [&, scratch](std::size_t begin, std::size_t end) {
            auto& [tiles, leaves] = *scratch;
            const auto chosen = order.empty() ? order : order.subspan(begin, end - begin);
            order.empty() ? tiles.assign(rows, begin, end) : tiles.assign(rows, 0, chosen);
            for (std::size_t k = 0; k < out.rows(); ++k) {
                interruption.check();
                forest.route(tiles, first + k, first + k + 1, leaves.data());
                const std::span<leaf_t> of_tree = out.row(k);
                if (order.empty()) {
                    std::copy_n(leaves.data(), end - begin, of_tree.data() + begin);
                } else {
                    for (std::size_t p = 0; p < chosen.size(); ++p) of_tree[chosen[p]] = leaves[p];
                }
            }
        };
    };
    for_each_block(rows.n_rows(), out.rows(), source.block_rows(), execution, make_worker);
}

}  // namespace hdicore
