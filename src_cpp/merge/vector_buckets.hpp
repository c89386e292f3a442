// merge/vector_buckets.hpp: what BucketMerge is for one output, for each of several
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "merge/accumulator.hpp"
#include "merge/buckets.hpp"
#include "pmf/bucket_masses.hpp"
#include "pmf/request.hpp"

namespace hdicore {

// Finds out which buckets of an output may hold the answers to a request, and merges its entries in
// these. For an index that has vector counts. Scratch memory of one thread.
class VectorBuckets {
  public:
    explicit VectorBuckets(const LeafIndex& index);

    // Takes the leaves of a row, of which there is at least one.
    void assign(RowSlices slices) noexcept;

    // The distribution of one output where the answers to a request may lie, which must not need
    // every atom. O(slices * n_buckets + slices * runs + entries + atoms / 64).
    PartialPmf merge(Accumulator& accumulator, std::size_t output, const Request& request) noexcept;

  private:
    // Adds the entries of the runs, and fills ranges_.
    template <class Rank, class Count>
    void add(std::size_t output, const Rank* ranks, const Count* below,
             Accumulator& accumulator) noexcept;

    const LeafIndex& index_;
    const VectorCounts& counts_;
    // Of the row taken last:
    RowSlices slices_;
    std::vector<mass_t> each_;  // (n_trees,) UnitsAlike of each slice
    std::vector<mass_t> left_over_;
    std::vector<double> entry_mass_;  // (n_trees,) as BucketMasses counts it
    std::vector<AlikeEntries> parts_;
    std::vector<rank_t> first_rank_;  // (n_trees, n_outputs) of the first vector of each slice
    BucketMasses masses_;
    BucketSet marked_;
    BucketRuns runs_;
    std::array<RankRange, BucketRuns::max_runs> ranges_;
};

}  // namespace hdicore
