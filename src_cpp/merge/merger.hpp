// merge/merger.hpp: the leaves of a row -> the answers to a request, by merging as little as needed
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "merge/accumulator.hpp"
#include "merge/buckets.hpp"
#include "merge/leave_one_out.hpp"
#include "merge/row_counts.hpp"
#include "pmf/request.hpp"

namespace hdicore {

// How much of each distribution to merge. Results are the same bits with each.
enum class Strategy {
    automatic,  // what is sufficient and probably fastest
    whole,
    tails,    // wherever that is sufficient
    buckets,  // wherever that is sufficient and the index has bucket counts
};

// Answers a request row by row. Scratch memory of one thread, allocated at construction: 30 bytes
// for each atom of an output and, if the index has bucket counts, 1.5 kB a tree. Chooses the
// strategy, merges a row whole if less turns out not to be sufficient, and gives a strategy up that
// often fails.
class Merger {
  public:
    Merger(const LeafIndex& index, const Request& request, Strategy strategy,
           const Kernels& kernels);

    // Writes the results of row and output number `at`, of which these are the leaves, but for the
    // mean.
    void evaluate(std::size_t output, RowSlices slices, std::size_t at) noexcept;

    // The same and the mean, without training row `row`, which counts once in each of the leaves.
    void evaluate_without(std::size_t output, RowSlices slices, std::uint32_t row,
                          std::size_t at) noexcept;

    // Whether EntrySlice::leaf is looked at.
    bool needs_leaves() const noexcept { return strategy_ == Strategy::buckets; }

    // Fetches what evaluate will read first.
    void prefetch(RowSlices slices) const noexcept;

  private:
    Strategy first_choice(Strategy asked) const noexcept;
    Strategy second_choice() const noexcept;
    // False, with results undefined, if less than the whole distribution is not sufficient.
    bool evaluate_partial(std::size_t output, RowSlices slices, std::size_t at) noexcept;
    void evaluate_pmf(Pmf pmf, RowSlices slices, rank_t left_out, std::size_t at) noexcept;

    const LeafIndex& index_;
    const Request& request_;
    Needs needs_;
    const Kernels& kernels_;
    bool automatic_;
    Strategy strategy_;
    std::size_t n_tried_ = 0;
    std::size_t n_failed_ = 0;
    Accumulator accumulator_;
    std::optional<BucketMerge> buckets_;
    std::optional<LeaveOneOut> leave_one_out_;
    std::optional<RowCounts> row_counts_;
    std::optional<RegionSearch> regions_;
};

}  // namespace hdicore
