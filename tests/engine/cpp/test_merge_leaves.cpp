// test_merge_leaves.cpp: merged leaves against an index that is built from rows in them
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <type_traits>
#include <variant>

#include "check.hpp"
#include "index/merge_leaves.hpp"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

template <class T>
bool same(const Array<T>& a, const Array<T>& b) {
    return std::ranges::equal(a.view(), b.view());
}

template <class... Held>
bool same(const std::variant<Held...>& a, const std::variant<Held...>& b) {
    return std::visit(
        []<class A, class B>(const A& left, const B& right) {
            if constexpr (!std::is_same_v<A, B>) {
                return false;
            } else if constexpr (std::is_same_v<A, std::monostate>) {
                return true;
            } else {
                return same(left, right);
            }
        },
        a, b);
}

bool same(const LeafIndex& a, const LeafIndex& b) {
    const LeafIndexArrays& left = a.arrays();
    const LeafIndexArrays& right = b.arrays();
    if (a.row_weights().has_value() != b.row_weights().has_value()) return false;
    if (const auto& kept = a.row_weights()) {
        const auto& other = b.row_weights();
        if (!same(kept->entries, other->entries) || !same(kept->ranks, other->ranks) ||
            !same(kept->rows, other->rows) || kept->pool != other->pool) {
            return false;
        }
    }
    return same(left.leaf_offsets, right.leaf_offsets) &&
           same(left.atom_offsets, right.atom_offsets) && same(left.atoms, right.atoms) &&
           same(left.tree_begin, right.tree_begin) && same(left.leaf_begin, right.leaf_begin) &&
           same(left.ranks, right.ranks) && same(left.units, right.units) &&
           same(left.copies, right.copies) && same(left.leaf_mask, right.leaf_mask) &&
           left.pooled == right.pooled && a.nbytes() == b.nbytes() &&
           a.tables().max_leaf_size == b.tables().max_leaf_size &&
           a.tables().has_ties == b.tables().has_ties;
}

Training some_training(Random& random) {
    const std::size_t n_trees = 1 + below(random, 4);
    Training training = random_training(random, 1 + below(random, 60), n_trees,
                                        1 + below(random, 30), 1 + below(random, 2));
    if (below(random, 2) == 0) {
        training.counts.resize(training.leaves.size());
        for (auto& count : training.counts) count = static_cast<std::int32_t>(below(random, 3));
    }
    if (below(random, 3) == 0) {
        for (double& y : training.y) y = uniform(random);
    }
    return training;
}

void merged_leaves_are_those_of_rows_in_them() {
    Random random(1);
    for (int round = 0; round < 400; ++round) {
        Training training = some_training(random);
        const bool keeps = below(random, 2) == 0;
        if (keeps && below(random, 2) == 0) {
            training.weights.resize(training.n_rows);
            for (double& weight : training.weights) weight = uniform(random);
        }
        const std::vector<std::int64_t> n_leaves(training.n_trees, 30);
        TrainingRows rows = training.rows();
        rows.n_leaves = n_leaves;
        rows.pooled = below(random, 4) == 0;
        const LeafIndex index(rows, keeps, 1);

        std::vector<leaf_t> new_leaves;
        std::vector<std::int64_t> n_new;
        for (std::size_t t = 0; t < training.n_trees; ++t) {
            leaf_t now = 0;
            new_leaves.push_back(now);
            while (new_leaves.size() % 30 != 0) {
                now += below(random, 3) == 0;
                new_leaves.push_back(now);
            }
            n_new.push_back(now + 1);
        }
        const auto n_threads = static_cast<unsigned>(1 + below(random, 3));
        if (!keeps && !index.arrays().uniform()) {
            CHECK_REFUSED(merge_leaves(index, new_leaves, n_threads), "keep_row_weights=True");
            continue;
        }
        for (std::size_t i = 0; i < training.leaves.size(); ++i) {
            const std::size_t t = i % training.n_trees;
            training.leaves[i] = new_leaves[30 * t + static_cast<std::size_t>(training.leaves[i])];
        }
        rows.n_leaves = n_new;
        CHECK(same(merge_leaves(index, new_leaves, n_threads), LeafIndex(rows, keeps, 1)));
    }
}

void what_is_out_of_range_is_refused() {
    Random random(2);
    const Training training = random_training(random, 50, 1, 3);
    const LeafIndex index(training.rows(), true, 1);
    const auto merge = [&](std::vector<leaf_t> numbers) { return merge_leaves(index, numbers); };
    CHECK_REFUSED(merge({0, 0}), "one for each leaf of the index");
    CHECK_REFUSED(merge({1, 1, 1}), "got 1 for leaf 0 of tree 0");
    CHECK_REFUSED(merge({0, 2, 2}), "got 2 for leaf 1 of tree 0");
    CHECK_REFUSED(merge({0, 1, 0}), "got 0 for leaf 2 of tree 0");
    CHECK_REFUSED(merge({0, -1, 0}), "got -1 for leaf 1 of tree 0");
}

}  // namespace

int main() {
    merged_leaves_are_those_of_rows_in_them();
    what_is_out_of_range_is_refused();
    return check::finish();
}
