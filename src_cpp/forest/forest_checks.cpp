// forest/forest_checks.cpp: checks a forest that comes from outside, whole or node by node
// SPDX-License-Identifier: BSD-3-Clause
#include "forest/forest_checks.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "base/refusal.hpp"
#include "forest/forest.hpp"

namespace hdicore {
namespace {

std::string damaged_node(std::uint32_t node) {
    return "is damaged at node " + std::to_string(node);
}

// Whether node `at` of a tree of n nodes may be its k-th leaf.
template <class Node>
bool is_leaf(const Node& node, std::uint32_t at, std::uint32_t k) {
    return node == Node::at_leaf(at, k);
}

// Whether a node splits on a feature, and has its children among n nodes.
template <class Node>
bool is_split(const Node& node, std::uint32_t n, std::size_t n_features) {
    return node.left() < n - 1 && node.feature() < n_features && node.key < missing_key &&
           node == Node::inner(node.key, node.feature(), node.left(), node.nan_left());
}

// Scratch memory of one thread, for trees of up to n nodes.
struct TreeCheck {
    explicit TreeCheck(std::size_t n) : pending(n / 2 + 2) { reached.reserve(n); }

    std::vector<std::uint32_t> pending;
    std::vector<bool> reached;  // (n_nodes,)
};

// Walks a tree from left to right: the k-th leaf met has the number k, children lie behind their
// parent, and no node is met twice. So one pass proves a tree whole, finite and in range.
template <class Node>
void check_tree(const Node* tree, std::size_t t, std::uint32_t n, std::size_t n_features,
                TreeCheck& check, Interruption& interruption) {
    auto& [pending, reached] = check;
    reached.assign(n, false);
    std::uint32_t n_reached = 1;
    std::uint32_t n_leaves = 0;
    std::uint32_t* top = pending.data();
    *top++ = 0;
    while (top != pending.data()) {
        const std::uint32_t at = *--top;
        const Node& node = tree[at];
        const std::uint32_t left = node.left();
        if (n_reached % 65536 == 1) interruption.check();
        if (left == at && is_leaf(node, at, n_leaves)) {
            ++n_leaves;
        } else if (left > at && is_split(node, n, n_features) && !reached[left] &&
                   !reached[left + 1]) {
            reached[left] = reached[left + 1] = true;
            *top++ = left + 1;
            *top++ = left;
            n_reached += 2;
        } else {
            refuse_tree(t, damaged_node(at));
        }
    }
    if (n_reached != n) refuse_tree(t, "is damaged: it has nodes that no path reaches");
}

}  // namespace

void refuse_tree(std::size_t tree, const std::string& why) {
    refuse("tree " + std::to_string(tree) + " " + why);
}

void check_tree_offsets(std::span<const offset_t> offsets, std::size_t n_nodes) {
    if (offsets.size() < 2) refuse("a forest needs at least one tree");
    if (offsets.front() != 0 || offsets.back() != static_cast<offset_t>(n_nodes)) {
        refuse("tree_offsets must run from 0 to the number of nodes, " + std::to_string(n_nodes));
    }
    for (std::size_t t = 0; t + 1 < offsets.size(); ++t) {
        if (offsets[t + 1] <= offsets[t])
            refuse_tree(t, "has no nodes: tree_offsets must increase");
        if (offsets[t + 1] > offsets.back()) refuse_tree(t, "ends behind the last node");
        if (offsets[t + 1] - offsets[t] > std::numeric_limits<std::int32_t>::max()) {
            refuse_tree(t, "has more than 2**31 - 1 nodes");
        }
    }
}

std::size_t checked_n_features(std::int64_t n_features) {
    if (n_features < 1 || n_features > std::numeric_limits<std::int32_t>::max()) {
        refuse("n_features must lie in [1, 2**31), got " + std::to_string(n_features));
    }
    return static_cast<std::size_t>(n_features);
}

Forest::Forest(Nodes nodes, Array<offset_t> tree_offsets, Array<std::int32_t> leaf_nodes,
               std::int64_t n_features, std::string source, Checks checks, unsigned n_threads,
               Interruption& interruption)
    : nodes_(std::move(nodes)),
      tree_offsets_(std::move(tree_offsets)),
      leaf_nodes_(std::move(leaf_nodes)),
      n_features_(checked_n_features(n_features)),
      checks_(checks),
      source_(std::move(source)) {
    name_source(source_, [&] {
        check_sizes();
        if (checks == Checks::lazily) return;
        std::visit([&](const auto& array) { check_trees(array, n_threads, interruption); }, nodes_);
    });
}

Forest Forest::validated(unsigned n_threads, Interruption& interruption) const {
    return Forest(nodes_, tree_offsets_, leaf_nodes_, static_cast<std::int64_t>(n_features_),
                  source_, Checks::now, n_threads, interruption);
}

void Forest::check_sizes() const {
    check_tree_offsets(tree_offsets_.view(),
                       std::visit([](const auto& array) { return array.size(); }, nodes_));
    std::size_t n_leaves_of_trees = 0;
    for (std::size_t t = 0; t < n_trees(); ++t) n_leaves_of_trees += n_leaves(t);
    if (n_leaves_of_trees != n_leaves()) {
        refuse("leaf_nodes must have " + std::to_string(n_leaves_of_trees) +
               " elements, one for each leaf of the forest, got " + std::to_string(n_leaves()));
    }
}

template <class Node>
void Forest::check_trees(const Array<Node>& nodes, unsigned n_threads,
                         Interruption& interruption) const {
    offset_t largest = 0;
    std::vector<std::size_t> first_leaf(1, 0);
    for (std::size_t t = 0; t < n_trees(); ++t) {
        largest = std::max(largest, tree_offsets_[t + 1] - tree_offsets_[t]);
        first_leaf.push_back(first_leaf[t] + n_leaves(t));
    }
    const auto make_worker = [&]() -> Worker {
        const auto check = std::make_shared<TreeCheck>(static_cast<std::size_t>(largest));
        return [&, check](std::size_t t) {
            const auto n = static_cast<std::uint32_t>(tree_offsets_[t + 1] - tree_offsets_[t]);
            check_tree(nodes.data() + tree_offsets_[t], t, n, n_features_, *check, interruption);
            for (std::size_t k = first_leaf[t]; k < first_leaf[t + 1]; ++k) {
                const std::int32_t id = leaf_nodes_[k];
                if (id >= 0 && static_cast<std::uint32_t>(id) < n) continue;
                refuse_tree(t, "has leaf node id " + std::to_string(id) + ", not one of its nodes");
            }
        };
    };
    parallel_for(n_trees(), n_threads, make_worker, interruption);
}

// Each step leads to a later node of the same tree, so that every walk ends in it.
template <class Node>
leaf_t Forest::checked_leaf(const Array<Node>& nodes, std::size_t tree,
                            const feature_key* row) const {
    const Node* own = nodes.data() + tree_offsets_[tree];
    const auto n = static_cast<std::uint32_t>(tree_offsets_[tree + 1] - tree_offsets_[tree]);
    for (std::uint32_t at = 0;;) {
        const Node node = own[at];
        const std::uint32_t left = node.left();
        if (left == at && node.leaf() < n_leaves(tree) && is_leaf(node, at, node.leaf())) {
            return static_cast<leaf_t>(node.leaf());
        }
        if (left <= at || !is_split(node, n, n_features_)) {
            refuse_tree(tree, damaged_node(at));
        }
        const feature_key x = row[node.feature() * RowTiles::tile_rows];
        const bool goes_left = x <= node.key || (x == missing_key && node.nan_left());
        at = left + static_cast<std::uint32_t>(!goes_left);
    }
}

template <class Node>
void Forest::walk_checked(const Array<Node>& nodes, const RowTiles& rows, std::size_t first,
                          std::size_t last, leaf_t* out) const {
    const std::size_t stride = rows.n_tiles() * RowTiles::tile_rows;
    std::fill_n(out, (last - first) * stride, 0);
    name_source(source_, [&] {
        for (std::size_t t = first; t < last; ++t, out += stride) {
            for (std::size_t i = 0; i < rows.n_rows(); ++i) {
                const feature_key* tile = rows.tile(i / RowTiles::tile_rows);
                out[i] = checked_leaf(nodes, t, tile + i % RowTiles::tile_rows);
            }
        }
    });
}

template void Forest::walk_checked(const Array<NarrowNode>&, const RowTiles&, std::size_t,
                                   std::size_t, leaf_t*) const;
template void Forest::walk_checked(const Array<WideNode>&, const RowTiles&, std::size_t,
                                   std::size_t, leaf_t*) const;

}  // namespace hdicore
