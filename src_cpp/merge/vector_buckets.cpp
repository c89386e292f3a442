// merge/vector_buckets.cpp: sums bucket counts of an output, chooses buckets, and cuts the leaves
// SPDX-License-Identifier: BSD-3-Clause
#include "merge/vector_buckets.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

namespace hdicore {

VectorBuckets::VectorBuckets(const LeafIndex& index)
    : index_(index),
      counts_(*index.tables().vector_counts),
      each_(index.n_trees()),
      left_over_(index.n_trees()),
      entry_mass_(index.n_trees()),
      first_rank_(index.n_trees() * index.n_outputs()) {
    parts_.reserve(index.n_trees() * BucketRuns::max_runs);
}

void VectorBuckets::assign(RowSlices slices) noexcept {
    const std::size_t n_outputs = index_.n_outputs();
    const rank_t* vector_ranks = index_.arrays().vector_ranks.data();
    slices_ = slices;
    rank_t* first_rank = first_rank_.data();
    for (std::size_t l = 0; l < slices.size(); ++l) {
        const UnitsAlike units(slices[l].n);
        each_[l] = units.each;
        left_over_[l] = units.left_over;
        entry_mass_[l] = entry_mass(slices[l].n);
        const std::size_t vector = index_.rank(slices[l].begin);
        first_rank = std::copy_n(vector_ranks + vector * n_outputs, n_outputs, first_rank);
    }
}

PartialPmf VectorBuckets::merge(Accumulator& accumulator, std::size_t output,
                                const Request& request) noexcept {
    const std::size_t first = output * index_.n_entries();
    const RankBounds outermost = std::visit(
        [&](const auto& ranks) { return outermost_ranks(ranks.data() + first, slices_); },
        counts_.ranks);
    sum_bucket_counts(counts_.below, index_.n_outputs() * n_buckets, output * n_buckets,
                      counts_.edges[output], slices_, entry_mass_.data(), outermost,
                      accumulator.kernels(), masses_);
    marked_.fill(false);
    mark(masses_, request, marked_);
    // One more run costs as much as some entries of each leaf.
    masses_.list_runs(marked_, static_cast<float>(4 / index_.entries_per_leaf()), runs_);
    std::visit(
        [&](const auto& ranks, const auto& below) {
            add(output, ranks.data() + first, below.data(), accumulator);
        },
        counts_.ranks, counts_.below);
    const std::span<const double> atoms = index_.atoms(output);
    const double max_abs =
        std::max(std::fabs(atoms[outermost.first]), std::fabs(atoms[outermost.last]));
    return accumulator.read_partial(output, slices_.size(), std::span(ranges_).first(runs_.n),
                                    max_abs);
}

template <class Rank, class Count>
void VectorBuckets::add(std::size_t output, const Rank* ranks, const Count* below,
                        Accumulator& accumulator) noexcept {
    const std::size_t n_outputs = index_.n_outputs();
    const BucketEdges& edges = counts_.edges[output];
    parts_.clear();
    std::size_t n_entries = 0, n_atoms = 0;
    for (std::size_t r = 0; r < runs_.n; ++r) {
        const auto [first, end] = runs_.runs[r];
        mass_t mass = 0;
        for (std::size_t l = 0; l < slices_.size(); ++l) {
            const EntrySlice& slice = slices_[l];
            const Count* counts = below + (slice.leaf * n_outputs + output) * n_buckets;
            const std::uint32_t from = counts[first];
            const std::uint32_t to = end == n_buckets ? slice.n : counts[end];
            parts_.push_back({slice.begin + from, to - from, each_[l]});
            n_entries += to - from;
            const bool is_below = first_rank_[l * n_outputs + output] < edges.begin[first];
            mass += from * each_[l] + (is_below ? left_over_[l] : 0);
        }
        ranges_[r] = {edges.begin[first], edges.begin[end], mass};
        n_atoms += ranges_[r].end - ranges_[r].begin;
    }
    accumulator.add_alike<Rank>(parts_, ranks, Accumulator::is_dense(n_entries, n_atoms));
    // The first entry of a leaf is in the order of vectors.
    for (std::size_t r = 0; r < runs_.n; ++r) {
        for (std::size_t l = 0; l < slices_.size(); ++l) {
            const rank_t rank = first_rank_[l * n_outputs + output];
            if (rank < ranges_[r].begin || rank >= ranges_[r].end) continue;
            accumulator.add_more(rank, left_over_[l]);
        }
    }
}

}  // namespace hdicore
