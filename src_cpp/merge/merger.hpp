// merge/merger.hpp: the leaves of a row -> the answers to a request, by merging as little as needed
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "merge/accumulator.hpp"
#include "merge/buckets.hpp"
#include "merge/leave_one_out.hpp"
#include "merge/output_merge.hpp"
#include "merge/row_counts.hpp"
#include "merge/vector_buckets.hpp"
#include "pmf/request.hpp"

namespace hdicore {

// How much of each distribution to merge. Results are the same bits with each.
enum class Strategy {
    automatic,  // what is sufficient and probably fastest
    whole,
    tails,    // wherever that is sufficient
    buckets,  // wherever that is sufficient and the index has counts by bucket
};

// Answers a request row by row. Scratch memory of one thread, allocated at construction: 30 bytes
// for each target vector, 76 with several outputs, and, if the index has bucket counts, 1.5
// kB a tree. Chooses the strategy, merges a row whole if less turns out not to be sufficient, and
// gives a strategy up that often fails.
class Merger {
  public:
    Merger(const LeafIndex& index, const Request& request, Strategy strategy,
           const Kernels& kernels);

    // Writes the results of row number `row` of those asked for, of which these are the leaves, but
    // for the mean.
    void evaluate(RowSlices slices, std::size_t row) noexcept;

    // The same and the mean, without training row `left_out`, which counts once in each of the
    // leaves.
    void evaluate_without(RowSlices slices, std::uint32_t left_out, std::size_t row) noexcept;

    // Whether EntrySlice::leaf is looked at.
    bool needs_leaves() const noexcept { return strategy_ == Strategy::buckets; }

    // Fetches what evaluate will read first.
    void prefetch(RowSlices slices) const noexcept;

  private:
    Strategy first_choice(Strategy asked) const noexcept;
    Strategy second_choice() const noexcept;
    // False, with results undefined, if less than the whole distribution is not sufficient.
    bool evaluate_partial(RowSlices slices, std::size_t row) noexcept;
    // Of several outputs.
    void evaluate_vector_buckets(RowSlices slices, std::size_t row) noexcept;
    // All outputs of what was added, which was of these slices but for a row with the target vector
    // `left_out`.
    void evaluate_added(const Added& added, RowSlices slices, rank_t left_out,
                        std::size_t row) noexcept;

    const LeafIndex& index_;
    const Request& request_;
    Needs needs_;
    const Kernels& kernels_;
    bool automatic_;
    Strategy strategy_ = Strategy::whole;
    std::size_t n_tried_ = 0;
    std::size_t n_failed_ = 0;
    Accumulator accumulator_;
    std::optional<BucketMerge> buckets_;
    std::optional<OutputMerge> outputs_;  // if there are several
    std::optional<VectorBuckets> vector_buckets_;
    std::vector<std::size_t> failed_;  // outputs of a row that need more than buckets
    std::optional<LeaveOneOut> leave_one_out_;
    std::optional<RowCounts> row_counts_;
    std::optional<RegionSearch> regions_;
};

}  // namespace hdicore
