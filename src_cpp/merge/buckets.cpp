// merge/buckets.cpp: sums bucket counts, chooses buckets, and cuts the leaves there
// SPDX-License-Identifier: BSD-3-Clause
#include "merge/buckets.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

namespace hdicore {
namespace {

constexpr auto whole_tree = static_cast<double>(mass_t{1} << narrow_shift);

}  // namespace

BucketMerge::BucketMerge(const LeafIndex& index)
    : index_(index), counts_(*index.tables().bucket_counts), entry_mass_(index.n_trees()) {
    const std::size_t max_parts = index.n_trees() * BucketRuns::max_runs;
    if (index.tables().max_leaf_size <= max_tabulated_leaf) {
        parts_ = std::make_unique_for_overwrite<EntrySlice[]>(max_parts);
    } else {
        large_parts_ = std::make_unique_for_overwrite<EqualEntries[]>(max_parts);
        steps_.resize(index.n_trees());
    }
}

template <class Count, class Use>
void BucketMerge::cut_slices(const BucketEdges& edges, RowSlices slices, const Count* below,
                             const Use& use) noexcept {
    for (std::size_t r = 0; r < runs_.n; ++r) {
        const auto [first, end] = runs_.runs[r];
        mass_t mass = 0;
        for (std::size_t l = 0; l < slices.size(); ++l) {
            const EntrySlice& slice = slices[l];
            const Count* counts = below + slice.leaf * edges.size();
            const std::uint32_t from = counts[first];
            const std::uint32_t to = end == edges.size() ? slice.n : counts[end];
            // As floor_units() does: rounding errs by less than 2^-20, and a quotient that is no
            // whole number is more than 2^-16 from the next one.
            mass += static_cast<mass_t>(from * entry_mass_[l] + 0x1p-18);
            use(l, from, to - from);
        }
        // Empty if there are fewer atoms than buckets.
        ranges_[r] = {edges.begin[first], edges.begin[end], mass};
    }
}

template <class Count>
void BucketMerge::add_small(const BucketEdges& edges, const Count* below, Accumulator& accumulator,
                            RowSlices slices) noexcept {
    EntrySlice* part = parts_.get();
    std::size_t n_entries = 0;
    cut_slices(edges, slices, below, [&](std::size_t l, std::uint32_t from, std::uint32_t n) {
        const EntrySlice& slice = slices[l];
        *part++ = {slice.begin + from, slice.units + from, n, slice.leaf};
        n_entries += n;
    });
    const RowSlices parts(parts_.get(), slices.size() * runs_.n);
    accumulator.prefetch(parts);
    accumulator.add(parts, Accumulator::is_dense(n_entries, n_atoms()));
}

template <class Count>
void BucketMerge::add_large(const BucketEdges& edges, const Count* below, Accumulator& accumulator,
                            RowSlices slices) noexcept {
    for (std::size_t l = 0; l < slices.size(); ++l) steps_[l] = EqualUnits::step(slices[l].n);
    EqualEntries* part = large_parts_.get();
    std::size_t n_entries = 0;
    cut_slices(edges, slices, below, [&](std::size_t l, std::uint32_t from, std::uint32_t n) {
        *part++ = {slices[l].begin + from, n, from, steps_[l]};
        n_entries += n;
    });
    accumulator.add_equal({large_parts_.get(), part}, Accumulator::is_dense(n_entries, n_atoms()));
}

std::size_t BucketMerge::n_atoms() const noexcept {
    std::size_t n = 0;
    for (std::size_t r = 0; r < runs_.n; ++r) n += ranges_[r].end - ranges_[r].begin;
    return n;
}

PartialPmf BucketMerge::merge(Accumulator& accumulator, std::size_t output, RowSlices slices,
                              const Request& request) noexcept {
    const RankBounds outermost = accumulator.bounds(slices);
    sum_buckets(output, slices, outermost, accumulator.kernels());
    marked_.fill(false);
    mark(masses_, request, marked_);
    const bool fine = !counts_.fine_edges.empty();
    if (fine) refine(output, slices, request, accumulator.kernels());
    // One more run costs as much as some entries of each leaf.
    const auto max_gap = static_cast<float>(4 / index_.entries_per_leaf());
    masses_.list_runs(marked_, max_gap, runs_);

    if (fine) {
        for (std::size_t r = 0; r < runs_.n; ++r) {
            runs_.runs[r] = {masses_.fine(runs_.runs[r].first), masses_.fine(runs_.runs[r].end)};
        }
        add_large(counts_.fine_edges[output], counts_.fine_below.data(), accumulator, slices);
    } else {
        const BucketEdges& edges = counts_.edges[output];
        std::visit(
            [&](const auto& below) {
                if (parts_) {
                    add_small(edges, below.data(), accumulator, slices);
                } else {
                    add_large(edges, below.data(), accumulator, slices);
                }
            },
            counts_.below);
    }
    const std::span<const double> atoms = index_.atoms(output);
    const double max_abs =
        std::max(std::fabs(atoms[outermost.first]), std::fabs(atoms[outermost.last]));
    return accumulator.read_partial(output, slices.size(), std::span(ranges_).first(runs_.n),
                                    max_abs);
}

void BucketMerge::sum_buckets(std::size_t output, RowSlices slices, RankBounds bounds,
                              const Kernels& kernels) noexcept {
    for (std::size_t l = 0; l < slices.size(); ++l) {
        entry_mass_[l] = whole_tree / static_cast<double>(slices[l].n);
    }
    std::visit(
        [&]<class Count>(const Lines<Count>& below) {
            static_assert(BucketMasses::block == sum_block);
            const auto sum = [&](std::size_t b, float* sums) {
                kernels.sum_counts<Count>()(below.data() + b, n_buckets, slices, entry_mass_.data(),
                                            sums);
            };
            masses_.assign(counts_.edges[output], slices.size(), bounds.first, bounds.last, sum);
        },
        counts_.below);
}

void BucketMerge::refine(std::size_t output, RowSlices slices, const Request& request,
                         const Kernels& kernels) noexcept {
    masses_.refine(counts_.fine_edges[output], marked_, [&](std::size_t b, float* sums) {
        kernels.sum_counts<std::uint16_t>()(counts_.fine_below.data() + b, n_fine_buckets, slices,
                                            entry_mass_.data(), sums);
    });
    marked_.fill(false);
    mark(masses_, request, marked_);
}

}  // namespace hdicore
