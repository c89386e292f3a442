// index/leaf_index_builder.cpp: the passes over the trees, step by step
// SPDX-License-Identifier: BSD-3-Clause
#include "index/leaf_index_builder.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/parallel.hpp"

namespace hdicore {
namespace {

[[noreturn]] void refuse(const std::string& why) {
    throw std::invalid_argument(why);
}

// Makes room for n more elements. Of `total` elements a `share` will then be there: memory is
// reserved for all at once, as growing it later would copy what is there.
template <class T>
void extend(std::vector<T>& values, std::size_t n, double share, Interruption& interruption) {
    const std::size_t size = values.size() + n;
    if (size > values.capacity()) {
        const double all = static_cast<double>(size) / share;
        values.reserve(std::max(size, static_cast<std::size_t>(share < 1 ? all * 1.02 : all)));
    }
    grow_in_pieces(values, size, interruption);
}

template <class T>
void release(std::vector<T>& values) {
    std::vector<T>().swap(values);
}

}  // namespace

LeafIndexBuilder::LeafIndexBuilder(const TrainingRows& rows, bool keep_row_weights,
                                   unsigned n_threads, Interruption& interruption)
    : rows_(rows),
      keep_row_weights_(keep_row_weights),
      n_threads_(n_threads),
      interruption_(interruption) {
    LeafIndex::check_number_of_trees(rows.n_trees);
    if (keep_row_weights && rows.max_samples_leaf > 0) {
        refuse(
            "max_samples_leaf must not be given with keep_row_weights: a row that was not kept in "
            "a leaf cannot be left out of it");
    }
    check_sizes(rows);
    order_targets();
    trees_.resize(rows.n_trees);
    for (LeafStatistics& tree : trees_) tree.n_distinct.assign(rows.n_outputs, 0);
    places_ = rows.sample_weight == nullptr && !keep_row_weights && !rows.pooled &&
              rows.max_samples_leaf == 0 && rows.n_outputs == 1;
    tree_begin_.assign(1, 0);
}

void LeafIndexBuilder::order_targets() {
    orders_.reserve(rows_.n_outputs);
    for (std::size_t o = 0; o < rows_.n_outputs; ++o) orders_.emplace_back(rows_.n_rows);
    const auto make_worker = [&]() -> Worker {
        return [&](std::size_t o) { orders_[o].assign(rows_, o, interruption_); };
    };
    parallel_for(rows_.n_outputs, n_threads_, make_worker, interruption_);
    for (const TargetOrder& order : orders_) {
        atoms_.insert(atoms_.end(), order.atoms.begin(), order.atoms.end());
        atom_offsets_.push_back(static_cast<offset_t>(atoms_.size()));
        max_atoms_ = std::max(max_atoms_, order.atoms.size());
    }
}

void LeafIndexBuilder::add(const TreeBlock& block) {
    if (block.n_trees == 0) return;
    if (block.first != n_added_ || block.n_trees > rows_.n_trees - n_added_) {
        refuse("blocks must hold " + std::to_string(rows_.n_trees) + " trees in all");
    }
    if (first_pass_ && n_added_ == 0) has_counts_ = block.counts != nullptr;
    if (has_counts_ != (block.counts != nullptr)) {
        refuse("counts must be given for all blocks of trees or for none");
    }
    if (first_pass_ && n_added_ == 0 && rows_.sample_weight != nullptr) {
        if (block.counts != nullptr) {
            pass_ = Pass::count;
        } else {
            row_weights_ = checked_row_weights(rows_, 1);
        }
    }
    const std::vector<ColumnTotals> totals = check(block);
    n_added_ += block.n_trees;
    if (pass_ == Pass::count) return;
    if (pass_ == Pass::fill) {
        fill(block);
        return;
    }
    if (places_ && !may_place(totals)) stop_placing();
    if (places_) {
        place(block, totals);
    } else {
        measure(block);
    }
    sum_up(block.first, block.n_trees);
}

std::vector<ColumnTotals> LeafIndexBuilder::check(const TreeBlock& block) {
    std::vector<ColumnTotals> totals = checked_totals(rows_, block, interruption_);
    for (std::size_t k = 0; k < block.n_trees; ++k) {
        const std::size_t t = block.first + k;
        if (!first_pass_) {
            if (totals[k].n_leaves > leaf_offsets_[t + 1] - leaf_offsets_[t]) refuse_changed_rows();
            if (totals[k].max_count > max_count_) refuse_changed_rows();
            continue;
        }
        leaf_offsets_.push_back(leaf_offsets_.back() +
                                checked_n_leaves(rows_, t, totals[k].n_leaves));
        max_count_ = std::max(max_count_, totals[k].max_count);
    }
    if (first_pass_ && rows_.only_known_leaves) mark_known_leaves(block);
    return totals;
}

void LeafIndexBuilder::mark_known_leaves(const TreeBlock& block) {
    known_leaves_.resize((n_leaves() + 63) / 64, 0);
    for (std::size_t k = 0; k < block.n_trees; ++k) {
        const offset_t before = leaf_offsets_[block.first + k];
        const offset_t n = leaf_offsets_[block.first + k + 1] - before;
        in_pieces(rows_.n_rows, interruption_, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                const leaf_t leaf = block.leaf(i, k);
                // Checked before, but it may have been changed since.
                if (leaf < 0 || leaf >= n) refuse_changed_rows();
                const auto bit = static_cast<std::size_t>(before + leaf);
                known_leaves_[bit / 64] |= std::uint64_t{1} << bit % 64;
            }
        });
    }
}

// Placing takes as much memory as an index of rows that weigh alike; others may take less.
bool LeafIndexBuilder::may_place(const std::vector<ColumnTotals>& totals) const noexcept {
    const bool few_enough = std::ranges::all_of(totals, [&](const ColumnTotals& tree) {
        return tree.n_counted <= 2 * rows_.n_rows &&
               tree.n_counted <= std::numeric_limits<std::uint32_t>::max();
    });
    return few_enough && n_counted_ <= 2 * n_distinct_ && max_counted_ <= max_uniform_leaf &&
           !needs_wide_units(max_counted_);
}

void LeafIndexBuilder::stop_placing() {
    places_ = false;
    release(short_ranks_);
    release(ranks_);
    release(leaf_begin_);
    tree_begin_.assign(1, 0);
}

void LeafIndexBuilder::place(const TreeBlock& block, const std::vector<ColumnTotals>& totals) {
    count_t n_entries = 0;
    for (const ColumnTotals& tree : totals) {
        n_entries += tree.n_counted;
        tree_begin_.push_back(tree_begin_.back() + static_cast<offset_t>(tree.n_counted));
    }
    const double share = static_cast<double>(n_added_) / static_cast<double>(rows_.n_trees);
    narrow_ranks() ? extend(short_ranks_, n_entries, share, interruption_)
                   : extend(ranks_, n_entries, share, interruption_);
    leaf_begin_.resize(n_leaves() + n_added_);
    in_parallel(block.n_trees, block, true, [&](TreeEntries& entries, std::size_t k) {
        const std::size_t t = block.first + k;
        const TreeColumn column = block.column(k, n_leaves(t));
        const offset_t at = tree_begin_[t];
        const count_t n = totals[k].n_counted;
        const Placed placed = narrow_ranks()
                                  ? entries.place(column, orders_[0], n, short_ranks_.data() + at)
                                  : entries.place(column, orders_[0], n, ranks_.data() + at);
        LeafStatistics& tree = trees_[t];
        tree.n_counted = n;
        tree.max_counted = tree.max_weight = placed.max_counted;
        tree.n_distinct[0] = placed.n_distinct;
        store_leaf_begin(entries, 0, t);
    });
}

void LeafIndexBuilder::measure(const TreeBlock& block) {
    in_parallel(block.n_trees, block, false, [&](TreeEntries& entries, std::size_t k) {
        const std::size_t t = block.first + k;
        entries.measure(block.column(k, n_leaves(t)), orders_, trees_[t]);
    });
}

void LeafIndexBuilder::sum_up(std::size_t first, std::size_t n_trees) {
    for (std::size_t t = first; t < first + n_trees; ++t) {
        const LeafStatistics& tree = trees_[t];
        n_counted_ += tree.n_counted * rows_.n_outputs;
        n_distinct_ = std::accumulate(tree.n_distinct.begin(), tree.n_distinct.end(), n_distinct_);
        max_counted_ = std::max(max_counted_, tree.max_counted);
        max_weight_ = std::max(max_weight_, tree.max_weight);
    }
}

void LeafIndexBuilder::end_pass() {
    if (n_added_ != rows_.n_trees) {
        refuse("blocks must hold " + std::to_string(rows_.n_trees) + " trees in all, got " +
               std::to_string(n_added_));
    }
    first_pass_ = false;
    n_added_ = 0;
    if (pass_ == Pass::count) {
        row_weights_ = checked_row_weights(rows_, max_count_);
        pass_ = Pass::measure;
    } else if (pass_ == Pass::measure) {
        choose_storage();
        if (places_ && !uniform_) stop_placing();
        pass_ = places_ ? Pass::done : Pass::fill;
        if (!places_) allocate();
    } else {
        pass_ = Pass::done;
    }
}

bool LeafIndexBuilder::needs_wide_units(count_t max_counted) const noexcept {
    return max_counted >= ((count_t{1} << 26) + rows_.n_trees - 1) / rows_.n_trees;
}

void LeafIndexBuilder::fill(const TreeBlock& block) {
    const std::size_t n_tasks = rows_.n_outputs * block.n_trees;
    in_parallel(n_tasks, block, uniform_, [&](TreeEntries& entries, std::size_t task) {
        const std::size_t o = task / block.n_trees;
        const std::size_t k = task % block.n_trees;
        const std::size_t t = block.first + k;
        const TreeColumn column = block.column(k, n_leaves(t));
        const offset_t at = tree_begin_[o * rows_.n_trees + t];
        const auto n_entries =
            static_cast<std::size_t>(tree_begin_[o * rows_.n_trees + t + 1] - at);
        if (uniform_ && narrow_ranks()) {
            entries.place(column, orders_[o], n_entries, short_ranks_.data() + at);
        } else if (uniform_) {
            entries.place(column, orders_[o], n_entries, ranks_.data() + at);
        } else {
            const int shift = wide_ ? wide_shift : narrow_shift;
            entries.group(column, orders_[o], shift, pool_);
            if (entries.ranks.size() != n_entries) refuse_changed_rows();
            store(entries, at);
        }
        store_leaf_begin(entries, o, t);
    });
}

// Calls use(entries, task) for each task, with scratch memory of its own on each thread.
template <class Use>
void LeafIndexBuilder::in_parallel(std::size_t n_tasks, const TreeBlock& block, bool places,
                                   const Use& use) {
    std::size_t max_leaves = 0;
    for (std::size_t k = 0; k < block.n_trees; ++k) {
        max_leaves = std::max(max_leaves, n_leaves(block.first + k));
    }
    const auto make_worker = [&]() -> Worker {
        const auto entries =
            std::make_shared<TreeEntries>(rows_, row_weights_, max_leaves, places, interruption_);
        return [&, entries](std::size_t task) { use(*entries, task); };
    };
    parallel_for(n_tasks, n_threads_, make_worker, interruption_);
}

LeafIndex::LeafIndex(LeafIndexBuilder builder) {
    if (builder.keep_row_weights_) row_weights_ = builder.take_row_weights();
    has_ties_ = builder.has_ties_;
    arrays_ = builder.take_arrays();
    measure_leaves();
    compare_outputs();
    count_buckets(builder.n_threads_, builder.interruption_);
}

LeafIndex::LeafIndex(const TrainingRows& rows, bool keep_row_weights, unsigned n_threads,
                     Interruption& interruption)
    : LeafIndex([&] {
          LeafIndexBuilder builder(rows, keep_row_weights, n_threads, interruption);
          const TreeBlock all{0, rows.n_trees, rows.leaves, rows.counts, rows.n_trees, 1};
          while (builder.wants_trees()) {
              builder.add(all);
              builder.end_pass();
          }
          return builder;
      }()) {}

}  // namespace hdicore
