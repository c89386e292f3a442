// index/vector_counts.cpp: sorts the entries of each leaf by each output, and counts them by bucket
// SPDX-License-Identifier: BSD-3-Clause
#include "index/vector_counts.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "base/parallel.hpp"
#include "index/derived_tables.hpp"

namespace hdicore {
namespace {

template <class Arrays>
std::size_t bytes_of(const Arrays& arrays) noexcept {
    return std::visit([](const auto& values) { return values.size() * sizeof(values[0]); }, arrays);
}

// Sorts the entries of a leaf by each output, and counts them.
template <class Rank, class Count>
void count_leaf(const LeafTable& table, const EntrySlice& slice,
                const std::vector<BucketEdges>& edges, std::vector<Rank>& ranks,
                Lines<Count>& below) {
    const std::size_t n_outputs = table.n_outputs();
    for (std::size_t o = 0; o < n_outputs; ++o) {
        const OutputTargets targets = table.targets(o);
        Rank* own = ranks.data() + o * table.n_entries() + slice.begin;
        for (std::uint32_t e = 0; e < slice.n; ++e) {
            own[e] = static_cast<Rank>(targets.rank(table.rank(slice.begin + e)));
        }
        std::sort(own, own + slice.n);
        count_below(edges[o], std::span<const Rank>(own, slice.n),
                    &below[(slice.leaf * n_outputs + o) * n_buckets]);
    }
}

}  // namespace

std::size_t VectorCounts::nbytes() const noexcept {
    std::size_t n = bytes_of(ranks) + bytes_of(below);
    for (const BucketEdges& output : edges) n += output.nbytes();
    return n;
}

bool do_vector_counts_pay(const LeafTable& table) noexcept {
    return table.n_outputs() > 1 && table.arrays().uniform() &&
           table.entries_per_leaf() >= min_entries_for_bucket_counts &&
           table.n_leaves() <= std::numeric_limits<std::uint32_t>::max();
}

VectorCounts count_vectors(const LeafTable& table, std::size_t max_leaf_size, unsigned n_threads,
                           Interruption& interruption) {
    VectorCounts counts;
    for (std::size_t o = 0; o < table.n_outputs(); ++o) counts.edges.emplace_back(table.atoms(o));
    if (table.n_vectors() > std::size_t{1} << 16) counts.ranks = std::vector<rank_t>();
    const bool narrow = max_leaf_size <= std::numeric_limits<std::uint8_t>::max();
    if (!narrow) counts.below = Lines<std::uint16_t>();
    const auto count = [&](auto& ranks, auto& below) {
        ranks.resize(table.n_outputs() * table.n_entries());
        below.resize(table.n_outputs() * table.n_leaves() * n_buckets);
        const auto make_worker = [&]() -> Worker {
            return [&](std::size_t t) {
                for (std::size_t leaf = 0; leaf < table.n_leaves(t); ++leaf) {
                    count_leaf(table, table.entries(t, static_cast<leaf_t>(leaf)), counts.edges,
                               ranks, below);
                }
            };
        };
        parallel_for(table.n_trees(), n_threads, make_worker, interruption);
        use_large_pages(below.data(), below.size() * sizeof(below[0]), interruption);
    };
    std::visit(count, counts.ranks, counts.below);
    return counts;
}

}  // namespace hdicore
