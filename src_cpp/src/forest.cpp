// forest.cpp: checks and lays out decision trees, and walks rows down them
// SPDX-License-Identifier: BSD-3-Clause
#include "hdicore/forest.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace hdicore {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

[[noreturn]] void refuse_tree(std::size_t tree, const std::string& why) {
    throw std::invalid_argument("tree " + std::to_string(tree) + " " + why);
}

// Largest float32 not above t. For float32 x, x <= t and x <= float_at_most(t) agree.
float float_at_most(double t) noexcept {
    if (t == std::numeric_limits<double>::infinity()) return infinity;
    if (t >= std::numeric_limits<float>::max()) return std::numeric_limits<float>::max();
    if (t < std::numeric_limits<float>::lowest()) return -infinity;
    const auto nearest = static_cast<float>(t);
    return static_cast<double>(nearest) > t ? std::nextafterf(nearest, -infinity) : nearest;
}

void check_tree_offsets(std::span<const offset_t> offsets, std::size_t n_nodes) {
    if (offsets.size() < 2) throw std::invalid_argument("a forest needs at least one tree");
    if (offsets.front() != 0 || offsets.back() != static_cast<offset_t>(n_nodes)) {
        throw std::invalid_argument("tree_offsets must run from 0 to the number of nodes, " +
                                    std::to_string(n_nodes));
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
        throw std::invalid_argument("n_features must lie in [1, 2**31), got " +
                                    std::to_string(n_features));
    }
    return static_cast<std::size_t>(n_features);
}

// Appends tree `t` in breadth-first order. `order` is scratch memory: old node ids, in new order.
void lay_out_tree(const TreeArrays& in, std::size_t t, std::vector<std::uint32_t>& order,
                  std::vector<Node>& nodes, std::vector<std::int32_t>& leaf_nodes) {
    const auto base = static_cast<std::size_t>(in.tree_offsets[t]);
    const auto n = static_cast<std::size_t>(in.tree_offsets[t + 1]) - base;
    std::vector<bool> reached(n, false);
    order.assign(1, 0);
    reached[0] = true;
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
        order.push_back(static_cast<std::uint32_t>(child));
    };

    for (std::size_t i = 0; i < order.size(); ++i) {
        const std::size_t old = order[i];
        const std::int64_t left = in.children_left[base + old];
        const std::int64_t right = in.children_right[base + old];
        if (left == -1 && right == -1) {
            nodes.push_back(
                {infinity, Node::missing_left, static_cast<std::uint32_t>(i), n_leaves});
            leaf_nodes.push_back(static_cast<std::int32_t>(old));
            ++n_leaves;
            continue;
        }
        const std::int64_t feature = in.feature[base + old];
        const double threshold = in.threshold[base + old];
        if (feature < 0 || feature >= in.n_features) {
            refuse_tree(t, "node " + std::to_string(old) + " splits on feature " +
                               std::to_string(feature) + " of " + std::to_string(in.n_features));
        }
        if (std::isnan(threshold)) {
            refuse_tree(t, "node " + std::to_string(old) + " has the threshold NaN");
        }
        const std::uint32_t missing =
            in.missing_go_to_left[base + old] != 0 ? Node::missing_left : 0;
        nodes.push_back({float_at_most(threshold), static_cast<std::uint32_t>(feature) | missing,
                         static_cast<std::uint32_t>(order.size()), 0});
        reach(left, old);
        reach(right, old);
    }
    if (order.size() != n) {
        refuse_tree(t, "has " + std::to_string(n - order.size()) + " nodes that no path reaches");
    }
}

void check_same_length(std::size_t size, std::size_t n_nodes, const char* name) {
    if (size != n_nodes) {
        throw std::invalid_argument(std::string(name) + " must have as many elements as " +
                                    "children_left, " + std::to_string(n_nodes) + ", got " +
                                    std::to_string(size));
    }
}

// Where a step from `node` leads for the value x: x <= threshold or a NaN sent left keeps left.
template <bool may_be_nan>
inline std::uint32_t step(const Node& node, const float* row) noexcept {
    const float x = row[node.feature & ~Node::missing_left];
    bool goes_left = x <= node.threshold;
    if constexpr (may_be_nan) {
        goes_left |= (x != x) & ((node.feature & Node::missing_left) != 0);
    }
    return node.left + static_cast<std::uint32_t>(!goes_left);
}

// Walks up to `lanes` rows down a tree in lockstep, so that their cache misses overlap. Rows that
// have reached their leaf stay there until all have.
constexpr std::size_t lanes = 16;
template <bool may_be_nan>
void walk(const Node* tree, const float* const (&rows)[lanes],
          std::uint32_t (&at)[lanes]) noexcept {
    constexpr int steps_between_checks = 3;
    std::uint32_t moved = 1;
    while (moved != 0) {
        for (int s = 0; s < steps_between_checks; ++s) {
            for (std::size_t k = 0; k < lanes; ++k) at[k] = step<may_be_nan>(tree[at[k]], rows[k]);
        }
        moved = 0;
        for (std::size_t k = 0; k < lanes; ++k) {
            const std::uint32_t next = step<may_be_nan>(tree[at[k]], rows[k]);
            moved |= next ^ at[k];
            at[k] = next;
        }
    }
}

}  // namespace

void RowMatrix::copy_rows(std::size_t begin, std::size_t end, float* out) const {
    const std::size_t first = begin * n_features;
    const std::size_t n = (end - begin) * n_features;
    if (as_float != nullptr) {
        std::copy_n(as_float + first, n, out);
    } else {
        std::transform(as_double + first, as_double + first + n, out, [](double x) {
            // From here on rounding leads to infinity, and the cast itself would be undefined.
            return std::fabs(x) >= 0x1.ffffffp127 ? infinity : static_cast<float>(x);
        });
    }
    bool infinite = false;
    for (std::size_t i = 0; i < n; ++i) infinite |= std::fabs(out[i]) == infinity;
    if (infinite) {
        const auto bad = std::find_if(out, out + n, [](float x) { return std::isinf(x); });
        const std::size_t at = first + static_cast<std::size_t>(bad - out);
        throw std::invalid_argument("X[" + std::to_string(at / n_features) + ", " +
                                    std::to_string(at % n_features) +
                                    "] is infinite or too large for float32");
    }
}

Forest::Forest(const TreeArrays& trees) : n_features_(checked_n_features(trees.n_features)) {
    const std::size_t n_nodes = trees.children_left.size();
    check_same_length(trees.children_right.size(), n_nodes, "children_right");
    check_same_length(trees.feature.size(), n_nodes, "feature");
    check_same_length(trees.threshold.size(), n_nodes, "threshold");
    check_same_length(trees.missing_go_to_left.size(), n_nodes, "missing_go_to_left");
    check_tree_offsets(trees.tree_offsets, n_nodes);

    std::vector<Node> nodes;
    std::vector<std::int32_t> leaf_nodes;
    std::vector<std::uint32_t> order;
    nodes.reserve(n_nodes);
    leaf_nodes.reserve((n_nodes + trees.tree_offsets.size()) / 2);
    for (std::size_t t = 0; t + 1 < trees.tree_offsets.size(); ++t) {
        lay_out_tree(trees, t, order, nodes, leaf_nodes);
    }
    nodes_ = Array(std::move(nodes));
    leaf_nodes_ = Array(std::move(leaf_nodes));
    tree_offsets_ =
        Array(std::vector<offset_t>(trees.tree_offsets.begin(), trees.tree_offsets.end()));
}

Forest::Forest(Array<Node> nodes, Array<offset_t> tree_offsets, Array<std::int32_t> leaf_nodes,
               std::int64_t n_features)
    : nodes_(std::move(nodes)),
      tree_offsets_(std::move(tree_offsets)),
      leaf_nodes_(std::move(leaf_nodes)),
      n_features_(checked_n_features(n_features)) {
    validate();
}

// The breadth-first layout leaves no freedom: the k-th inner node's children are nodes 2k + 1 and
// 2k + 2 and the k-th leaf has number k. So one pass proves each tree whole, finite and in range.
void Forest::validate() const {
    check_tree_offsets(tree_offsets_.view(), nodes_.size());
    std::size_t n_leaves_before = 0;
    for (std::size_t t = 0; t < n_trees(); ++t) {
        const Node* tree = nodes_.data() + tree_offsets_[t];
        const auto n = static_cast<std::uint32_t>(tree_offsets_[t + 1] - tree_offsets_[t]);
        std::uint32_t n_inner = 0;
        std::uint32_t n_leaf = 0;
        for (std::uint32_t i = 0; i < n; ++i) {
            const Node& node = tree[i];
            bool proper;
            if (node.left == i) {
                proper = node.threshold == infinity && node.feature == Node::missing_left &&
                         node.leaf == n_leaf++;
            } else {
                proper = node.left == 2 * n_inner++ + 1 && node.left > i && node.left + 1 < n &&
                         (node.feature & ~Node::missing_left) < n_features_ && node.leaf == 0 &&
                         !std::isnan(node.threshold);
            }
            if (!proper) refuse_tree(t, "is damaged at node " + std::to_string(i));
        }
        if (n_leaf != n_inner + 1) refuse_tree(t, "is damaged: its leaves do not match its splits");
        if (n_leaves_before + n_leaf > leaf_nodes_.size()) {
            throw std::invalid_argument("leaf_nodes has fewer elements than the forest has leaves");
        }
        for (std::uint32_t k = 0; k < n_leaf; ++k) {
            const std::int32_t id = leaf_nodes_[n_leaves_before + k];
            if (id < 0 || static_cast<std::uint32_t>(id) >= n) {
                refuse_tree(t, "has leaf node id " + std::to_string(id) + ", not one of its nodes");
            }
        }
        n_leaves_before += n_leaf;
    }
    if (n_leaves_before != leaf_nodes_.size()) {
        throw std::invalid_argument("leaf_nodes has more elements than the forest has leaves");
    }
}

void Forest::route(const float* rows, std::size_t n_rows, leaf_t* out) const noexcept {
    bool may_be_nan = false;
    for (std::size_t i = 0; i < n_rows * n_features_; ++i) may_be_nan |= rows[i] != rows[i];
    const std::size_t m = n_trees();
    for (std::size_t t = 0; t < m; ++t) {
        const Node* tree = nodes_.data() + tree_offsets_[t];
        for (std::size_t first = 0; first < n_rows; first += lanes) {
            const std::size_t n = std::min(lanes, n_rows - first);
            const float* row[lanes];
            for (std::size_t k = 0; k < lanes; ++k) {
                row[k] = rows + (first + std::min(k, n - 1)) * n_features_;
            }
            std::uint32_t at[lanes] = {};
            may_be_nan ? walk<true>(tree, row, at) : walk<false>(tree, row, at);
            for (std::size_t k = 0; k < n; ++k) {
                out[(first + k) * m + t] = static_cast<leaf_t>(tree[at[k]].leaf);
            }
        }
    }
}

}  // namespace hdicore
