// scoring/packed_leaves.hpp: leaves -> where their entries lie in a tree, in the same 32 bits
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "index/leaf_index.hpp"

namespace hdicore {

// The entries of all trees are too many to be found in cache where the rows of a tile are taken
// through all trees. Those of one tree are still there when a block of rows has walked down it.
class PackedLeaves {
  public:
    // None if a place and a size do not fit, or are not those of all outputs.
    static std::optional<PackedLeaves> of(const LeafIndex& index);

    // Replaces the leaves of trees [first, last), each as many, which exist or are no_leaf.
    void pack(std::size_t first, std::size_t last, std::span<leaf_t> leaves) const noexcept;

    // The first entry of one that was replaced, counted from the tree's first.
    std::uint32_t begin(leaf_t packed) const noexcept {
        return static_cast<std::uint32_t>(packed) >> size_bits_;
    }
    // How many entries it has; 0 of no_leaf.
    std::uint32_t size(leaf_t packed) const noexcept {
        return static_cast<std::uint32_t>(packed) & ((std::uint32_t{1} << size_bits_) - 1);
    }

  private:
    PackedLeaves(const LeafIndex& index, int size_bits) : index_(&index), size_bits_(size_bits) {}

    const LeafIndex* index_;
    int size_bits_;
};

}  // namespace hdicore
