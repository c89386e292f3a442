// hdicore/forest.hpp: rows -> leaves; a forest's decision nodes, laid out for walking
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hdicore/types.hpp"

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

// One node, 16 bytes so that none straddles a cache line. The nodes of a tree stand in
// breadth-first order and siblings are neighbours, so one step down is `left + goes_right`. A leaf
// is its own left child and sends every value there (threshold +inf, NaN left): walking on from it
// stays at it.
struct Node {
    static constexpr std::uint32_t missing_left = 0x80000000u;

    float threshold;        // largest float32 not above the float64 threshold: x is float32 too
    std::uint32_t feature;  // bit 31: NaN goes left
    std::uint32_t left;     // counted from the root
    std::uint32_t leaf;     // number of the leaf, in breadth-first order; 0 at inner nodes
};
static_assert(sizeof(Node) == 16);

// A C-ordered matrix of rows to route, float32 or float64.
struct RowMatrix {
    std::size_t n_rows;
    std::size_t n_features;
    const float* as_float;    // (n_rows, n_features), or null
    const double* as_double;  // (n_rows, n_features), or null

    // Copies rows [begin, end) as float32, the precision scikit-learn routes with. NaN is kept;
    // throws std::invalid_argument at a value that is infinite as float32.
    void copy_rows(std::size_t begin, std::size_t end, float* out) const;
};

// Immutable after construction: safe to share between threads.
class Forest {
  public:
    // O(n_nodes). Throws std::invalid_argument unless every tree is a proper binary tree whose
    // features, thresholds and children are in range.
    explicit Forest(const TreeArrays& trees);

    // From the layout that nodes(), tree_offsets() and leaf_nodes() hand out, e.g. of a mapped
    // file. Nothing is copied; everything is checked, as above.
    Forest(Array<Node> nodes, Array<offset_t> tree_offsets, Array<std::int32_t> leaf_nodes,
           std::int64_t n_features);

    std::size_t n_trees() const noexcept { return tree_offsets_.size() - 1; }
    std::size_t n_features() const noexcept { return n_features_; }
    std::size_t n_leaves() const noexcept { return leaf_nodes_.size(); }
    // A binary tree of k nodes has (k + 1) / 2 leaves.
    std::size_t n_leaves(std::size_t tree) const noexcept {
        return static_cast<std::size_t>(tree_offsets_[tree + 1] - tree_offsets_[tree] + 1) / 2;
    }

    // Leaf of every tree for each row of a block. O(n_rows * sum of the depths walked).
    // rows is (n_rows, n_features) without infinities, out is (n_rows, n_trees).
    void route(const float* rows, std::size_t n_rows, leaf_t* out) const noexcept;

    const Array<Node>& nodes() const noexcept { return nodes_; }
    const Array<offset_t>& tree_offsets() const noexcept { return tree_offsets_; }
    // (n_leaves,) scikit-learn's node id of each leaf; leaves of tree t follow those of tree t - 1.
    const Array<std::int32_t>& leaf_nodes() const noexcept { return leaf_nodes_; }

  private:
    void validate() const;

    Array<Node> nodes_;
    Array<offset_t> tree_offsets_;
    Array<std::int32_t> leaf_nodes_;
    std::size_t n_features_;
};

}  // namespace hdicore
