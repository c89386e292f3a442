// merge/merger.cpp: the one place that chooses a strategy, counts failures and tries again
// SPDX-License-Identifier: BSD-3-Clause
#include "merge/merger.hpp"

#include "merge/tails.hpp"
#include "merge/whole.hpp"

namespace hdicore {

Merger::Merger(const LeafIndex& index, const Request& request, Strategy strategy,
               const Kernels& kernels)
    : index_(index),
      request_(request),
      needs_(needs(request)),
      kernels_(kernels),
      automatic_(strategy == Strategy::automatic),
      accumulator_(index, kernels) {
    if (index.tables().bucket_counts) buckets_.emplace(index);
    if (index.n_outputs() > 1) outputs_.emplace(index, kernels);
    strategy_ = first_choice(strategy);
    if (outputs_ && strategy_ == Strategy::buckets) vector_buckets_.emplace(index);
    if (vector_buckets_) failed_.reserve(index.n_outputs());
    if (index.row_weights()) leave_one_out_.emplace(index);
    if (needs_.observation) row_counts_.emplace(index);
    if (!request.regions.is_empty()) {
        regions_.emplace(index.n_vectors(), request.regions.shape.grid);
    }
}

// The strategy that reads fewest entries, of those that are sufficient, asked for and probably
// faster.
Strategy Merger::first_choice(Strategy asked) const noexcept {
    const DerivedTables& tables = index_.tables();
    const bool has_counts = tables.bucket_counts || tables.vector_counts;
    const bool sufficient = !needs_.every_atom && has_counts;
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
    const bool pays = needs_.min_share >= 0.6 &&
                      (outputs_ || index_.entries_per_leaf() >= kernels_.min_entries_for_tails);
    return sufficient && (pays || !automatic_) ? Strategy::tails : Strategy::whole;
}

void Merger::evaluate(RowSlices slices, std::size_t row) noexcept {
    // Ties and odd shapes fail row after row.
    if (automatic_ && n_tried_ >= 64 && 4 * n_failed_ > n_tried_) {
        strategy_ = strategy_ == Strategy::buckets ? second_choice() : Strategy::whole;
        n_tried_ = n_failed_ = 0;
    }
    if (strategy_ != Strategy::whole && !outputs_ && !slices.empty()) {
        ++n_tried_;
        if (evaluate_partial(slices, row)) return;
        ++n_failed_;
    }
    if (strategy_ == Strategy::buckets && outputs_ && !slices.empty()) {
        evaluate_vector_buckets(slices, row);
    } else {
        evaluate_added(add_whole(accumulator_, slices), slices, RowCounts::none, row);
    }
}

void Merger::evaluate_vector_buckets(RowSlices slices, std::size_t row) noexcept {
    vector_buckets_->assign(slices);
    failed_.clear();
    for (std::size_t o = 0; o < index_.n_outputs(); ++o) {
        const PartialPmf pmf = vector_buckets_->merge(accumulator_, o, request_);
        if (!read_partial(pmf, request_, row * index_.n_outputs() + o)) failed_.push_back(o);
    }
    n_tried_ += index_.n_outputs();
    n_failed_ += failed_.size();
    if (failed_.empty()) return;
    outputs_->assign(accumulator_, add_whole(accumulator_, slices));
    for (const std::size_t o : failed_) {
        read(outputs_->whole(o), request_, row * index_.n_outputs() + o, nullptr);
    }
}

bool Merger::evaluate_partial(RowSlices slices, std::size_t row) noexcept {
    if (strategy_ == Strategy::buckets) {
        return read_partial(buckets_->merge(accumulator_, slices, request_), request_, row);
    }
    const auto pmf = merge_tails(accumulator_, slices, needs_.min_share);
    return pmf && read_partial(*pmf, request_, row);
}

void Merger::evaluate_without(RowSlices slices, std::uint32_t left_out, std::size_t row) noexcept {
    const std::size_t n = index_.n_outputs();
    const std::span<double> means = request_.mean.results;
    const Added added = leave_one_out_->add(accumulator_, slices, left_out,
                                            means.empty() ? means : means.subspan(row * n, n));
    evaluate_added(added, slices, leave_one_out_->rank(left_out), row);
}

void Merger::evaluate_added(const Added& added, RowSlices slices, rank_t left_out,
                            std::size_t row) noexcept {
    RegionSearch* regions = regions_ ? &*regions_ : nullptr;
    if (outputs_) outputs_->assign(accumulator_, added);
    for (std::size_t o = 0; o < index_.n_outputs(); ++o) {
        const std::size_t at = row * index_.n_outputs() + o;
        if (strategy_ == Strategy::tails && outputs_ && added.n_trees > 0) {
            ++n_tried_;
            const auto pmf = outputs_->tails(o, needs_.min_share);
            if (pmf && read_partial(*pmf, request_, at)) continue;
            ++n_failed_;
        }
        Pmf pmf = outputs_ ? outputs_->whole(o) : accumulator_.read(o, added);
        if (row_counts_) {
            const auto ranks = outputs_ ? outputs_->ranks() : accumulator_.ranks();
            pmf.observation = row_counts_->observation(pmf, o, ranks, slices, left_out);
        }
        read(pmf, request_, at, regions);
    }
}

void Merger::prefetch(RowSlices slices) const noexcept {
    // Buckets are chosen first, so that which entries are read is not known yet.
    if (strategy_ != Strategy::buckets) accumulator_.prefetch(slices);
}

}  // namespace hdicore
