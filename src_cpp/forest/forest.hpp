// forest/forest.hpp: rows -> leaves; a forest's decision nodes, laid out for walking
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "base/interruption.hpp"
#include "base/lazily_checked.hpp"
#include "base/types.hpp"
#include "forest/nodes.hpp"
#include "forest/row_tiles.hpp"

namespace hdicore {

// Decision trees as scikit-learn stores them, one tree after the other. Nodes of tree t are
// [tree_offsets[t], tree_offsets[t + 1]); its first node is the root; children count from it.
struct TreeArrays {
    std::span<const std::int64_t> children_left;       // (n_nodes,) -1 marks a leaf
    std::span<const std::int64_t> children_right;      // (n_nodes,) -1 marks a leaf
    std::span<const std::int64_t> feature;             // (n_nodes,) not read at leaves
    std::span<const double> threshold;                 // (n_nodes,) x <= threshold goes left
    std::span<const std::uint8_t> missing_go_to_left;  // (n_nodes,) where NaN goes
    std::span<const std::int64_t> tree_offsets;        // (n_trees + 1,)
    std::int64_t n_features;
};

// A column of a tree's nodes, in memory of any alignment.
template <class T>
struct Column {
    const std::byte* data;
    std::ptrdiff_t stride;  // bytes from node to node

    T operator[](std::size_t i) const noexcept {
        T value;
        std::memcpy(&value, data + static_cast<std::ptrdiff_t>(i) * stride, sizeof(T));
        return value;
    }
};

// One such tree, where its library keeps it.
struct TreeColumns {
    Column<std::int64_t> children_left;
    Column<std::int64_t> children_right;
    Column<std::int64_t> feature;
    Column<double> threshold;
    Column<std::uint8_t> missing_go_to_left;
    std::size_t n_nodes;
};

// Immutable after construction: safe to share between threads.
class Forest {
  public:
    // O(n_nodes) over n_threads threads. Throws std::invalid_argument unless every tree is a proper
    // binary tree whose features, thresholds and children are in range.
    explicit Forest(const TreeArrays& trees, unsigned n_threads = 1,
                    Interruption& interruption = Interruption::never());

    // The same trees, each where it is.
    Forest(std::span<const TreeColumns> trees, std::int64_t n_features, unsigned n_threads = 1,
           Interruption& interruption = Interruption::never());

    // From the layout that nodes(), tree_offsets() and leaf_nodes() hand out, e.g. of a mapped
    // file. Nothing is copied. Throws std::invalid_argument as above, in errors that begin with
    // `source`, if it is not empty. If nodes are checked lazily, only sizes and tree_offsets are
    // checked at once, O(n_trees): rows that walk down check the nodes on their way, and
    // leaf_nodes() may hold anything.
    Forest(Nodes nodes, Array<offset_t> tree_offsets, Array<std::int32_t> leaf_nodes,
           std::int64_t n_features, std::string source = {}, Checks checks = Checks::now,
           unsigned n_threads = 1, Interruption& interruption = Interruption::never());

    bool is_validated() const noexcept { return checks_ == Checks::now; }
    // The same forest, checked whole.
    Forest validated(unsigned n_threads, Interruption& interruption) const;

    std::size_t n_trees() const noexcept { return tree_offsets_.size() - 1; }
    std::size_t n_features() const noexcept { return n_features_; }
    std::size_t n_leaves() const noexcept { return leaf_nodes_.size(); }
    // A binary tree of k nodes has (k + 1) / 2 leaves.
    std::size_t n_leaves(std::size_t tree) const noexcept {
        return static_cast<std::size_t>(tree_offsets_[tree + 1] - tree_offsets_[tree] + 1) / 2;
    }

    // Leaf for each row of a block in trees [first, last), (last - first, tile_rows *
    // rows.n_tiles()). O(n_rows * sum of the depths walked). Throws std::invalid_argument at a
    // damaged node, if the forest is not checked.
    void route(const RowTiles& rows, std::size_t first, std::size_t last, leaf_t* out) const;

    const Nodes& nodes() const noexcept { return nodes_; }
    const Array<offset_t>& tree_offsets() const noexcept { return tree_offsets_; }
    // (n_leaves,) scikit-learn's node id of each leaf; leaves of tree t follow those of tree t - 1.
    const Array<std::int32_t>& leaf_nodes() const noexcept { return leaf_nodes_; }

    std::size_t nbytes() const noexcept;

  private:
    template <class Node>
    void lay_out(std::span<const TreeColumns> trees, unsigned n_threads,
                 Interruption& interruption);
    void check_sizes() const;
    template <class Node>
    void check_trees(const Array<Node>& nodes, unsigned n_threads,
                     Interruption& interruption) const;
    template <class Node>
    leaf_t checked_leaf(const Array<Node>& nodes, std::size_t tree, const feature_key* row) const;
    template <class Node>
    void walk_checked(const Array<Node>& nodes, const RowTiles& rows, std::size_t first,
                      std::size_t last, leaf_t* out) const;
    template <class Node, bool may_be_nan>
    void walk_few(const Array<Node>& nodes, const RowTiles& rows, std::size_t first,
                  std::size_t last, leaf_t* out) const noexcept;
    template <class Node, bool may_be_nan>
    void walk_all(const Array<Node>& nodes, const RowTiles& rows, std::size_t first,
                  std::size_t last, leaf_t* out) const noexcept;

    Nodes nodes_;
    Array<offset_t> tree_offsets_;
    Array<std::int32_t> leaf_nodes_;
    std::size_t n_features_;
    Checks checks_ = Checks::now;
    std::string source_;
};

}  // namespace hdicore
