// index/derived_tables.cpp: measures the leaves of an index, and counts their entries by bucket
// SPDX-License-Identifier: BSD-3-Clause
#include "index/derived_tables.hpp"

#include <algorithm>
#include <limits>

#include "base/parallel.hpp"

namespace hdicore {
namespace {

// Each row is an entry in every output, so that an index built here has outputs that begin alike;
// arrays from outside may differ. The last leaf of a tree ends where the tree does: trees begin
// alike if leaves do.
bool do_outputs_begin_alike(const LeafTable& table) noexcept {
    const std::span<const std::uint32_t> begin = table.arrays().leaf_begin.view();
    const std::size_t step = table.n_leaves() + table.n_trees();
    return table.arrays().uniform() && std::equal(begin.begin() + step, begin.end(), begin.begin());
}

bool does_counting_pay(const LeafTable& table) noexcept {
    return table.arrays().uniform() && !table.arrays().censored() &&
           table.entries_per_leaf() >= min_entries_for_bucket_counts &&
           table.n_outputs() * table.n_leaves() <= std::numeric_limits<std::uint32_t>::max();
}

// Fills the counts of all leaves, `below` being those of the coarse buckets.
template <class Ranks, class Count>
void count_entries(const LeafTable& table, const Ranks& ranks, BucketCounts& counts,
                   Lines<Count>& below, unsigned n_threads, Interruption& interruption) {
    const bool fine = !counts.fine_edges.empty();
    below.resize(table.n_outputs() * table.n_leaves() * n_buckets);
    const auto work = [&](std::size_t block) {
        const std::size_t o = block / table.n_trees();
        const std::size_t t = block % table.n_trees();
        for (std::size_t leaf = 0; leaf < table.n_leaves(t); ++leaf) {
            const EntrySlice slice = table.entries(o, t, static_cast<leaf_t>(leaf));
            if (slice.n == 0) continue;
            const auto leaf_ranks = ranks.view().subspan(slice.begin, slice.n);
            count_below(counts.edges[o], leaf_ranks, &below[slice.leaf * n_buckets]);
            if (!fine) continue;
            count_below(counts.fine_edges[o], leaf_ranks,
                        &counts.fine_below[slice.leaf * n_fine_buckets]);
        }
    };
    parallel_for(table.n_outputs() * table.n_trees(), n_threads, work, interruption);
    use_large_pages(below.data(), below.size() * sizeof(Count), interruption);
}

BucketCounts count_buckets(const LeafTable& table, std::size_t max_leaf_size, unsigned n_threads,
                           Interruption& interruption) {
    BucketCounts counts;
    const bool fine = table.entries_per_leaf() >= min_entries_for_fine_counts;
    for (std::size_t o = 0; o < table.n_outputs(); ++o) {
        counts.edges.emplace_back(table.atoms(o));
        if (fine) counts.fine_edges.emplace_back(table.atoms(o), n_fine_buckets);
    }
    if (fine) counts.fine_below.resize(table.n_outputs() * table.n_leaves() * n_fine_buckets);
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
    DerivedTables tables{sizes.max_leaf_size, sizes.has_ties, do_outputs_begin_alike(table), {}};
    if (does_counting_pay(table)) {
        tables.bucket_counts = count_buckets(table, sizes.max_leaf_size, n_threads, interruption);
    }
    return tables;
}

DerivedTables bound_tables(const LeafTable& table) noexcept {
    DerivedTables tables;
    tables.has_ties = true;
    const std::span<const offset_t> begins = table.arrays().tree_begin.view();
    for (std::size_t block = 0; block + 1 < begins.size(); ++block) {
        tables.max_leaf_size = std::max(
            tables.max_leaf_size, static_cast<std::size_t>(begins[block + 1] - begins[block]));
    }
    if (table.arrays().uniform()) {
        tables.max_leaf_size = std::min(tables.max_leaf_size, max_uniform_leaf);
    }
    return tables;
}

std::size_t max_leaf_size(const LeafTable& table) noexcept {
    std::uint32_t largest = 0;
    for (std::size_t o = 0; o < table.n_outputs(); ++o) {
        for (std::size_t t = 0; t < table.n_trees(); ++t) {
            const std::uint32_t* begin = table.leaf_begin(o, t);
            for (std::size_t leaf = 0; leaf < table.n_leaves(t); ++leaf) {
                largest = std::max(largest, begin[leaf + 1] - begin[leaf]);
            }
        }
    }
    return largest;
}

}  // namespace hdicore
