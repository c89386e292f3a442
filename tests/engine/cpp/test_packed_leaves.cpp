// test_packed_leaves.cpp: leaves are packed where a place and a size fit, trees at once or apart
// SPDX-License-Identifier: BSD-3-Clause
#include "check.hpp"
#include "samples.hpp"
#include "scoring/packed_leaves.hpp"

using namespace hdicore;
using namespace samples;

namespace {

void packed_leaves_are_those_of_the_index() {
    Random random(1);
    for (int round = 0; round < 20; ++round) {
        const std::size_t n_trees = 1 + below(random, 5);
        const LeafIndex index(random_training(random, 1 + below(random, 200), n_trees, 3).rows(),
                              false, 1);
        const auto packed = PackedLeaves::of(index);
        CHECK(packed.has_value());
        constexpr std::size_t n = 32;
        std::vector<leaf_t> leaves(n_trees * n);
        for (std::size_t i = 0; i < leaves.size(); ++i) {
            leaves[i] = static_cast<leaf_t>(below(random, index.n_leaves(i / n) + 1)) - 1;
        }
        std::vector<leaf_t> together = leaves, apart = leaves;
        packed->pack(0, n_trees, together);
        for (std::size_t t = 0; t < n_trees; ++t) {
            packed->pack(t, t + 1, std::span(apart).subspan(t * n, n));
        }
        CHECK(together == apart);
        for (std::size_t i = 0; i < leaves.size(); ++i) {
            const std::size_t tree = i / n;
            if (leaves[i] == no_leaf) {
                CHECK(packed->size(together[i]) == 0);
                continue;
            }
            const EntrySlice slice = index.entries(0, tree, leaves[i]);
            CHECK(packed->size(together[i]) == slice.n);
            if (slice.n == 0) continue;
            CHECK(index.tree_begin(0, tree) + packed->begin(together[i]) == slice.begin);
        }
    }
}

// One leaf that holds all rows needs as many bits for the size as for the place.
LeafIndex one_leaf(std::size_t n_rows) {
    Training rows{n_rows, 1, 1, std::vector<leaf_t>(n_rows, 0), {}, {}, {}};
    for (std::size_t i = 0; i < n_rows; ++i) rows.y.push_back(static_cast<double>(i));
    return LeafIndex(rows.rows(), false, 1);
}

void what_does_not_fit_is_not_packed() {
    CHECK(PackedLeaves::of(one_leaf((1 << 16) - 1)).has_value());
    CHECK(!PackedLeaves::of(one_leaf(1 << 16)).has_value());
    Random random(2);
    const LeafIndex checked(random_training(random, 50, 2, 3).rows(), false, 1);
    const LeafIndex unchecked(checked.arrays(), "", Checks::lazily);
    CHECK(!PackedLeaves::of(unchecked).has_value());
}

}  // namespace

int main() {
    packed_leaves_are_those_of_the_index();
    what_does_not_fit_is_not_packed();
    return check::finish();
}
