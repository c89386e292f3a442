// forest/nodes.hpp: the two layouts of a decision node
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "base/types.hpp"
#include "forest/row_tiles.hpp"

namespace hdicore {

// Siblings are neighbours and lie behind their parent. One step down is `left + goes_right`. A leaf
// is its own left child, and its key lies above every row's, so that walking on from it stays at
// it. Leaves are numbered from left to right.
//
// A new forest's nodes are ordered for the cache: a subtree begins with a run of up to 15 pairs of
// siblings, breadth first, behind which come the subtrees below it, from left to right.

// 8 bytes, for trees of fewer than 2^21 nodes on at most 256 features.
struct NarrowNode {
    static constexpr std::uint32_t max_nodes = 1u << 21;
    static constexpr std::uint32_t max_features = 1u << 8;

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
    std::uint32_t feature() const noexcept { return word >> 3 & (max_features - 1); }
    bool nan_left() const noexcept { return (word & 1) != 0; }
    std::uint32_t leaf() const noexcept { return key - (missing_key + 1); }
    friend bool operator==(const NarrowNode&, const NarrowNode&) = default;
};
static_assert(sizeof(NarrowNode) == 8);

// 16 bytes, for all others.
struct WideNode {
    static constexpr std::uint32_t max_nodes = 1u << 31;
    static constexpr std::uint32_t max_features = 1u << 31;

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

// Whether trees of up to so many nodes may be laid out as such nodes.
template <class Node>
bool do_fit(std::size_t n_nodes, std::size_t n_features) noexcept {
    return n_nodes < Node::max_nodes && n_features <= Node::max_features;
}

using Nodes = std::variant<Array<NarrowNode>, Array<WideNode>>;

}  // namespace hdicore
