// forest/forest_build.cpp: checks decision trees as scikit-learn stores them, and lays them out
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/parallel.hpp"
#include "base/refusal.hpp"
#include "forest/forest.hpp"
#include "forest/forest_checks.hpp"
#include "forest/tree_layout.hpp"

namespace hdicore {
namespace {

constexpr auto too_low = -std::numeric_limits<float>::infinity();

// Largest finite float32 not above t. For finite float32 x, x <= t and x <= float_at_most(t) agree;
// it is finite for t = inf so that NaN, whose key is that of inf, still lies above it.
float float_at_most(double t) noexcept {
    if (t >= std::numeric_limits<float>::max()) return std::numeric_limits<float>::max();
    if (t < std::numeric_limits<float>::lowest()) return too_low;
    const auto nearest = static_cast<float>(t);
    return static_cast<double>(nearest) > t ? std::nextafterf(nearest, too_low) : nearest;
}

// Scratch memory of one thread, for trees of up to n nodes.
template <class Node>
struct TreeWalk {
    explicit TreeWalk(std::size_t n)
        : pending(std::make_unique_for_overwrite<Visit[]>(max_pending(n))),
          nodes(std::make_unique_for_overwrite<Node[]>(n)) {
        reached.reserve(n);
    }
    std::unique_ptr<Visit[]> pending;
    std::unique_ptr<Node[]> nodes;  // (n_nodes,)
    std::vector<bool> reached;      // (n_nodes,)
};

// Checks tree `t` and writes it to walk.nodes, depth first, as scikit-learn mostly has it, and the
// old number of each leaf to `leaf_nodes`.
template <class Node>
void read_tree(const TreeColumns& in, std::size_t t, std::size_t n_features, TreeWalk<Node>& walk,
               std::int32_t* leaf_nodes, Interruption& interruption) {
    const std::size_t n = in.n_nodes;
    auto& [pending, nodes, reached] = walk;
    reached.assign(n, false);
    reached[0] = true;
    std::uint32_t placed = 1;
    std::uint32_t n_leaves = 0;

    const auto reach = [&](std::int64_t child, std::size_t parent) {
        if (child < 0 || child >= static_cast<std::int64_t>(n)) {
            refuse_tree(t, "node " + std::to_string(parent) + " has child " +
                               std::to_string(child) + ", not one of its " + std::to_string(n) +
                               " nodes");
        }
        if (reached[static_cast<std::size_t>(child)]) {
            refuse_tree(t, "reaches node " + std::to_string(child) + " by two ways");
        }
        reached[static_cast<std::size_t>(child)] = true;
        return static_cast<std::size_t>(child);
    };

    Visit* top = pending.get();
    *top++ = {0, 0};
    while (top != pending.get()) {
        const auto [old, now] = *--top;
        const std::int64_t left = in.children_left[old];
        const std::int64_t right = in.children_right[old];
        if (left == -1 && right == -1) {
            leaf_nodes[n_leaves] = static_cast<std::int32_t>(old);
            nodes[now] = Node::at_leaf(now, n_leaves++);
            continue;
        }
        const std::int64_t feature = in.feature[old];
        const double threshold = in.threshold[old];
        if (feature < 0 || feature >= static_cast<std::int64_t>(n_features)) {
            refuse_tree(t, "node " + std::to_string(old) + " splits on feature " +
                               std::to_string(feature) + " of " + std::to_string(n_features));
        }
        if (std::isnan(threshold)) {
            refuse_tree(t, "node " + std::to_string(old) + " has the threshold NaN");
        }
        const std::size_t left_child = reach(left, old);
        const std::size_t right_child = reach(right, old);
        nodes[now] =
            Node::inner(key_of(float_at_most(threshold)), static_cast<std::uint32_t>(feature),
                        placed, in.missing_go_to_left[old] != 0);
        *top++ = {right_child, placed + 1};
        *top++ = {left_child, placed};
        placed += 2;
        if (placed % 65536 == 1) interruption.check();
    }
    if (placed != n) {
        refuse_tree(t, "has " + std::to_string(n - placed) + " nodes that no path reaches");
    }
}

void check_same_length(std::size_t size, std::size_t n_nodes, const char* name) {
    if (size != n_nodes) {
        refuse(std::string(name) + " must have as many elements as " + "children_left, " +
               std::to_string(n_nodes) + ", got " + std::to_string(size));
    }
}

// Nodes of the largest tree.
std::size_t largest_tree(std::span<const TreeColumns> trees) noexcept {
    std::size_t largest = 0;
    for (const TreeColumns& tree : trees) largest = std::max(largest, tree.n_nodes);
    return largest;
}

template <class T>
Column<T> column_of(std::span<const T> nodes, std::size_t begin) noexcept {
    return {reinterpret_cast<const std::byte*>(nodes.data() + begin), sizeof(T)};
}

std::vector<TreeColumns> columns_of(const TreeArrays& trees) {
    const std::size_t n_nodes = trees.children_left.size();
    check_same_length(trees.children_right.size(), n_nodes, "children_right");
    check_same_length(trees.feature.size(), n_nodes, "feature");
    check_same_length(trees.threshold.size(), n_nodes, "threshold");
    check_same_length(trees.missing_go_to_left.size(), n_nodes, "missing_go_to_left");
    check_tree_offsets(trees.tree_offsets, n_nodes);
    std::vector<TreeColumns> columns;
    for (std::size_t t = 0; t + 1 < trees.tree_offsets.size(); ++t) {
        const auto begin = static_cast<std::size_t>(trees.tree_offsets[t]);
        columns.push_back({.children_left = column_of(trees.children_left, begin),
                           .children_right = column_of(trees.children_right, begin),
                           .feature = column_of(trees.feature, begin),
                           .threshold = column_of(trees.threshold, begin),
                           .missing_go_to_left = column_of(trees.missing_go_to_left, begin),
                           .n_nodes = static_cast<std::size_t>(trees.tree_offsets[t + 1]) - begin});
    }
    return columns;
}

std::vector<offset_t> offsets_of(std::span<const TreeColumns> trees) {
    std::vector<offset_t> offsets(1, 0);
    for (const TreeColumns& tree : trees) {
        offsets.push_back(offsets.back() + static_cast<offset_t>(tree.n_nodes));
    }
    check_tree_offsets(offsets, static_cast<std::size_t>(offsets.back()));
    return offsets;
}

}  // namespace

Forest::Forest(const TreeArrays& trees, unsigned n_threads, Interruption& interruption)
    : Forest(columns_of(trees), trees.n_features, n_threads, interruption) {}

Forest::Forest(std::span<const TreeColumns> trees, std::int64_t n_features, unsigned n_threads,
               Interruption& interruption)
    : tree_offsets_(offsets_of(trees)), n_features_(checked_n_features(n_features)) {
    do_fit<NarrowNode>(largest_tree(trees), n_features_)
        ? lay_out<NarrowNode>(trees, n_threads, interruption)
        : lay_out<WideNode>(trees, n_threads, interruption);
}

template <class Node>
void Forest::lay_out(std::span<const TreeColumns> trees, unsigned n_threads,
                     Interruption& interruption) {
    std::vector<std::size_t> first_leaf(1, 0);
    for (std::size_t t = 0; t < n_trees(); ++t) first_leaf.push_back(first_leaf[t] + n_leaves(t));
    std::vector<Node> nodes(static_cast<std::size_t>(tree_offsets_[n_trees()]));
    std::vector<std::int32_t> leaf_nodes(first_leaf.back());
    const auto make_worker = [&]() -> Worker {
        const auto walk = std::make_shared<TreeWalk<Node>>(largest_tree(trees));
        return [&, walk](std::size_t t) {
            read_tree(trees[t], t, n_features_, *walk, leaf_nodes.data() + first_leaf[t],
                      interruption);
            cut_into_runs([&](std::size_t old) { return walk->nodes[old]; }, walk->pending.get(),
                          nodes.data() + tree_offsets_[t]);
        };
    };
    parallel_for(n_trees(), n_threads, make_worker, interruption);
    nodes_ = Array(std::move(nodes), interruption);
    leaf_nodes_ = Array(std::move(leaf_nodes), interruption);
}

std::size_t Forest::nbytes() const noexcept {
    const std::size_t nodes = std::visit([](const auto& array) { return array.nbytes(); }, nodes_);
    return nodes + tree_offsets_.nbytes() + leaf_nodes_.nbytes();
}

}  // namespace hdicore
