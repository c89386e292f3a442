// merge/buckets.hpp: the entries of a row's leaves in some buckets -> its distribution there
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "merge/accumulator.hpp"
#include "pmf/bucket_masses.hpp"
#include "pmf/request.hpp"

namespace hdicore {

// Finds out from the bucket counts of the leaves which buckets may hold the answers to a request,
// and merges the entries in these. For an index that has bucket counts. Scratch memory of one
// thread.
class BucketMerge {
  public:
    explicit BucketMerge(const LeafIndex& index);

    // The request must not need every atom, and there is at least one slice.
    // O(slices * n_buckets + slices * runs + entries + atoms / 64).
    PartialPmf merge(Accumulator& accumulator, std::size_t output, RowSlices slices,
                     const Request& request) noexcept;

  private:
    void sum_buckets(std::size_t output, RowSlices slices, RankBounds bounds,
                     const Kernels& kernels) noexcept;
    // Replaces the marked buckets by fine ones, and marks those that may hold the answers.
    void refine(std::size_t output, RowSlices slices, const Request& request,
                const Kernels& kernels) noexcept;
    // Calls use(slice number, position of the first entry, number of entries) for the entries of
    // each slice in each of the runs, and fills ranges_.
    template <class Count, class Use>
    void cut_slices(const BucketEdges& edges, RowSlices slices, const Count* below,
                    const Use& use) noexcept;
    // Both add the entries in the runs: with units from the table, and of leaves of any size.
    template <class Count>
    void add_small(const BucketEdges& edges, const Count* below, Accumulator& accumulator,
                   RowSlices slices) noexcept;
    template <class Count>
    void add_large(const BucketEdges& edges, const Count* below, Accumulator& accumulator,
                   RowSlices slices) noexcept;

    // Number of atoms in the runs.
    std::size_t n_atoms() const noexcept;

    const LeafIndex& index_;
    const BucketCounts& counts_;
    BucketMasses masses_;
    BucketSet marked_;
    BucketRuns runs_;
    std::vector<double> entry_mass_;  // (n_trees,) units of an entry of each slice
    // (n_trees * max_runs,) one of the two: entries in the runs
    std::unique_ptr<EntrySlice[]> parts_;
    std::unique_ptr<EqualEntries[]> large_parts_;
    std::vector<std::uint64_t> steps_;  // (n_trees,) EqualUnits::step of each slice
    std::array<RankRange, BucketRuns::max_runs> ranges_;
};

}  // namespace hdicore
