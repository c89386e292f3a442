// forest/tree_layout.hpp: puts the nodes of a tree in the order that walking is fastest in
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hdicore {

// Four whole levels, and four cache lines of narrow nodes.
inline constexpr std::size_t pairs_of_run = 15;

// A node of a tree to visit, and where it goes in the new layout.
struct Visit {
    std::size_t old;
    std::uint32_t now;
};

// Visits that may be pending at once in a tree of n nodes: each split visited, of which there are
// less than n / 2, adds one.
inline constexpr std::size_t max_pending(std::size_t n_nodes) noexcept {
    return n_nodes / 2 + 2;
}

// Writes a tree to `nodes`, in the order described at NarrowNode. `node_at(old)` is the node that
// is number `old` so far; a leaf is its own left child. `pending` has room for max_pending().
template <class Node, class NodeAt>
void cut_into_runs(const NodeAt& node_at, Visit* pending, Node* nodes) {
    std::uint32_t placed = 1;
    Visit* top = pending;
    *top++ = {0, 0};
    while (top != pending) {
        std::array<Visit, 2 * pairs_of_run + 1> run;
        run[0] = *--top;
        std::size_t next = 0;
        std::size_t end = 1;
        while (next < end && end < run.size()) {
            const auto [old, now] = run[next++];
            const auto node = node_at(old);
            if (node.left() == old) {
                nodes[now] = Node::at_leaf(now, node.leaf());
                continue;
            }
            nodes[now] = Node::inner(node.key, node.feature(), placed, node.nan_left());
            run[end++] = {node.left(), placed};
            run[end++] = {node.left() + 1, placed + 1};
            placed += 2;
        }
        while (end > next) *top++ = run[--end];
    }
}

}  // namespace hdicore
