// index/vector_counts.cpp: sorts the entries of each leaf by each output, and counts them by bucket
// SPDX-License-Identifier: BSD-3-Clause
#include "index/vector_counts.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "base/parallel.hpp"
#include "index/derived_tables.hpp"

namespace hdicore {

std::size_t VectorCounts::nbytes() const noexcept {
    std::size_t n = ranks.size() * sizeof(ranks[0]);
    for (const BucketEdges& output : edges) n += output.nbytes();
    return n +
           std::visit([](const auto& counts) { return counts.size() * sizeof(counts[0]); }, below);
}

bool do_vector_counts_pay(const LeafTable& table) noexcept {
    return table.n_outputs() > 1 && table.arrays().uniform() && table.arrays().ranks.index() == 0 &&
           table.n_vectors() <= std::size_t{1} << 16 &&
           table.entries_per_leaf() >= min_entries_for_bucket_counts;
}

VectorCounts count_vectors(const LeafTable& table, std::size_t max_leaf_size, unsigned n_threads,
                           Interruption& interruption) {
    const std::size_t n_outputs = table.n_outputs();
    const std::size_t n_counts = table.n_leaves() * n_outputs * n_buckets;
    VectorCounts counts;
    for (std::size_t o = 0; o < n_outputs; ++o) counts.edges.emplace_back(table.atoms(o));
    counts.ranks.resize(n_outputs * table.n_entries());
    const bool narrow = max_leaf_size <= std::numeric_limits<std::uint8_t>::max();
    if (!narrow) counts.below = Lines<std::uint16_t>();
    std::visit([&](auto& below) { below.resize(n_counts); }, counts.below);

    const auto count_leaf = [&](std::size_t o, const EntrySlice& slice) {
        const OutputTargets targets = table.targets(o);
        std::uint16_t* ranks = counts.ranks.data() + o * table.n_entries() + slice.begin;
        for (std::uint32_t e = 0; e < slice.n; ++e) {
            ranks[e] = static_cast<std::uint16_t>(targets.rank(table.rank(slice.begin + e)));
        }
        std::sort(ranks, ranks + slice.n);
        std::visit(
            [&](auto& below) {
                const std::span<const std::uint16_t> sorted(ranks, slice.n);
                count_below(counts.edges[o], sorted,
                            &below[(slice.leaf * n_outputs + o) * n_buckets]);
            },
            counts.below);
    };
    const auto make_worker = [&]() -> Worker {
        return [&](std::size_t t) {
            for (std::size_t leaf = 0; leaf < table.n_leaves(t); ++leaf) {
                const EntrySlice slice = table.entries(t, static_cast<leaf_t>(leaf));
                for (std::size_t o = 0; o < n_outputs; ++o) count_leaf(o, slice);
            }
        };
    };
    parallel_for(table.n_trees(), n_threads, make_worker, interruption);
    std::visit(
        [&](auto& below) {
            use_large_pages(below.data(), below.size() * sizeof(below[0]), interruption);
        },
        counts.below);
    return counts;
}

}  // namespace hdicore
