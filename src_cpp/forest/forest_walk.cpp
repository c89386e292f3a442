// forest/forest_walk.cpp: walks tiles of rows down the trees
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "base/types.hpp"
#include "forest/forest.hpp"

namespace hdicore {
namespace {

// Up to so many, rows are walked one by one.
constexpr std::size_t few_rows = 8;

// Offset of the keys of a node's feature in a tile.
inline std::size_t in_tile(NarrowNode node) noexcept {
    return (node.word & (NarrowNode::max_features - 1) << 3) * (RowTiles::tile_rows / 8);
}
inline std::size_t in_tile(WideNode node) noexcept {
    return std::size_t{node.word >> 1} * RowTiles::tile_rows;
}

// Where a step from `node` leads a row of a tile: a key <= the node's, or a NaN sent left, keeps
// left.
template <bool may_be_nan, class Node>
inline std::uint32_t step(const Node& node, const feature_key* row) noexcept {
    const feature_key x = row[in_tile(node)];
    bool goes_right = x > node.key;
    if constexpr (may_be_nan) goes_right &= !((x == missing_key) & node.nan_left());
    return node.left() + static_cast<std::uint32_t>(goes_right);
}

// Walks the rows of a tile down a tree in lockstep, so that their cache misses overlap. Rows that
// have reached their leaf stay there until all have.
template <bool may_be_nan, class Node>
void walk(const Node* tree, const feature_key* tile,
          std::uint32_t (&at)[RowTiles::tile_rows]) noexcept {
    constexpr int steps_between_checks = 3;
    std::uint32_t moved = 1;
    while (moved != 0) {
        for (int s = 0; s < steps_between_checks; ++s) {
            for (std::size_t k = 0; k < RowTiles::tile_rows; ++k) {
                at[k] = step<may_be_nan>(tree[at[k]], tile + k);
            }
        }
        moved = 0;
        for (std::size_t k = 0; k < RowTiles::tile_rows; ++k) {
            const std::uint32_t next = step<may_be_nan>(tree[at[k]], tile + k);
            moved |= next ^ at[k];
            at[k] = next;
        }
    }
}

}  // namespace

// Few rows leave lanes empty, so each walks down many trees at once instead: a step down each tree
// by turns, so that the next node of one is fetched while the others step. Trees at whose leaf the
// row has arrived drop out.
template <class Node, bool may_be_nan>
void Forest::walk_few(const Array<Node>& nodes, const RowTiles& rows, std::size_t first,
                      std::size_t last, leaf_t* out) const noexcept {
    constexpr std::size_t lanes = 128;
    constexpr int steps_between_checks = 3;
    const Node* trees[lanes];
    std::uint32_t at[lanes];
    leaf_t* leaves[lanes];
    for (std::size_t i = 0; i < rows.n_rows(); ++i) {
        const feature_key* row = rows.tile(0) + i;
        for (std::size_t t = first; t < last; t += lanes) {
            std::size_t n = std::min(lanes, last - t);
            for (std::size_t k = 0; k < n; ++k) {
                trees[k] = nodes.data() + tree_offsets_[t + k];
                at[k] = 0;
                leaves[k] = out + (t - first + k) * RowTiles::tile_rows + i;
            }
            while (n > 0) {
                for (int s = 0; s < steps_between_checks; ++s) {
                    for (std::size_t k = 0; k < n; ++k) {
                        at[k] = step<may_be_nan>(trees[k][at[k]], row);
                        prefetch_line(trees[k] + at[k]);
                    }
                }
                std::size_t n_left = 0;
                for (std::size_t k = 0; k < n; ++k) {
                    const Node node = trees[k][at[k]];
                    const std::uint32_t next = step<may_be_nan>(node, row);
                    const bool moves = next != at[k];
                    *leaves[k] = static_cast<leaf_t>(node.leaf());
                    trees[n_left] = trees[k];
                    at[n_left] = next;
                    leaves[n_left] = leaves[k];
                    prefetch_line(trees[k] + next);
                    n_left += moves;
                }
                n = n_left;
            }
        }
    }
}

template <class Node, bool may_be_nan>
void Forest::walk_all(const Array<Node>& nodes, const RowTiles& rows, std::size_t first,
                      std::size_t last, leaf_t* out) const noexcept {
    for (std::size_t t = first; t < last; ++t) {
        const Node* tree = nodes.data() + tree_offsets_[t];
        for (std::size_t i = 0; i < rows.n_tiles(); ++i) {
            std::uint32_t at[RowTiles::tile_rows] = {};
            walk<may_be_nan>(tree, rows.tile(i), at);
            for (const std::uint32_t node : at) *out++ = static_cast<leaf_t>(tree[node].leaf());
        }
    }
}

void Forest::route(const RowTiles& rows, std::size_t first, std::size_t last, leaf_t* out) const {
    std::visit(
        [&]<class Node>(const Array<Node>& nodes) {
            if (checks_ == Checks::lazily) {
                walk_checked(nodes, rows, first, last, out);
            } else if (rows.n_rows() <= few_rows) {
                std::fill_n(out, (last - first) * RowTiles::tile_rows, 0);
                rows.has_missing() ? walk_few<Node, true>(nodes, rows, first, last, out)
                                   : walk_few<Node, false>(nodes, rows, first, last, out);
            } else {
                rows.has_missing() ? walk_all<Node, true>(nodes, rows, first, last, out)
                                   : walk_all<Node, false>(nodes, rows, first, last, out);
            }
        },
        nodes_);
}

}  // namespace hdicore
