// scoring/packed_leaves.hpp: leaves -> where their entries lie in a tree, in the same 32 bits
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <bit>
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
    static std::optional<PackedLeaves> of(const LeafIndex& index) {
        if (!index.is_validated()) return std::nullopt;
        if (index.n_outputs() > 1 && !index.tables().outputs_begin_alike) return std::nullopt;
        std::size_t largest_tree = 0;
        for (std::size_t t = 0; t < index.n_trees(); ++t) {
            const auto n = static_cast<std::size_t>(index.arrays().tree_begin[t + 1]) -
                           static_cast<std::size_t>(index.arrays().tree_begin[t]);
            largest_tree = std::max(largest_tree, n);
        }
        const int size_bits = static_cast<int>(std::bit_width(index.tables().max_leaf_size));
        // The begin of an empty leaf may be the end of the tree.
        const int begin_bits = static_cast<int>(std::bit_width(largest_tree));
        if (begin_bits + size_bits > 32) return std::nullopt;
        return PackedLeaves(index, size_bits);
    }

    // Replaces the leaves of trees [first, last), each as many, which exist or are no_leaf.
    void pack(std::size_t first, std::size_t last, std::span<leaf_t> leaves) const noexcept {
        const std::size_t n = leaves.size() / (last - first);
        for (std::size_t t = first; t < last; ++t) {
            const std::uint32_t* leaf_begin = index_->leaf_begin(0, t);
            for (leaf_t& leaf : leaves.subspan((t - first) * n, n)) {
                if (leaf == no_leaf) {
                    leaf = 0;
                    continue;
                }
                const std::uint32_t begin = leaf_begin[leaf];
                leaf = static_cast<leaf_t>(begin << size_bits_ | (leaf_begin[leaf + 1] - begin));
            }
        }
    }

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
