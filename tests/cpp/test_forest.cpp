// test_forest.cpp: routing against a walk node by node; what is no forest is refused
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include "check.hpp"
#include "hdicore/forest.hpp"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

std::int64_t walk(const Trees& trees, std::size_t tree, const float* row) {
    const auto base = static_cast<std::size_t>(trees.offsets[tree]);
    std::size_t node = 0;
    while (trees.left[base + node] != -1) {
        const float x = row[trees.feature[base + node]];
        const bool goes_left = std::isnan(x)
                                   ? trees.missing_left[base + node] != 0
                                   : static_cast<double>(x) <= trees.threshold[base + node];
        node = static_cast<std::size_t>(goes_left ? trees.left[base + node]
                                                  : trees.right[base + node]);
    }
    return static_cast<std::int64_t>(node);
}

void check_routing(const Forest& forest, const Trees& trees, const std::vector<float>& rows) {
    const std::size_t n = rows.size() / forest.n_features();
    std::vector<leaf_t> leaves(n * forest.n_trees());
    forest.route(rows.data(), n, leaves.data());
    std::size_t first_leaf = 0;
    for (std::size_t t = 0; t < forest.n_trees(); ++t) {
        for (std::size_t i = 0; i < n; ++i) {
            const auto leaf = static_cast<std::size_t>(leaves[i * forest.n_trees() + t]);
            CHECK(leaf < forest.n_leaves(t));
            CHECK(forest.leaf_nodes()[first_leaf + leaf] ==
                  walk(trees, t, rows.data() + i * forest.n_features()));
        }
        first_leaf += forest.n_leaves(t);
    }
    CHECK(first_leaf == forest.n_leaves());
}

void random_trees_route_as_a_walk() {
    Random random(1);
    for (int round = 0; round < 200; ++round) {
        const Trees trees = random_trees(random, 1 + below(random, 4), 20);
        const Forest forest(trees.arrays());
        // Fewer rows than lanes, as many, and more.
        auto rows = random_rows(random, 3 * (1 + below(random, 40)));
        for (float& x : rows) {
            if (below(random, 3) == 0) {
                x = static_cast<float>(trees.threshold[below(random, trees.threshold.size())]);
            }
        }
        check_routing(forest, trees, rows);
        const Forest again(forest.nodes(), forest.tree_offsets(), forest.leaf_nodes(), 3);
        check_routing(again, trees, rows);
    }
}

void extreme_thresholds_route_as_a_walk() {
    const double inf = std::numeric_limits<double>::infinity();
    const float tiny = std::numeric_limits<float>::denorm_min();
    const float huge = std::numeric_limits<float>::max();
    std::vector<float> rows{0, -0.0f, tiny, -tiny, 1, std::nextafterf(1, 2), huge, -huge};
    for (const double threshold : {inf, -inf, 1e308, -1e308, 5e-324, -5e-324, tiny * 0.5,
                                   static_cast<double>(huge), 1 + 1e-12, 1 - 1e-12, 0.0}) {
        Trees trees;
        trees.n_features = 1;
        Random random(0);
        trees.add_tree(random, 1);
        trees.threshold[0] = threshold;
        trees.feature[0] = 0;
        check_routing(Forest(trees.arrays()), trees, rows);
    }
}

void rows_are_cast_and_infinity_refused() {
    const double inf = std::numeric_limits<double>::infinity();
    float out[4];
    for (const double bad : {inf, -inf, 1e39, -1e308, 0x1.ffffffp127}) {
        const std::vector<double> rows{0, 1, 2, bad};
        CHECK_REFUSED((RowMatrix{2, 2, nullptr, rows.data()}.copy_rows(0, 2, out)), "X[1, 1]");
        CHECK_REFUSED((RowMatrix{2, 2, nullptr, rows.data()}.copy_rows(1, 2, out)), "X[1, 1]");
        CHECK(check::accepted([&] { RowMatrix{2, 2, nullptr, rows.data()}.copy_rows(0, 1, out); }));
    }
    const std::vector<float> floats{0, -std::numeric_limits<float>::infinity()};
    CHECK_REFUSED((RowMatrix{1, 2, floats.data(), nullptr}.copy_rows(0, 1, out)), "X[0, 1]");
    const std::vector<double> largest{0x1.fffffefffffffp127, std::nan("")};
    RowMatrix{1, 2, nullptr, largest.data()}.copy_rows(0, 1, out);
    CHECK(out[0] == std::numeric_limits<float>::max() && std::isnan(out[1]));
}

void what_is_no_forest_is_refused() {
    Random random(2);
    Trees good;
    good.add_tree(random, 1);
    const auto refuse = [&](const char* text, auto damage) {
        Trees bad = good;
        damage(bad);
        CHECK_REFUSED(Forest(bad.arrays()), text);
    };
    refuse("child 3", [](Trees& t) { t.left[0] = 3; });
    refuse("child -2", [](Trees& t) { t.right[0] = -2; });
    refuse("child", [](Trees& t) { t.left[0] = std::numeric_limits<std::int64_t>::min(); });
    refuse("child -1", [](Trees& t) { t.left[0] = -1; });
    refuse("two ways", [](Trees& t) { t.left[0] = 0; });
    refuse("two ways", [](Trees& t) { t.left[0] = t.right[0]; });
    refuse("no path", [](Trees& t) { t.left[0] = t.right[0] = -1; });
    refuse("feature 3 of 3", [](Trees& t) { t.feature[0] = 3; });
    refuse("NaN", [](Trees& t) { t.threshold[0] = std::nan(""); });
    refuse("n_features", [](Trees& t) { t.n_features = 0; });
    refuse("threshold must", [](Trees& t) { t.threshold.pop_back(); });
    refuse("feature must", [](Trees& t) { t.feature.clear(); });
    refuse("tree_offsets", [](Trees& t) { t.offsets = {0, 2}; });
    refuse("tree_offsets", [](Trees& t) { t.offsets = {0, 3, 3}; });
    refuse("tree", [](Trees& t) { t.offsets = {0, 4, 3}; });
    refuse("at least one tree", [](Trees& t) { t.offsets.clear(); });
}

void damaged_layouts_are_refused_or_route_safely() {
    Random random(3);
    const Forest forest(random_trees(random, 3, 6).arrays());
    const auto rows = random_rows(random, 3 * 20);
    int n_refused = 0;
    for (int round = 0; round < 3000; ++round) {
        std::vector<Node> nodes(forest.nodes().view().begin(), forest.nodes().view().end());
        std::vector<offset_t> offsets(forest.tree_offsets().view().begin(),
                                      forest.tree_offsets().view().end());
        std::vector<std::int32_t> ids(forest.leaf_nodes().view().begin(),
                                      forest.leaf_nodes().view().end());
        const auto flip = [&](auto& array) {
            auto* bytes = reinterpret_cast<unsigned char*>(array.data());
            bytes[below(random, array.size() * sizeof(array[0]))] ^=
                static_cast<unsigned char>(1u << below(random, 8));
        };
        switch (below(random, 6)) {
            case 0:
                flip(offsets);
                break;
            case 1:
                flip(ids);
                break;
            case 2:
                nodes.pop_back();
                break;
            case 3:
                ids.push_back(0);
                break;
            default:
                flip(nodes);
                break;
        }
        const bool accepted = check::accepted([&] {
            const Forest damaged(Array(std::move(nodes)), Array(std::move(offsets)),
                                 Array(std::move(ids)), 3);
            std::vector<leaf_t> leaves(20 * damaged.n_trees());
            damaged.route(rows.data(), 20, leaves.data());
            for (std::size_t i = 0; i < leaves.size(); ++i) {
                CHECK(leaves[i] >= 0 && static_cast<std::size_t>(leaves[i]) <
                                            damaged.n_leaves(i % damaged.n_trees()));
            }
        });
        n_refused += !accepted;
    }
    CHECK(n_refused > 1000 && n_refused < 3000);
}

}  // namespace

int main() {
    random_trees_route_as_a_walk();
    extreme_thresholds_route_as_a_walk();
    rows_are_cast_and_infinity_refused();
    what_is_no_forest_is_refused();
    damaged_layouts_are_refused_or_route_safely();
    return check::finish();
}
