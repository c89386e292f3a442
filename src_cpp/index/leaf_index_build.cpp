// index/leaf_index_build.cpp: builds an index from training rows, step by step
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "base/parallel.hpp"
#include "index/leaf_index.hpp"
#include "index/tree_entries.hpp"

namespace hdicore {
namespace {

// Whether the lightest row's share of `total` is less than one unit of narrow_shift.
bool lacks_a_unit(std::span<const count_t> row_weights, count_t total) noexcept {
    count_t lightest = total;
    for (const count_t weight : row_weights) {
        if (weight > 0) lightest = std::min(lightest, weight);
    }
    return total > 0 && floor_units(lightest, total, narrow_shift) == 0;
}

// The arrays of an index while it is built. The steps are called in the order of declaration.
class Builder {
  public:
    Builder(const TrainingRows& rows, bool keep_row_weights, unsigned n_threads,
            Interruption& interruption)
        : rows_(rows),
          keep_row_weights_(keep_row_weights),
          n_threads_(n_threads),
          interruption_(interruption),
          leaf_offsets_(checked_leaf_offsets(rows, interruption)),
          row_weights_(checked_row_weights(rows)) {}

    // Sorts the targets of each output, and lists the distinct ones.
    void order_targets() {
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

    // Counts rows, distinct targets and weights in the leaves of each tree.
    void measure_leaves() {
        trees_.resize(rows_.n_trees);
        for (LeafStatistics& tree : trees_) tree.n_distinct.assign(rows_.n_outputs, 0);
        in_parallel(rows_.n_trees, [&](TreeEntries& entries, std::size_t t) {
            entries.measure(t, n_leaves(t), orders_, trees_[t]);
        });
    }

    // Decides which arrays there are, of which width, and where the entries of each tree begin.
    void choose_storage() {
        count_t n_counted = 0;
        count_t n_distinct = 0;
        count_t max_weight = 0;
        for (const LeafStatistics& tree : trees_) {
            n_counted += tree.n_counted * rows_.n_outputs;
            n_distinct =
                std::accumulate(tree.n_distinct.begin(), tree.n_distinct.end(), n_distinct);
            max_counted_ = std::max(max_counted_, tree.max_counted);
            max_weight = std::max(max_weight, tree.max_weight);
        }
        pool_ = rows_.pooled ? std::bit_ceil(std::max<count_t>(max_weight, 1)) : 0;
        wide_ = max_counted_ >= ((count_t{1} << 26) + rows_.n_trees - 1) / rows_.n_trees ||
                lacks_a_unit(row_weights_, std::max(max_weight, pool_));
        has_ties_ = n_counted > n_distinct;
        // Where many rows of a leaf share a target, merging them saves more than units cost.
        uniform_ = row_weights_.empty() && !keep_row_weights_ && !wide_ && !rows_.pooled &&
                   max_counted_ <= max_uniform_leaf && n_counted <= 2 * n_distinct;

        tree_begin_.assign(rows_.n_outputs * rows_.n_trees + 1, 0);
        for (std::size_t block = 0; block + 1 < tree_begin_.size(); ++block) {
            const LeafStatistics& tree = trees_[block % rows_.n_trees];
            tree_begin_[block + 1] =
                tree_begin_[block] +
                static_cast<offset_t>(uniform_ ? tree.n_counted
                                               : tree.n_distinct[block / rows_.n_trees]);
        }
    }

    // Groups the rows of each tree and output into entries.
    void fill_entries() {
        allocate();
        in_parallel(rows_.n_outputs * rows_.n_trees, [&](TreeEntries& entries, std::size_t block) {
            const std::size_t t = block % rows_.n_trees;
            const TargetOrder& order = orders_[block / rows_.n_trees];
            const offset_t at = tree_begin_[block];
            const auto n_entries = static_cast<std::size_t>(tree_begin_[block + 1] - at);
            if (uniform_ && narrow_ranks()) {
                entries.place(t, n_leaves(t), order, n_entries, short_ranks_.data() + at);
            } else if (uniform_) {
                entries.place(t, n_leaves(t), order, n_entries, ranks_.data() + at);
            } else {
                const int shift = wide_ ? wide_shift : narrow_shift;
                entries.group(t, n_leaves(t), order, shift, pool_);
                if (entries.ranks.size() != n_entries) refuse_changed_rows();
                store(entries, at);
            }
            const std::size_t slot = block / rows_.n_trees * (n_leaves() + rows_.n_trees) +
                                     static_cast<std::size_t>(leaf_offsets_[t]) + t;
            std::copy(entries.leaf_begin.begin(), entries.leaf_begin.end(),
                      leaf_begin_.begin() + static_cast<offset_t>(slot));
        });
    }

    bool has_ties() const noexcept { return has_ties_; }

    // What it takes to leave a training row out.
    RowWeights take_row_weights() {
        const std::size_t n_outputs = rows_.n_outputs;
        std::vector<rank_t> row_ranks(rows_.n_rows * n_outputs);
        for (std::size_t o = 0; o < n_outputs; ++o) {
            for (std::size_t p = 0; p < rows_.n_rows; ++p) {
                row_ranks[orders_[o].rows[p] * n_outputs + o] = orders_[o].ranks[p];
            }
        }
        if (row_weights_.empty()) row_weights_.assign(rows_.n_rows, 1);
        return {Array(std::move(entry_weights_)), Array(std::move(row_ranks)),
                Array(std::move(row_weights_)), pool_};
    }

    LeafIndexArrays take_arrays() {
        LeafIndexArrays arrays;
        if (rows_.only_known_leaves) {
            arrays.known_leaves = Array(known_leaves(rows_, leaf_offsets_, interruption_));
        }
        arrays.leaf_offsets = Array(std::move(leaf_offsets_));
        arrays.atom_offsets = Array(std::move(atom_offsets_));
        arrays.atoms = Array(std::move(atoms_));
        arrays.tree_begin = Array(std::move(tree_begin_));
        arrays.leaf_begin = Array(std::move(leaf_begin_));
        if (narrow_ranks()) arrays.ranks = Array(std::move(short_ranks_));
        if (!narrow_ranks()) arrays.ranks = Array(std::move(ranks_));
        if (wide_) arrays.units = Array(std::move(wide_units_));
        if (!wide_ && !uniform_) arrays.units = Array(std::move(narrow_units_));
        if (has_copies() && narrow_copies()) arrays.copies = Array(std::move(few_copies_));
        if (has_copies() && !narrow_copies()) arrays.copies = Array(std::move(many_copies_));
        arrays.pooled = rows_.pooled;
        return arrays;
    }

  private:
    std::size_t n_leaves() const { return static_cast<std::size_t>(leaf_offsets_.back()); }
    std::size_t n_leaves(std::size_t tree) const {
        return static_cast<std::size_t>(leaf_offsets_[tree + 1] - leaf_offsets_[tree]);
    }
    bool narrow_ranks() const noexcept { return max_atoms_ <= std::size_t{1} << 16; }
    bool has_copies() const noexcept { return has_ties_ && !uniform_; }
    bool narrow_copies() const noexcept {
        return max_counted_ <= std::numeric_limits<std::uint8_t>::max();
    }

    // Calls use(entries, block) for blocks of work, with scratch memory of its own on each thread.
    template <class Use>
    void in_parallel(std::size_t n_blocks, const Use& use) {
        std::size_t max_leaves = 0;
        for (std::size_t t = 0; t < rows_.n_trees; ++t) {
            max_leaves = std::max(max_leaves, n_leaves(t));
        }
        const auto make_worker = [&]() -> Worker {
            const auto entries =
                std::make_shared<TreeEntries>(rows_, row_weights_, max_leaves, interruption_);
            return [&, entries](std::size_t block) { use(*entries, block); };
        };
        parallel_for(n_blocks, n_threads_, make_worker, interruption_);
    }

    void allocate() {
        const auto n_entries = static_cast<std::size_t>(tree_begin_.back());
        leaf_begin_.resize(rows_.n_outputs * (n_leaves() + rows_.n_trees));
        narrow_ranks() ? short_ranks_.resize(n_entries) : ranks_.resize(n_entries);
        if (wide_) wide_units_.resize(n_entries);
        if (!wide_ && !uniform_) narrow_units_.resize(n_entries);
        if (has_copies() && narrow_copies()) few_copies_.resize(n_entries);
        if (has_copies() && !narrow_copies()) many_copies_.resize(n_entries);
        if (keep_row_weights_) entry_weights_.resize(n_entries);
    }

    // Copies the entries of one tree to the arrays that there are.
    void store(const TreeEntries& entries, offset_t at) {
        const auto copy = [at](const auto& from, auto& to) {
            if (!to.empty()) std::copy(from.begin(), from.end(), to.begin() + at);
        };
        copy(entries.ranks, short_ranks_);
        copy(entries.ranks, ranks_);
        copy(entries.units, narrow_units_);
        copy(entries.units, wide_units_);
        copy(entries.copies(), few_copies_);
        copy(entries.copies(), many_copies_);
        copy(entries.weights, entry_weights_);
    }

    const TrainingRows& rows_;
    bool keep_row_weights_;
    unsigned n_threads_;
    Interruption& interruption_;
    std::vector<offset_t> leaf_offsets_;
    std::vector<count_t> row_weights_;

    std::vector<TargetOrder> orders_;  // (n_outputs,)
    std::vector<offset_t> atom_offsets_{0};
    std::vector<double> atoms_;
    std::size_t max_atoms_ = 0;

    std::vector<LeafStatistics> trees_;  // (n_trees,)
    count_t max_counted_ = 0;
    count_t pool_ = 0;
    bool wide_ = false;
    bool has_ties_ = false;
    bool uniform_ = false;

    std::vector<offset_t> tree_begin_;
    std::vector<std::uint32_t> leaf_begin_;
    std::vector<std::uint16_t> short_ranks_;
    std::vector<rank_t> ranks_;
    std::vector<std::uint32_t> narrow_units_;
    std::vector<std::uint64_t> wide_units_;
    std::vector<std::uint8_t> few_copies_;
    std::vector<std::uint32_t> many_copies_;
    std::vector<count_t> entry_weights_;
};

}  // namespace

LeafIndex::LeafIndex(const TrainingRows& rows, bool keep_row_weights, unsigned n_threads,
                     Interruption& interruption) {
    check_number_of_trees(rows.n_trees);
    if (keep_row_weights && rows.max_samples_leaf > 0) {
        throw std::invalid_argument(
            "max_samples_leaf must not be given with keep_row_weights: a row that was not kept in "
            "a leaf cannot be left out of it");
    }
    Builder builder(rows, keep_row_weights, n_threads, interruption);
    builder.order_targets();
    builder.measure_leaves();
    builder.choose_storage();
    builder.fill_entries();
    has_ties_ = builder.has_ties();
    if (keep_row_weights) row_weights_ = builder.take_row_weights();
    arrays_ = builder.take_arrays();
    tabulate_leaf_sizes(interruption);
    count_buckets(n_threads, interruption);
}

}  // namespace hdicore
