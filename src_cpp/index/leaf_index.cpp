// index/leaf_index.cpp: what follows from the arrays of an index: sizes, and bucket counts
// SPDX-License-Identifier: BSD-3-Clause
#include "index/leaf_index.hpp"

#include <algorithm>
#include <limits>

#include "base/parallel.hpp"

namespace hdicore {

void LeafIndex::measure_leaves() noexcept {
    for (std::size_t o = 0; o < n_outputs(); ++o) {
        for (std::size_t t = 0; t < n_trees(); ++t) {
            const std::uint32_t* begin = leaf_begin(o, t);
            for (std::size_t leaf = 0; leaf < n_leaves(t); ++leaf) {
                max_leaf_size_ =
                    std::max<std::size_t>(max_leaf_size_, begin[leaf + 1] - begin[leaf]);
            }
        }
    }
}

// Each row is an entry in every output, so that an index built here has outputs that begin alike;
// arrays from outside may differ. The last leaf of a tree ends where the tree does: trees begin
// alike if leaves do.
void LeafIndex::compare_outputs() noexcept {
    const std::span<const std::uint32_t> begin = arrays_.leaf_begin.view();
    const std::size_t step = n_leaves() + n_trees();
    outputs_begin_alike_ =
        arrays_.uniform() && std::equal(begin.begin() + step, begin.end(), begin.begin());
}

void LeafIndex::count_buckets(unsigned n_threads, Interruption& interruption) {
    const std::size_t n_rows = n_outputs() * n_leaves();
    if (!arrays_.uniform() || !(entries_per_leaf() >= min_entries_for_bucket_counts) ||
        n_rows > std::numeric_limits<std::uint32_t>::max()) {
        return;
    }
    BucketCounts& counts = bucket_counts_.emplace();
    const bool fine = entries_per_leaf() >= min_entries_for_fine_counts;
    for (std::size_t o = 0; o < n_outputs(); ++o) {
        counts.edges.emplace_back(atoms(o));
        if (fine) counts.fine_edges.emplace_back(atoms(o), n_fine_buckets);
    }
    if (fine) counts.fine_below.resize(n_rows * n_fine_buckets);
    const auto count = [&]<class Ranks, class Count>(const Ranks& ranks, Lines<Count>& below) {
        below.resize(n_rows * n_buckets);
        const auto make_worker = [&]() -> Worker {
            return [&](std::size_t block) {
                const std::size_t o = block / n_trees();
                const std::size_t t = block % n_trees();
                for (std::size_t leaf = 0; leaf < n_leaves(t); ++leaf) {
                    const EntrySlice slice = entries(o, t, static_cast<leaf_t>(leaf));
                    if (slice.n == 0) continue;
                    const auto leaf_ranks = ranks.view().subspan(slice.begin, slice.n);
                    count_below(counts.edges[o], leaf_ranks, &below[slice.leaf * n_buckets]);
                    if (!fine) continue;
                    count_below(counts.fine_edges[o], leaf_ranks,
                                &counts.fine_below[slice.leaf * n_fine_buckets]);
                }
            };
        };
        parallel_for(n_outputs() * n_trees(), n_threads, make_worker, interruption);
        use_large_pages(below.data(), below.size() * sizeof(Count), interruption);
    };
    const bool narrow = max_leaf_size_ <= std::numeric_limits<std::uint8_t>::max();
    if (!narrow) counts.below = Lines<std::uint16_t>();
    std::visit(count, arrays_.ranks, counts.below);
    use_large_pages(counts.fine_below.data(), counts.fine_below.size() * sizeof(std::uint16_t),
                    interruption);
}

std::span<const double> LeafIndex::atoms(std::size_t output) const noexcept {
    return arrays_.atoms.view().subspan(
        static_cast<std::size_t>(arrays_.atom_offsets[output]),
        static_cast<std::size_t>(arrays_.atom_offsets[output + 1] - arrays_.atom_offsets[output]));
}

std::size_t LeafIndex::max_atoms() const noexcept {
    std::size_t largest = 0;
    for (std::size_t o = 0; o < n_outputs(); ++o) largest = std::max(largest, atoms(o).size());
    return largest;
}

std::size_t LeafIndex::nbytes() const noexcept {
    std::size_t n = arrays_.leaf_offsets.nbytes() + arrays_.atom_offsets.nbytes() +
                    arrays_.atoms.nbytes() + arrays_.tree_begin.nbytes() +
                    arrays_.leaf_begin.nbytes() + arrays_.known_leaves.nbytes() +
                    (bucket_counts_ ? bucket_counts_->nbytes() : 0);
    const auto add = [&n](const auto& values) { n += values.nbytes(); };
    std::visit(add, arrays_.ranks);
    with_array(arrays_.units, add);
    with_array(arrays_.copies, add);
    return n;
}

}  // namespace hdicore
