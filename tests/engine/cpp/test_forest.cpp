// test_forest.cpp: routing against a walk node by node, and the layout of nodes
// SPDX-License-Identifier: BSD-3-Clause
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "check.hpp"
#include "forest/forest.hpp"
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
    const std::vector<leaf_t> leaves = leaves_of(forest, rows);
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
        CHECK(std::holds_alternative<Array<NarrowNode>>(forest.nodes()));
    }
}

void wide_nodes_route_as_a_walk() {
    Random random(4);
    for (int round = 0; round < 20; ++round) {
        Trees trees = with_many_features(random_trees(random, 1 + below(random, 4), 20));
        const auto n_features = static_cast<std::size_t>(trees.n_features);
        for (auto& feature : trees.feature) {
            if (feature >= 0 && below(random, 2) == 0) {
                feature = trees.n_features - 1 - feature;
            }
        }
        const Forest forest(trees.arrays());
        CHECK(std::holds_alternative<Array<WideNode>>(forest.nodes()));
        const auto rows = random_rows(random, n_features * (1 + below(random, 20)));
        check_routing(forest, trees, rows);
        check_routing(
            Forest(forest.nodes(), forest.tree_offsets(), forest.leaf_nodes(), trees.n_features),
            trees, rows);
    }
}

void rows_may_come_in_another_order() {
    Random random(5);
    const Forest forest(random_trees(random, 3, 20).arrays());
    const auto rows = random_rows(random, 3 * 40);
    const auto leaves = leaves_of(forest, rows);
    std::vector<std::uint32_t> order(30);
    for (auto& row : order) row = static_cast<std::uint32_t>(below(random, 30));
    RowTiles tiles;
    tiles.assign({Matrix(rows.data(), 40, 3)}, 10, order);
    std::vector<leaf_t> routed(2 * 32);
    forest.route(tiles, 1, 3, routed.data());
    for (std::size_t p = 0; p < 30; ++p) {
        for (std::size_t t = 1; t < 3; ++t) {
            CHECK(routed[(t - 1) * 32 + p] == leaves[(10 + order[p]) * 3 + t]);
        }
    }
}

void rows_are_cast_and_infinity_refused() {
    const double inf = std::numeric_limits<double>::infinity();
    RowTiles tiles;
    for (const double bad : {inf, -inf, 1e39, -1e308, 0x1.ffffffp127}) {
        const std::vector<double> rows{0, 1, 2, bad};
        const RowMatrix matrix{Matrix(rows.data(), 2, 2)};
        CHECK_REFUSED(tiles.assign(matrix, 0, 2), "X[1, 1]");
        CHECK_REFUSED(tiles.assign(matrix, 1, 2), "X[1, 1]");
        CHECK(check::accepted([&] { tiles.assign(matrix, 0, 1); }));
    }
    const std::vector<float> floats{0, -std::numeric_limits<float>::infinity()};
    CHECK_REFUSED(tiles.assign({Matrix(floats.data(), 1, 2)}, 0, 1), "X[0, 1]");
    const std::vector<double> largest{0x1.fffffefffffffp127, std::nan("")};
    tiles.assign({Matrix(largest.data(), 1, 2)}, 0, 1);
    CHECK(tiles.has_missing() && tiles.tile(0)[RowTiles::tile_rows] == missing_key);
    const std::vector<float> same{std::numeric_limits<float>::max(), 0};
    RowTiles again;
    again.assign({Matrix(same.data(), 1, 2)}, 0, 1);
    CHECK(!again.has_missing() && again.tile(0)[0] == tiles.tile(0)[0]);
}

void keys_order_as_floats_do() {
    Random random(6);
    std::vector<float> values{0,
                              -0.0f,
                              1,
                              -1,
                              std::numeric_limits<float>::max(),
                              std::numeric_limits<float>::lowest(),
                              std::numeric_limits<float>::denorm_min()};
    for (int k = 0; k < 500; ++k) {
        const auto bits = static_cast<std::uint32_t>(random());
        const auto x = std::bit_cast<float>(bits);
        if (std::isfinite(x)) values.push_back(x);
    }
    RowTiles tiles;
    tiles.assign({Matrix(values.data(), values.size(), 1)}, 0, values.size());
    const auto key = [&](std::size_t i) {
        return tiles.tile(i / RowTiles::tile_rows)[i % RowTiles::tile_rows];
    };
    for (std::size_t i = 0; i < values.size(); ++i) {
        CHECK(key(i) < missing_key);
        for (std::size_t j = 0; j < values.size(); ++j) {
            CHECK((values[i] < values[j]) == (key(i) < key(j)));
        }
    }
}

// As files may hold: those of earlier versions have another order.
void any_order_of_siblings_behind_their_parent_is_read() {
    Random random(6);
    for (int round = 0; round < 100; ++round) {
        const Trees trees = random_trees(random, 1, 60);
        const Forest forest(trees.arrays());
        const auto& from = std::get<Array<NarrowNode>>(forest.nodes());
        std::vector<NarrowNode> nodes(from.size());
        std::vector<std::pair<std::uint32_t, std::uint32_t>> pending{{0, 0}};
        std::uint32_t placed = 1;
        while (!pending.empty()) {
            std::swap(pending[below(random, pending.size())], pending.back());
            const auto [old, now] = pending.back();
            pending.pop_back();
            const NarrowNode node = from[old];
            if (node.left() == old) {
                nodes[now] = NarrowNode::at_leaf(now, node.leaf());
                continue;
            }
            nodes[now] = NarrowNode::inner(node.key, node.feature(), placed, node.nan_left());
            pending.push_back({node.left(), placed});
            pending.push_back({node.left() + 1, placed + 1});
            placed += 2;
        }
        const Nodes shuffled = Array(std::move(nodes));
        const auto rows = random_rows(random, 3 * (1 + below(random, 40)));
        check_routing(Forest(shuffled, forest.tree_offsets(), forest.leaf_nodes(), 3), trees, rows);
        check_routing(
            Forest(shuffled, forest.tree_offsets(), forest.leaf_nodes(), 3, "file", Checks::lazily),
            trees, rows);
    }
}

// A complete tree of six levels of splits, numbered breadth first.
void subtrees_begin_with_runs_of_four_levels() {
    constexpr std::int64_t n_splits = 63;
    Trees trees;
    for (std::int64_t i = 0; i < 2 * n_splits + 1; ++i) {
        const bool splits = i < n_splits;
        trees.left.push_back(splits ? 2 * i + 1 : -1);
        trees.right.push_back(splits ? 2 * i + 2 : -1);
        trees.feature.push_back(splits ? 0 : -2);
        trees.threshold.push_back(0);
        trees.missing_left.push_back(0);
    }
    trees.offsets.push_back(2 * n_splits + 1);
    const Forest forest(trees.arrays());
    const auto& nodes = std::get<Array<NarrowNode>>(forest.nodes());
    for (std::uint32_t i = 0; i < 15; ++i) CHECK(nodes[i].left() == 2 * i + 1);
    // The 16 subtrees below have three pairs each.
    for (std::uint32_t k = 0; k < 16; ++k) {
        const std::uint32_t begin = 31 + 6 * k;
        CHECK(nodes[15 + k].left() == begin);
        CHECK(nodes[begin].left() == begin + 2 && nodes[begin + 1].left() == begin + 4);
    }
    for (std::size_t k = 0; k <= n_splits; ++k) {
        CHECK(forest.leaf_nodes()[k] == n_splits + static_cast<std::int64_t>(k));
    }
}

void nodes_met_twice_are_refused() {
    const auto split = [](std::uint32_t left) { return NarrowNode::inner(5, 0, left, false); };
    const auto forest_of = [](std::vector<NarrowNode> nodes) {
        return Forest(Array(std::move(nodes)), Array(std::vector<offset_t>{0, 7}),
                      Array(std::vector<std::int32_t>{0, 1, 2, 3}), 1);
    };
    const auto leaf = [](std::uint32_t at, std::uint32_t k) { return NarrowNode::at_leaf(at, k); };
    forest_of({split(1), split(3), split(5), leaf(3, 0), leaf(4, 1), leaf(5, 2), leaf(6, 3)});
    CHECK_REFUSED(
        forest_of({split(1), split(3), split(4), leaf(3, 0), leaf(4, 1), leaf(5, 2), leaf(6, 3)}),
        "damaged at node 2");
    CHECK_REFUSED(
        forest_of({split(1), split(3), split(3), leaf(3, 0), leaf(4, 1), leaf(5, 2), leaf(6, 3)}),
        "damaged at node 2");
}

}  // namespace

int main() {
    random_trees_route_as_a_walk();
    wide_nodes_route_as_a_walk();
    rows_may_come_in_another_order();
    keys_order_as_floats_do();
    rows_are_cast_and_infinity_refused();
    any_order_of_siblings_behind_their_parent_is_read();
    subtrees_begin_with_runs_of_four_levels();
    nodes_met_twice_are_refused();
    return check::finish();
}
