// index/derived_tables.cpp: measures the leaves of an index, and counts their entries by bucket
// SPDX-License-Identifier: BSD-3-Clause
#include "index/derived_tables.hpp"

#include <algorithm>
#include <limits>

#include "base/parallel.hpp"

namespace hdicore {
namespace {

bool does_counting_pay(const LeafTable& table) noexcept {
    return table.n_outputs() == 1 && table.arrays().uniform() &&
           table.entries_per_leaf() >= min_entries_for_bucket_counts &&
           table.n_leaves() <= std::numeric_limits<std::uint32_t>::max();
}

// Fills the counts of all leaves, `below` being those of the coarse buckets.
template <class Ranks, class Count>
void count_entries(const LeafTable& table, const Ranks& ranks, BucketCounts& counts,
                   Lines<Count>& below, unsigned n_threads, Interruption& interruption) {
    const bool fine = counts.fine_edges.has_value();
    below.resize(table.n_leaves() * n_buckets);
    const auto make_worker = [&]() -> Worker {
        return [&](std::size_t t) {
            for (std::size_t leaf = 0; leaf < table.n_leaves(t); ++leaf) {
                const EntrySlice slice = table.entries(t, static_cast<leaf_t>(leaf));
                if (slice.n == 0) continue;
                const auto leaf_ranks = ranks.view().subspan(slice.begin, slice.n);
                count_below(*counts.edges, leaf_ranks, &below[slice.leaf * n_buckets]);
                if (!fine) continue;
                count_below(*counts.fine_edges, leaf_ranks,
                            &counts.fine_below[slice.leaf * n_fine_buckets]);
            }
        };
    };
    parallel_for(table.n_trees(), n_threads, make_worker, interruption);
    use_large_pages(below.data(), below.size() * sizeof(Count), interruption);
}

BucketCounts count_buckets(const LeafTable& table, std::size_t max_leaf_size, unsigned n_threads,
                           Interruption& interruption) {
    BucketCounts counts;
    const bool fine = table.entries_per_leaf() >= min_entries_for_fine_counts;
    counts.edges.emplace(table.atoms(0));
    if (fine) counts.fine_edges.emplace(table.atoms(0), n_fine_buckets);
    if (fine) counts.fine_below.resize(table.n_leaves() * n_fine_buckets);
    const bool narrow = max_leaf_size <= std::numeric_limits<std::uint8_t>::max();
    if (!narrow) counts.below = Lines<std::uint16_t>();
    std::visit(
        [&](const auto& ranks, auto& below) {
            count_entries(table, ranks, counts, below, n_threads, interruption);
        },
        table.arrays().ranks, counts.below);
    use_large_pages(counts.fine_below.data(), counts.fine_below.size() * sizeof(std::uint16_t),
                    interruption);
    return counts;
}

}  // namespace

DerivedTables derive_tables(const LeafTable& table, const LeafSizes& sizes, unsigned n_threads,
                            Interruption& interruption) {
    // Different vectors may have one target in an output.
    DerivedTables tables{sizes.max_leaf_size, sizes.has_ties || table.n_outputs() > 1, {}, {}};
    if (does_counting_pay(table)) {
        tables.bucket_counts = count_buckets(table, sizes.max_leaf_size, n_threads, interruption);
    }
    if (do_vector_counts_pay(table)) {
        tables.vector_counts = count_vectors(table, sizes.max_leaf_size, n_threads, interruption);
    }
    return tables;
}

DerivedTables bound_tables(const LeafTable& table) noexcept {
    DerivedTables tables;
    tables.has_ties = true;
    const std::span<const offset_t> begins = table.arrays().tree_begin.view();
    for (std::size_t t = 0; t < table.n_trees(); ++t) {
        tables.max_leaf_size =
            std::max(tables.max_leaf_size, static_cast<std::size_t>(begins[t + 1] - begins[t]));
    }
    if (table.arrays().uniform()) {
        tables.max_leaf_size = std::min(tables.max_leaf_size, max_uniform_leaf);
    }
    return tables;
}

std::size_t max_leaf_size(const LeafTable& table) noexcept {
    std::uint32_t largest = 0;
    for (std::size_t t = 0; t < table.n_trees(); ++t) {
        const std::uint32_t* begin = table.leaf_begin(t);
        for (std::size_t leaf = 0; leaf < table.n_leaves(t); ++leaf) {
            largest = std::max(largest, begin[leaf + 1] - begin[leaf]);
        }
    }
    return largest;
}

}  // namespace hdicore
