// merge/buckets.cpp: sums bucket counts, chooses buckets, and cuts the leaves there
// SPDX-License-Identifier: BSD-3-Clause
#include "merge/buckets.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <variant>

namespace hdicore {
namespace {

constexpr auto whole_tree = static_cast<double>(mass_t{1} << narrow_shift);

}  // namespace

BucketMerge::BucketMerge(const LeafIndex& index)
    : index_(index), counts_(*index.bucket_counts()), entry_mass_(index.n_trees()) {
    const std::size_t max_parts = index.n_trees() * BucketRuns::max_runs;
    if (index.max_leaf_size() <= max_tabulated_leaf) {
        parts_ = std::make_unique_for_overwrite<EntrySlice[]>(max_parts);
    } else {
        large_parts_ = std::make_unique_for_overwrite<EqualEntries[]>(max_parts);
        steps_.resize(index.n_trees());
    }
    if (counts_.below.width() != CountRows::Width::mixed) return;
    for (Part* part : {&narrow_, &wide_}) {
        part->slices.reserve(index.n_trees());
        part->entry_mass.reserve(index.n_trees());
    }
}

template <class Count, class Use>
void BucketMerge::cut_slices(const BucketEdges& edges, RowSlices slices, const Count& count,
                             const Use& use) noexcept {
    for (std::size_t r = 0; r < runs_.n; ++r) {
        const auto [first, end] = runs_.runs[r];
        mass_t mass = 0;
        for (std::size_t l = 0; l < slices.size(); ++l) {
            const EntrySlice& slice = slices[l];
            const std::uint32_t from = count(slice, first);
            const std::uint32_t to = end == edges.size() ? slice.n : count(slice, end);
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
void BucketMerge::add_runs(const BucketEdges& edges, RowSlices slices, const Count& count,
                           Accumulator& accumulator) noexcept {
    if (parts_) {
        EntrySlice* part = parts_.get();
        cut_slices(edges, slices, count, [&](std::size_t l, std::uint32_t from, std::uint32_t n) {
            const EntrySlice& slice = slices[l];
            *part++ = {slice.begin + from, slice.units + from, n, slice.leaf};
        });
        const RowSlices parts(parts_.get(), part);
        accumulator.prefetch(parts);
        accumulator.add(parts);
        return;
    }
    for (std::size_t l = 0; l < slices.size(); ++l) steps_[l] = EqualUnits::step(slices[l].n);
    EqualEntries* part = large_parts_.get();
    std::size_t n_entries = 0;
    cut_slices(edges, slices, count, [&](std::size_t l, std::uint32_t from, std::uint32_t n) {
        *part++ = {slices[l].begin + from, n, from, steps_[l]};
        n_entries += n;
    });
    std::size_t n_atoms = 0;
    for (std::size_t r = 0; r < runs_.n; ++r) n_atoms += ranges_[r].end - ranges_[r].begin;
    accumulator.add_equal({large_parts_.get(), part}, Accumulator::is_dense(n_entries, n_atoms));
}

PartialPmf BucketMerge::merge(Accumulator& accumulator, std::size_t output, RowSlices slices,
                              const Request& request) noexcept {
    const BucketBounds outermost = bounds(slices);
    sum_buckets(output, slices, outermost, accumulator.kernels());
    marked_.fill(false);
    mark(masses_, request, marked_);
    const bool fine = !counts_.fine_edges.empty();
    if (fine) refine(output, slices, request, accumulator.kernels());
    // One more run costs as much as some entries of each leaf.
    const auto max_gap = static_cast<float>(4 / index_.entries_per_leaf());
    masses_.list_runs(marked_, max_gap, runs_);

    const CountRows& below = counts_.below;
    const auto add = [&](const BucketEdges& edges, const auto& count) {
        add_runs(edges, slices, count, accumulator);
    };
    if (fine) {
        for (std::size_t r = 0; r < runs_.n; ++r) {
            runs_.runs[r] = {masses_.fine(runs_.runs[r].first), masses_.fine(runs_.runs[r].end)};
        }
        add(counts_.fine_edges[output], [&](const EntrySlice& slice, std::size_t b) {
            return std::uint32_t{counts_.fine_below[slice.leaf * n_fine_buckets + b]};
        });
    } else if (below.width() == CountRows::Width::narrow) {
        add(counts_.edges[output], [rows = below.narrow()](const EntrySlice& slice, std::size_t b) {
            return std::uint32_t{rows[slice.leaf * n_buckets + b]};
        });
    } else if (below.width() == CountRows::Width::wide) {
        add(counts_.edges[output], [rows = below.wide()](const EntrySlice& slice, std::size_t b) {
            return std::uint32_t{rows[slice.leaf * n_buckets + b]};
        });
    } else {
        add(counts_.edges[output], [&](const EntrySlice& slice, std::size_t b) {
            const std::size_t place = below.place(slice.leaf);
            return below.is_wide(slice.n) ? std::uint32_t{below.wide()[place * (n_buckets / 2) + b]}
                                          : std::uint32_t{below.narrow()[place * n_buckets + b]};
        });
    }
    const std::span<const double> atoms = index_.atoms(output);
    const RankBounds ranks = rank_bounds(slices, outermost);
    const double max_abs = std::max(std::fabs(atoms[ranks.first]), std::fabs(atoms[ranks.last]));
    return accumulator.read_partial(output, slices.size(), std::span(ranges_).first(runs_.n),
                                    max_abs);
}

BucketMerge::BucketBounds BucketMerge::bounds(RowSlices slices) const noexcept {
    BucketBounds found{n_buckets, 0};
    for (const EntrySlice& slice : slices) {
        const BucketCounts::Ends ends = counts_.ends[slice.leaf];
        found.first = std::min<std::size_t>(found.first, ends.first);
        found.last = std::max<std::size_t>(found.last, ends.last);
    }
    return found;
}

RankBounds BucketMerge::rank_bounds(RowSlices slices, BucketBounds bounds) const noexcept {
    return std::visit(
        [&](const auto& ranks) {
            RankBounds found{std::numeric_limits<rank_t>::max(), 0};
            for (const EntrySlice& slice : slices) {
                const BucketCounts::Ends ends = counts_.ends[slice.leaf];
                if (ends.first == bounds.first) {
                    found.first = std::min<rank_t>(found.first, ranks[slice.begin]);
                }
                if (ends.last == bounds.last) {
                    found.last = std::max<rank_t>(found.last, ranks[slice.begin + slice.n - 1]);
                }
            }
            return found;
        },
        index_.arrays().ranks);
}

void BucketMerge::part_slices(RowSlices slices) noexcept {
    for (Part* part : {&narrow_, &wide_}) {
        part->slices.clear();
        part->entry_mass.clear();
    }
    for (std::size_t l = 0; l < slices.size(); ++l) {
        Part& part = counts_.below.is_wide(slices[l].n) ? wide_ : narrow_;
        part.slices.push_back(slices[l]);
        part.slices.back().leaf = counts_.below.place(slices[l].leaf);
        part.entry_mass.push_back(entry_mass_[l]);
    }
}

void BucketMerge::sum_buckets(std::size_t output, RowSlices slices, BucketBounds bounds,
                              const Kernels& kernels) noexcept {
    static_assert(BucketMasses::block == sum_block);
    for (std::size_t l = 0; l < slices.size(); ++l) {
        entry_mass_[l] = whole_tree / static_cast<double>(slices[l].n);
    }
    const CountRows& below = counts_.below;
    const auto assign = [&](const auto& sum) {
        masses_.assign(counts_.edges[output], slices.size(), bounds.first, bounds.last, sum);
    };
    if (below.width() == CountRows::Width::narrow) {
        assign([&](std::size_t b, float* sums) {
            kernels.sum_counts<std::uint8_t>()(below.narrow() + b, n_buckets, slices,
                                               entry_mass_.data(), sums);
        });
    } else if (below.width() == CountRows::Width::wide) {
        assign([&](std::size_t b, float* sums) {
            kernels.sum_counts<std::uint16_t>()(below.wide() + b, n_buckets, slices,
                                                entry_mass_.data(), sums);
        });
    } else {
        part_slices(slices);
        assign([&](std::size_t b, float* sums) {
            std::array<float, sum_block> wide_sums;
            kernels.sum_counts<std::uint16_t>()(below.wide() + b, n_buckets / 2, wide_.slices,
                                                wide_.entry_mass.data(), wide_sums.data());
            kernels.sum_counts<std::uint8_t>()(below.narrow() + b, n_buckets, narrow_.slices,
                                               narrow_.entry_mass.data(), sums);
            for (std::size_t k = 0; k < sum_block; ++k) sums[k] += wide_sums[k];
        });
    }
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
