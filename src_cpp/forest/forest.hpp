// forest/forest.hpp: rows -> leaves; a forest's decision nodes, laid out for walking
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "base/interruption.hpp"
#include "base/types.hpp"

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

// The key of NaN, above those of all numbers. Walking compares keys: an integer comparison is
// shorter than one of floats.
inline constexpr feature_key missing_key = 0xff800000u;

// Nodes of a tree stand so that siblings are neighbours and every subtree is one run of memory: a
// node's children, then all below the left child, then all below the right one. One step down is
// `left + goes_right`. A leaf is its own left child, and its key lies above every row's, so that
// walking on from it stays at it. Leaves are numbered from left to right.

// 8 bytes, for trees of fewer than 2^21 nodes on at most 256 features.
struct NarrowNode {
    static constexpr std::uint32_t most_nodes = 1u << 21;
    static constexpr std::uint32_t most_features = 1u << 8;

    feature_key key;     // x <= threshold goes left; at a leaf missing_key + 1 + its number
    std::uint32_t word;  // left << 11 | feature << 3 | whether NaN goes left

    static NarrowNode inner(feature_key key, std::uint32_t feature, std::uint32_t left,
                            bool nan_left) {
        return {key, left << 11 | feature << 3 | static_cast<std::uint32_t>(nan_left)};
    }
    static NarrowNode at_leaf(std::uint32_t self, std::uint32_t leaf) {
        return {missing_key + 1 + leaf, self << 11};
    }
    std::uint32_t left() const noexcept { return word >> 11; }
    std::uint32_t feature() const noexcept { return word >> 3 & (most_features - 1); }
    bool nan_left() const noexcept { return (word & 1) != 0; }
    std::uint32_t leaf() const noexcept { return key - (missing_key + 1); }
    friend bool operator==(const NarrowNode&, const NarrowNode&) = default;
};
static_assert(sizeof(NarrowNode) == 8);

// 16 bytes, for all others.
struct WideNode {
    static constexpr std::uint32_t most_nodes = 1u << 31;
    static constexpr std::uint32_t most_features = 1u << 31;

    feature_key key;       // as above; at a leaf the largest key
    std::uint32_t word;    // feature << 1 | whether NaN goes left
    std::uint32_t child;   // left
    std::uint32_t number;  // of the leaf; 0 at inner nodes

    static WideNode inner(feature_key key, std::uint32_t feature, std::uint32_t left,
                          bool nan_left) {
        return {key, feature << 1 | static_cast<std::uint32_t>(nan_left), left, 0};
    }
    static WideNode at_leaf(std::uint32_t self, std::uint32_t leaf) {
        return {~feature_key{0}, 0, self, leaf};
    }
    std::uint32_t left() const noexcept { return child; }
    std::uint32_t feature() const noexcept { return word >> 1; }
    bool nan_left() const noexcept { return (word & 1) != 0; }
    std::uint32_t leaf() const noexcept { return number; }
    friend bool operator==(const WideNode&, const WideNode&) = default;
};
static_assert(sizeof(WideNode) == 16);

using Nodes = std::variant<Array<NarrowNode>, Array<WideNode>>;

// A C-ordered matrix of rows to route, float32 or float64.
struct RowMatrix {
    std::size_t n_rows;
    std::size_t n_features;
    const float* as_float;    // (n_rows, n_features), or null
    const double* as_double;  // (n_rows, n_features), or null
};

// A block of rows made ready for walking: 16 rows to a tile, in which each feature's values are
// neighbours. Memory is kept from block to block.
class RowTiles {
  public:
    static constexpr std::size_t tile_rows = 16;

    // Makes room for n rows, so that taking them allocates nothing.
    void reserve(std::size_t n_features, std::size_t n);

    // Takes rows [begin, end), cast to float32, the precision scikit-learn routes with. NaN is
    // kept; throws std::invalid_argument at a value that is infinite as float32.
    void assign(const RowMatrix& rows, std::size_t begin, std::size_t end);

    // Takes the same rows in another order: row begin + order[p] becomes row p.
    void assign(const RowMatrix& rows, std::size_t begin, std::span<const std::uint32_t> order);

    std::size_t n_rows() const noexcept { return n_rows_; }
    std::size_t n_tiles() const noexcept { return (n_rows_ + tile_rows - 1) / tile_rows; }
    bool has_missing() const noexcept { return has_missing_; }
    // (n_features, tile_rows) keys; rows that fill up the last tile hold anything.
    const feature_key* tile(std::size_t i) const noexcept { return keys_.data() + i * tile_size_; }

  private:
    template <class Real, class RowOf>
    void encode(const Real* rows, std::size_t n, std::size_t n_features, const RowOf& row_of);
    template <class RowOf>
    void encode(const RowMatrix& rows, std::size_t n, const RowOf& row_of);

    std::vector<feature_key> keys_;
    std::size_t n_rows_ = 0;
    std::size_t tile_size_ = 0;
    bool has_missing_ = false;
};

// Immutable after construction: safe to share between threads.
class Forest {
  public:
    // O(n_nodes) over n_threads threads. Throws std::invalid_argument unless every tree is a proper
    // binary tree whose features, thresholds and children are in range.
    explicit Forest(const TreeArrays& trees, unsigned n_threads = 1,
                    Interruption& interruption = Interruption::never());

    // From the layout that nodes(), tree_offsets() and leaf_nodes() hand out, e.g. of a mapped
    // file. Nothing is copied; everything is checked, as above.
    Forest(Nodes nodes, Array<offset_t> tree_offsets, Array<std::int32_t> leaf_nodes,
           std::int64_t n_features, Interruption& interruption = Interruption::never());

    std::size_t n_trees() const noexcept { return tree_offsets_.size() - 1; }
    std::size_t n_features() const noexcept { return n_features_; }
    std::size_t n_leaves() const noexcept { return leaf_nodes_.size(); }
    // A binary tree of k nodes has (k + 1) / 2 leaves.
    std::size_t n_leaves(std::size_t tree) const noexcept {
        return static_cast<std::size_t>(tree_offsets_[tree + 1] - tree_offsets_[tree] + 1) / 2;
    }

    // Leaf for each row of a block in trees [first, last), (last - first, tile_rows *
    // rows.n_tiles()). O(n_rows * sum of the depths walked).
    void route(const RowTiles& rows, std::size_t first, std::size_t last,
               leaf_t* out) const noexcept;

    const Nodes& nodes() const noexcept { return nodes_; }
    const Array<offset_t>& tree_offsets() const noexcept { return tree_offsets_; }
    // (n_leaves,) scikit-learn's node id of each leaf; leaves of tree t follow those of tree t - 1.
    const Array<std::int32_t>& leaf_nodes() const noexcept { return leaf_nodes_; }

    std::size_t nbytes() const noexcept;

  private:
    template <class Node>
    void lay_out(const TreeArrays& trees, unsigned n_threads, Interruption& interruption);
    template <class Node>
    void validate(const Array<Node>& nodes, Interruption& interruption) const;
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
};

}  // namespace hdicore
