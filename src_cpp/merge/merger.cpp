// merge/merger.cpp: the one place that chooses a strategy, counts failures and tries again
// SPDX-License-Identifier: BSD-3-Clause
#include "merge/merger.hpp"

#include "merge/tails.hpp"

namespace hdicore {

Merger::Merger(const LeafIndex& index, const Request& request, Strategy strategy,
               const Kernels& kernels)
    : index_(index),
      request_(request),
      needs_(needs(request)),
      kernels_(kernels),
      automatic_(strategy == Strategy::automatic),
      strategy_(first_choice(strategy)),
      accumulator_(index, kernels) {
    if (index.tables().bucket_counts) buckets_.emplace(index);
    if (index.row_weights()) leave_one_out_.emplace(index);
    if (needs_.observation) row_counts_.emplace(index);
    if (!request.regions.is_empty()) {
        regions_.emplace(index.max_atoms(), request.regions.shape.grid);
    }
}

// The strategy that reads fewest entries, of those that are sufficient, asked for and probably
// faster.
Strategy Merger::first_choice(Strategy asked) const noexcept {
    if (index_.arrays().censored()) return Strategy::whole;
    const bool sufficient = !needs_.every_atom && index_.tables().bucket_counts;
    const bool pays =
        needs_.few_buckets && index_.entries_per_leaf() >= kernels_.min_entries_for_buckets;
    if (sufficient && (asked == Strategy::buckets || (automatic_ && pays))) {
        return Strategy::buckets;
    }
    return asked == Strategy::tails || automatic_ ? second_choice() : Strategy::whole;
}

Strategy Merger::second_choice() const noexcept {
    // Tails count on 2^shift units a tree.
    const bool sufficient = needs_.min_share > 0.5 && !index_.arrays().pooled;
    const bool pays =
        needs_.min_share >= 0.6 && index_.entries_per_leaf() >= kernels_.min_entries_for_tails;
    return sufficient && (pays || !automatic_) ? Strategy::tails : Strategy::whole;
}

void Merger::evaluate(std::size_t output, RowSlices slices, std::size_t at) noexcept {
    // Ties and odd shapes fail row after row.
    if (automatic_ && n_tried_ >= 64 && 4 * n_failed_ > n_tried_) {
        strategy_ = strategy_ == Strategy::buckets ? second_choice() : Strategy::whole;
        n_tried_ = n_failed_ = 0;
    }
    if (strategy_ != Strategy::whole && !slices.empty()) {
        ++n_tried_;
        if (evaluate_partial(output, slices, at)) return;
        ++n_failed_;
    }
    Pmf pmf = merge_whole(accumulator_, output, slices);
    if (index_.arrays().censored()) pmf = accumulator_.to_survival(pmf);
    evaluate_pmf(pmf, slices, RowCounts::none, at);
}

bool Merger::evaluate_partial(std::size_t output, RowSlices slices, std::size_t at) noexcept {
    if (strategy_ == Strategy::buckets) {
        return read_partial(buckets_->merge(accumulator_, output, slices, request_), request_, at);
    }
    const auto pmf = merge_tails(accumulator_, output, slices, needs_.min_share);
    return pmf && read_partial(*pmf, request_, at);
}

void Merger::evaluate_without(std::size_t output, RowSlices slices, std::uint32_t row,
                              std::size_t at) noexcept {
    double* mean = request_.mean.is_empty() ? nullptr : &request_.mean.results[at];
    evaluate_pmf(leave_one_out_->merge(accumulator_, output, slices, row, mean), slices,
                 leave_one_out_->rank(output, row), at);
}

void Merger::evaluate_pmf(Pmf pmf, RowSlices slices, rank_t left_out, std::size_t at) noexcept {
    if (row_counts_) {
        pmf.observation = row_counts_->observation(pmf, accumulator_.ranks(), slices, left_out);
    }
    read(pmf, request_, at, regions_ ? &*regions_ : nullptr);
}

void Merger::prefetch(RowSlices slices) const noexcept {
    // Buckets are chosen first, so that which entries are read is not known yet.
    if (strategy_ != Strategy::buckets) accumulator_.prefetch(slices);
}

}  // namespace hdicore
