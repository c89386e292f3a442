// scoring/out_of_bag.cpp: out-of-bag means, and the index of the training rows
// SPDX-License-Identifier: BSD-3-Clause
#include "scoring/out_of_bag.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "base/parallel.hpp"
#include "base/refusal.hpp"
#include "index/leaf_index_builder.hpp"

namespace hdicore {
namespace {

bool are_finite(std::span<const double> values) noexcept {
    return std::ranges::all_of(values, [](double x) { return std::isfinite(x); });
}

// Whether an index has an entry for each row in each tree, of its own target, and nothing else.
bool is_by_row(const LeafIndex& index, std::span<const double> y,
               std::span<const std::uint32_t> order) {
    const std::span<const double> atoms = index.atoms(0);
    return index.arrays().uniform() && !index.row_weights() &&
           index.n_entries() == index.n_trees() * y.size() &&
           std::ranges::equal(atoms, order, {}, {}, [&](std::uint32_t row) { return y[row]; });
}

}  // namespace

OutOfBagScorer::OutOfBagScorer(const OutOfBagRows& rows, std::shared_ptr<const LeafIndex> index,
                               unsigned n_threads, Interruption& interruption)
    : leaves_(rows.leaves),
      draws_(rows.draws),
      y_(rows.y.begin(), rows.y.end()),
      draw_weight_(rows.draw_weight.begin(), rows.draw_weight.end()),
      index_(std::move(index)) {
    if (index_->n_outputs() != 1) refuse("index must be of one output");
    if (index_->arrays().censored()) refuse("index must not be of censored targets");
    if (!are_finite(y_)) refuse("y must be finite");
    if (!are_finite(draw_weight_) ||
        std::ranges::any_of(draw_weight_, [](double weight) { return weight < 0; })) {
        refuse("draw_weight must be finite and not negative");
    }
    std::visit([&](auto draws) { find_means(draws, n_threads, interruption); }, draws_);
    if (!are_finite(means_.centres) || !are_finite(means_.leaf_means) ||
        !are_finite(means_.leaf_weight)) {
        refuse("the targets of the training rows are too large to be averaged");
    }
    index_by_row(rows.sample_weight, n_threads, interruption);
    std::visit([&](auto draws) { pack(draws, n_threads, interruption); }, draws_);
}

// It is checked each time: its memory may be the caller's.
std::size_t OutOfBagScorer::checked_leaf(std::size_t tree, std::size_t row) const {
    const auto leaf = static_cast<std::size_t>(leaves_(tree, row));
    if (leaf >= index_->n_leaves(tree)) {
        refuse("leaves must name leaves of the index, got " + std::to_string(leaves_(tree, row)) +
               " in tree " + std::to_string(tree));
    }
    return leaf;
}

template <class Count>
void OutOfBagScorer::find_means(Matrix<const Count> draws, unsigned n_threads,
                                Interruption& interruption) {
    auto& [centres, n_oob, leaf_means, leaf_weight] = means_;
    centres.assign(n_rows(), 0);
    n_oob.assign(n_rows(), 0);
    leaf_means.assign(index_->n_leaves(), 0);
    leaf_weight.assign(index_->n_leaves(), 0);
    const auto average = [&](std::size_t tree) {
        double* sums = means_.leaf_means.data() + leaf_number(tree, 0);
        double* weights = means_.leaf_weight.data() + leaf_number(tree, 0);
        for (std::size_t i = 0; i < n_rows(); ++i) {
            if (draws(tree, i) == 0) continue;
            const std::size_t leaf = checked_leaf(tree, i);
            const auto times = static_cast<double>(draws(tree, i));
            const double weight = draw_weight_.empty() ? times : times * draw_weight_[i];
            weights[leaf] += weight;
            sums[leaf] += weight * y_[i];
        }
        for (std::size_t leaf = 0; leaf < index_->n_leaves(tree); ++leaf) {
            if (weights[leaf] > 0) sums[leaf] /= weights[leaf];
        }
    };
    parallel_for(n_trees(), n_threads, average, interruption);
    constexpr std::size_t at_once = 4096;
    const auto work = [&](std::size_t block) {
        const std::size_t begin = block * at_once;
        const std::size_t end = std::min(n_rows(), begin + at_once);
        for (std::size_t tree = 0; tree < n_trees(); ++tree) {
            const double* of_tree = means_.leaf_means.data() + leaf_number(tree, 0);
            for (std::size_t i = begin; i < end; ++i) {
                const bool is_out = draws(tree, i) == 0;
                const double mean = of_tree[checked_leaf(tree, i)];
                means_.centres[i] += is_out ? mean : 0;
                means_.n_oob[i] += is_out;
            }
        }
        for (std::size_t i = begin; i < end; ++i) {
            means_.centres[i] /= std::max(means_.n_oob[i], 1.0);
        }
    };
    parallel_for((n_rows() + at_once - 1) / at_once, n_threads, work, interruption);
}

std::vector<double> OutOfBagScorer::row_weights(std::span<const double> sample_weight) const {
    const auto has_none = [](double n_oob) { return n_oob == 0; };
    if (sample_weight.empty() && std::ranges::none_of(means_.n_oob, has_none)) return {};
    if (std::ranges::all_of(means_.n_oob, has_none)) {
        refuse("every tree drew every row, so none is out of bag");
    }
    std::vector<double> weights(n_rows(), 1);
    for (std::size_t i = 0; i < n_rows(); ++i) {
        if (!sample_weight.empty()) weights[i] = sample_weight[i];
        if (has_none(means_.n_oob[i])) weights[i] = 0;
    }
    return weights;
}

void OutOfBagScorer::index_by_row(std::span<const double> sample_weight, unsigned n_threads,
                                  Interruption& interruption) {
    const std::vector<double> weights = row_weights(sample_weight);
    rows_of_atoms_.resize(n_rows());
    std::iota(rows_of_atoms_.begin(), rows_of_atoms_.end(), 0);
    const std::vector<double> numbers(rows_of_atoms_.begin(), rows_of_atoms_.end());
    if (weights.empty()) {
        std::ranges::stable_sort(rows_of_atoms_, {}, [&](std::uint32_t row) { return y_[row]; });
        if (is_by_row(*index_, y_, rows_of_atoms_)) return;
        std::vector<double> ranks(n_rows());
        for (std::size_t k = 0; k < n_rows(); ++k) ranks[rows_of_atoms_[k]] = numbers[k];
        LeafIndex by_rank = index_of(ranks, {}, false, n_threads, interruption);
        if (by_rank.arrays().uniform()) {
            index_ = std::make_shared<const LeafIndex>(std::move(by_rank));
            return;
        }
        std::iota(rows_of_atoms_.begin(), rows_of_atoms_.end(), 0);
    }
    index_ = std::make_shared<const LeafIndex>(
        index_of(numbers, weights, true, n_threads, interruption));
}

LeafIndex OutOfBagScorer::index_of(std::span<const double> values, std::span<const double> weights,
                                   bool keep_row_weights, unsigned n_threads,
                                   Interruption& interruption) const {
    std::vector<std::int64_t> n_leaves;
    for (std::size_t t = 0; t < n_trees(); ++t) {
        n_leaves.push_back(static_cast<std::int64_t>(index_->n_leaves(t)));
    }
    const TrainingRows rows{.n_trees = n_trees(),
                            .y = {values.data(), values.size(), 1},
                            .sample_weight = weights,
                            .n_leaves = n_leaves};
    LeafIndexBuilder builder(rows, keep_row_weights, n_threads, interruption);
    while (builder.wants_trees()) {
        builder.add({.leaves = leaves_, .transposed = true});
        builder.end_pass();
    }
    return LeafIndex(std::move(builder));
}

template <class Count>
void OutOfBagScorer::pack(Matrix<const Count> draws, unsigned n_threads,
                          Interruption& interruption) {
    const std::size_t n_bytes = (n_rows() + 7) / 8;
    drawn_.assign(n_trees() * n_bytes, 0);
    const auto pack_tree = [&](std::size_t tree) {
        std::uint8_t* bits = drawn_.data() + tree * n_bytes;
        for (std::size_t k = 0; k < n_rows(); ++k) {
            const unsigned is_drawn = draws(tree, rows_of_atoms_[k]) != 0;
            bits[k / 8] = static_cast<std::uint8_t>(bits[k / 8] | is_drawn << k % 8);
        }
    };
    parallel_for(n_trees(), n_threads, pack_tree, interruption);
}

}  // namespace hdicore
