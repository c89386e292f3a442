// scoring/row_means.cpp: adds up what the leaves of rows amount to, tree by tree
// SPDX-License-Identifier: BSD-3-Clause
#include "scoring/row_means.hpp"

#include <algorithm>
#include <variant>

#include "base/types.hpp"

namespace hdicore {

RowMeans::RowMeans(const LeafIndex& index, const LeafMeans* means, std::span<double> results,
                   Interruption& interruption, std::size_t max_rows)
    : index_(index), means_(means), results_(results), interruption_(interruption) {
    sums_.reserve(max_rows);
}

void RowMeans::find(std::size_t begin, const RowBlock& block) {
    const std::size_t n = block.n_places();
    for (std::size_t o = 0; o < index_.n_outputs(); ++o) {
        const MeanScale scale = mean_scale(index_, o);
        // Without a step the mean is the least target already, unless the next is as near.
        const bool pooled = index_.arrays().pooled;
        const std::span<const double> atoms = index_.atoms(o);
        const bool finds_least = !pooled && (atoms.size() == 1 || scale.steps(atoms[1]) > 0) &&
                                 scale.mean({0, mass_t{1} << index_.shift()}) == atoms.front();
        sums_.assign(n, {});
        if (means_ != nullptr) {
            add_known(o, block);
        } else {
            for (std::size_t p = 0; p < n; p += RowTiles::tile_rows) {
                add_entries(scale, o, block, p, std::min(n, p + RowTiles::tile_rows));
            }
        }
        for (std::size_t p = 0; p < n; ++p) {
            // Of leaves with one target the steps are as many in each tree; of others seldom.
            const mass_t n_trees = sums_[p].units >> index_.shift();
            const bool may_be_one = pooled || (n_trees > 0 && sums_[p].steps % n_trees == 0 &&
                                               !(finds_least && sums_[p].steps == 0));
            const auto only = may_be_one ? only_target(o, block, p) : std::nullopt;
            const double mean = only ? *only : scale.mean(sums_[p]);
            for (const std::uint32_t row : block.rows_at(p, p + 1)) {
                results_[(begin + row) * index_.n_outputs() + o] = mean;
            }
        }
    }
}

void RowMeans::add_known(std::size_t output, const RowBlock& block) {
    const mass_t whole = mass_t{1} << index_.shift();
    const bool pooled = index_.arrays().pooled;
    const std::size_t between_checks = trees_between_checks(sums_.size());
    for (std::size_t t = 0; t < index_.n_trees(); ++t) {
        if (t % between_checks == 0) interruption_.check();
        const leaf_t* leaves = block.leaves.data() + t * block.stride();
        const std::int64_t* steps = means_->steps(index_, output, t);
        const mass_t* units = pooled ? means_->units(index_, output, t) : nullptr;
        for (std::size_t p = 0; p < sums_.size(); ++p) {
            const std::int64_t own = steps[leaves[p]];
            const std::int64_t is_there = ~(own >> 63);  // all bits, or none
            sums_[p].steps += own & is_there;
            sums_[p].units += pooled ? units[leaves[p]] : whole & is_there;
        }
    }
}

void RowMeans::add_entries(const MeanScale& scale, std::size_t output, const RowBlock& block,
                           std::size_t first, std::size_t end) {
    const std::size_t stride = block.stride();
    const auto for_leaves = [&](std::size_t t, const auto& use) {
        for (std::size_t p = first; p < end; ++p) {
            const leaf_t leaf = block.leaves[t * stride + p];
            if (leaf != no_leaf) use(p, leaf);
        }
    };
    // They lie far apart: all are asked for before the first is read.
    for (std::size_t t = 0; t < index_.n_trees(); ++t) {
        const std::uint32_t* begin = index_.leaf_begin(output, t);
        for_leaves(t, [&](std::size_t, leaf_t leaf) { prefetch_line(begin + leaf); });
    }
    std::visit(
        [&](const auto& ranks) {
            if (ranks.size() == 0) return;  // of damaged arrays, refused where they are read
            for (std::size_t t = 0; t < index_.n_trees(); ++t) {
                const std::uint32_t* begin = index_.leaf_begin(output, t);
                const auto* of_tree = ranks.data() + index_.tree_begin(output, t);
                for_leaves(t,
                           [&](std::size_t, leaf_t leaf) { prefetch_line(of_tree + begin[leaf]); });
            }
        },
        index_.arrays().ranks);
    const double each = index_.entries_per_leaf() + 1;
    const auto n_entries = static_cast<std::size_t>(each * static_cast<double>(end - first));
    const std::size_t between_checks = trees_between_checks(n_entries);
    for (std::size_t t = 0; t < index_.n_trees(); ++t) {
        if (t % between_checks == 0) interruption_.check();
        for_leaves(t, [&](std::size_t p, leaf_t leaf) {
            if (!index_.is_validated()) index_.check_leaf(output, t, leaf);
            sums_[p] += mean_of_leaf(index_, scale, output, t, leaf);
        });
    }
}

std::optional<double> RowMeans::only_target(std::size_t output, const RowBlock& block,
                                            std::size_t place) const {
    const auto find = [&](const auto& ranks) -> std::optional<rank_t> {
        std::optional<rank_t> only;
        for (std::size_t t = 0; t < index_.n_trees(); ++t) {
            const leaf_t leaf = block.leaves[t * block.stride() + place];
            if (leaf == no_leaf) continue;
            const std::uint32_t* begin = index_.leaf_begin(output, t) + leaf;
            if (begin[0] == begin[1]) continue;
            const auto* of_tree = ranks.data() + index_.tree_begin(output, t);
            if (!only) only = of_tree[begin[0]];
            if (of_tree[begin[0]] != *only || of_tree[begin[1] - 1] != *only) return std::nullopt;
        }
        return only;
    };
    const std::optional<rank_t> only = std::visit(find, index_.arrays().ranks);
    return only ? std::optional(index_.atoms(output)[*only]) : std::nullopt;
}

// Reading a clock takes as long as some leaves.
std::size_t RowMeans::trees_between_checks(std::size_t n_read) noexcept {
    return (std::size_t{1} << 20) / (n_read + 1) + 1;
}

}  // namespace hdicore
