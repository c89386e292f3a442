// scoring/packed_leaves.cpp: whether a place in a tree and a size fit into 32 bits
// SPDX-License-Identifier: BSD-3-Clause
#include "scoring/packed_leaves.hpp"

#include <algorithm>
#include <bit>

namespace hdicore {

std::optional<PackedLeaves> PackedLeaves::of(const LeafIndex& index) {
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

void PackedLeaves::pack(std::size_t first, std::size_t last,
                        std::span<leaf_t> leaves) const noexcept {
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

}  // namespace hdicore
