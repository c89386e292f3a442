// test_prune.cpp: leaves of pruned forests hold enough, and rows reach those of their old ones
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <limits>
#include <type_traits>
#include <variant>

#include "check.hpp"
#include "forest/prune.hpp"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

std::vector<std::int64_t> random_sizes(Random& random, const Forest& forest) {
    std::vector<std::int64_t> sizes(forest.n_leaves());
    for (auto& size : sizes) size = static_cast<std::int64_t>(below(random, 8));
    return sizes;
}

// Sums of the sizes of old leaves in each new one, tree after tree.
std::vector<std::int64_t> merged_sizes(const Forest& before, const PrunedForest& pruned,
                                       const std::vector<std::int64_t>& sizes) {
    std::vector<std::int64_t> merged(pruned.forest.n_leaves(), 0);
    std::size_t old = 0;
    std::size_t first = 0;
    for (std::size_t t = 0; t < before.n_trees(); ++t) {
        for (std::size_t leaf = 0; leaf < before.n_leaves(t); ++leaf, ++old) {
            merged[first + static_cast<std::size_t>(pruned.new_leaves[old])] += sizes[old];
        }
        first += pruned.forest.n_leaves(t);
    }
    return merged;
}

bool same_nodes(const Forest& a, const Forest& b) {
    return std::visit(
               []<class A, class B>(const Array<A>& left, const Array<B>& right) {
                   if constexpr (std::is_same_v<A, B>) {
                       return std::ranges::equal(left.view(), right.view());
                   } else {
                       return false;
                   }
               },
               a.nodes(), b.nodes()) &&
           std::ranges::equal(a.tree_offsets().view(), b.tree_offsets().view()) &&
           std::ranges::equal(a.leaf_nodes().view(), b.leaf_nodes().view());
}

// Rows reach the new leaf of the leaf that they reached before.
void check_routing(const Forest& before, const PrunedForest& pruned,
                   const std::vector<float>& rows) {
    const std::vector<leaf_t> old = leaves_of(before, rows);
    const std::vector<leaf_t> now = leaves_of(pruned.forest, rows);
    for (std::size_t i = 0; i < old.size(); i += before.n_trees()) {
        std::size_t first = 0;
        for (std::size_t t = 0; t < before.n_trees(); ++t) {
            CHECK(now[i + t] == pruned.new_leaves[first + static_cast<std::size_t>(old[i + t])]);
            first += before.n_leaves(t);
        }
    }
}

void leaves_hold_enough_and_route_alike() {
    Random random(1);
    for (int round = 0; round < 200; ++round) {
        Trees trees = random_trees(random, 1 + below(random, 4), 30);
        if (below(random, 3) == 0) trees = with_many_features(trees);
        const Forest forest(trees.arrays());
        const auto sizes = random_sizes(random, forest);
        const auto m = static_cast<std::int64_t>(1 + below(random, 12));
        const PrunedForest pruned =
            prune(forest, sizes, m, static_cast<unsigned>(1 + below(random, 3)));
        const auto merged = merged_sizes(forest, pruned, sizes);
        std::size_t leaf = 0;
        for (std::size_t t = 0; t < forest.n_trees(); ++t) {
            const std::size_t n = pruned.forest.n_leaves(t);
            for (std::size_t k = 0; k < n; ++k, ++leaf) CHECK(n == 1 || merged[leaf] >= m);
        }
        const auto n_features = static_cast<std::size_t>(trees.n_features);
        check_routing(forest, pruned, random_rows(random, 20 * n_features));
        CHECK(same_nodes(pruned.forest, prune(pruned.forest, merged, m).forest));
        const PrunedForest first = prune(forest, sizes, 1);
        const auto between = merged_sizes(forest, first, sizes);
        CHECK(same_nodes(pruned.forest, prune(first.forest, between, m).forest));
    }
}

}  // namespace

int main() {
    leaves_hold_enough_and_route_alike();
    return check::finish();
}
