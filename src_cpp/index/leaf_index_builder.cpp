// index/leaf_index_builder.cpp: which pass comes next, and what it does with a block of trees
// SPDX-License-Identifier: BSD-3-Clause
#include "index/leaf_index_builder.hpp"

#include <string>
#include <utility>
#include <vector>

#include "base/refusal.hpp"

namespace hdicore {

LeafIndexBuilder::LeafIndexBuilder(const TrainingRows& rows, bool keep_row_weights,
                                   unsigned n_threads, Interruption& interruption)
    : context_(std::make_unique<BuildContext>(rows, keep_row_weights, n_threads, interruption)),
      statistics_(rows),
      places_(rows.sample_weight.empty() && !keep_row_weights && !rows.pooled &&
              rows.max_samples_leaf == 0) {}

void LeafIndexBuilder::add(const TreeBlock& block) {
    if (block.n_trees() == 0) return;
    const std::size_t n_trees = context_->rows.n_trees;
    if (block.first != n_added_ || block.n_trees() > n_trees - n_added_) {
        refuse("blocks must hold " + std::to_string(n_trees) + " trees in all");
    }
    const bool has_counts = !block.counts.empty();
    if (first_pass_ && n_added_ == 0) begin_first_pass(has_counts);
    if (has_counts_ != has_counts) {
        refuse("counts must be given for all blocks of trees or for none");
    }
    const std::vector<ColumnTotals> totals =
        first_pass_ ? context_->find_leaves(block) : context_->check_again(block);
    n_added_ += block.n_trees();
    if (pass_ == Pass::measure) measure(block, totals);
    if (pass_ == Pass::fill) storage_.fill(*context_, block, format_);
}

void LeafIndexBuilder::begin_first_pass(bool has_counts) {
    has_counts_ = has_counts;
    if (context_->rows.sample_weight.empty()) return;
    if (has_counts) {
        pass_ = Pass::count;
    } else {
        context_->row_weights = checked_row_weights(context_->rows, 1);
    }
}

void LeafIndexBuilder::measure(const TreeBlock& block, const std::vector<ColumnTotals>& totals) {
    if (places_ && !statistics_.may_place(totals)) stop_placing();
    if (places_) {
        storage_.place(*context_, block, totals, statistics_);
    } else {
        statistics_.measure(*context_, block);
    }
    statistics_.add_up(block);
}

void LeafIndexBuilder::stop_placing() {
    places_ = false;
    storage_.clear();
}

void LeafIndexBuilder::end_pass() {
    const std::size_t n_trees = context_->rows.n_trees;
    if (n_added_ != n_trees) {
        refuse("blocks must hold " + std::to_string(n_trees) + " trees in all, got " +
               std::to_string(n_added_));
    }
    first_pass_ = false;
    n_added_ = 0;
    if (pass_ == Pass::count) {
        context_->row_weights = checked_row_weights(context_->rows, context_->max_count);
        pass_ = Pass::measure;
    } else if (pass_ == Pass::measure) {
        format_ = statistics_.format(*context_);
        if (places_ && !format_.uniform) stop_placing();
        pass_ = places_ ? Pass::done : Pass::fill;
        if (!places_) storage_.allocate(*context_, format_, statistics_);
    } else {
        pass_ = Pass::done;
    }
}

BuiltArrays LeafIndexBuilder::take() {
    BuiltArrays built{storage_.take_arrays(*context_, format_), {}, format_.has_ties};
    if (context_->keep_row_weights) {
        built.row_weights = storage_.take_row_weights(*context_, format_);
    }
    std::vector<TargetOrder>().swap(context_->orders);
    return built;
}

}  // namespace hdicore
