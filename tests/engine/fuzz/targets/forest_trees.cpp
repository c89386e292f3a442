// forest_trees.cpp: fuzzes Forest from trees as scikit-learn stores them, and routing down it
// SPDX-License-Identifier: BSD-3-Clause
#include <optional>

#include "queries.hpp"
#include "rows.hpp"
#include "training.hpp"

namespace {

using namespace fuzz;

void poke_one(Input& in, samples::Trees& trees) {
    const bool resize = in.one_in(8);
    const auto change = [&](auto& values) { resize ? in.resize(values) : in.poke(values); };
    switch (in.below(7)) {
        case 0:
            return change(trees.left);
        case 1:
            return change(trees.right);
        case 2:
            return change(trees.feature);
        case 3:
            return change(trees.threshold);
        case 4:
            return change(trees.missing_left);
        case 5:
            return change(trees.offsets);
        default:
            trees.n_features =
                in.one_in(4) ? in.bits<std::int64_t>() : static_cast<std::int64_t>(in.below(300));
    }
}

// The node that a row of float32 ends in, by the definition of the arrays.
std::int64_t slow_leaf(const samples::Trees& trees, std::size_t tree, const float* row) {
    const auto base = static_cast<std::size_t>(trees.offsets[tree]);
    std::size_t at = base;
    while (trees.left[at] != -1 || trees.right[at] != -1) {
        const float x = row[trees.feature[at]];
        const bool left = std::isnan(x) ? trees.missing_left[at] != 0
                                        : static_cast<double>(x) <= trees.threshold[at];
        at = base + static_cast<std::size_t>(left ? trees.left[at] : trees.right[at]);
    }
    return static_cast<std::int64_t>(at - base);
}

// Routed rows and the same rows by their leaves must score alike.
void check_scores(const std::shared_ptr<const Forest>& forest, const Rows& rows, Input& in) {
    samples::Training training{
        rows.n_rows, forest->n_trees(), 1, rows.leaves(*forest, false), {}, {}, {}};
    for (std::size_t i = 0; i < rows.n_rows; ++i) {
        training.y.push_back(static_cast<double>(in.below(16)));
    }
    std::vector<std::int64_t> n_leaves;
    for (std::size_t t = 0; t < forest->n_trees(); ++t) {
        n_leaves.push_back(static_cast<std::int64_t>(forest->n_leaves(t)));
    }
    TrainingRows given = training.rows();
    given.n_leaves = n_leaves;
    const LeafIndex index(given, false, 1);
    check_same_trees(*forest, index);
    const Question question(in);
    const GivenLeaves by_leaves(index,
                                Matrix(training.leaves.data(), rows.n_rows, index.n_trees()));
    const RoutedRows routed(*forest, rows.matrix(in.one_in(2)));
    REQUIRE(ask_all(index, routed, {}, question, {}) ==
            ask_all(index, by_leaves, {}, question, {}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input in(data, size);
    samples::Random random(in.bits<std::uint16_t>());
    samples::Trees trees = samples::random_trees(random, 1 + in.below(4), in.below(16));
    if (in.one_in(4)) trees = samples::with_many_features(trees);
    const std::size_t n_pokes = in.below(5);
    for (std::size_t k = 0; k < n_pokes; ++k) poke_one(in, trees);

    std::shared_ptr<const Forest> forest;
    const std::string reason =
        refusal([&] { forest = std::make_shared<const Forest>(trees.arrays(), 1); });
    REQUIRE(reason.empty() || n_pokes > 0);
    if (in.one_in(8)) {
        const std::string other = refusal([&] { Forest(trees.arrays(), 2); });
        REQUIRE(other.empty() == reason.empty());
    }
    if (!forest || forest->n_features() > 300) return 0;
    // The layout that was made is accepted too.
    Forest(forest->nodes(), forest->tree_offsets(), forest->leaf_nodes(), trees.n_features);

    const Rows rows(in, forest->n_features());
    const std::vector<leaf_t> ids = rows.leaves(*forest, true);
    for (std::size_t i = 0; i < rows.n_rows; ++i) {
        for (std::size_t t = 0; t < forest->n_trees(); ++t) {
            REQUIRE(ids[i * forest->n_trees() + t] == slow_leaf(trees, t, rows.row(i)));
        }
    }
    if (rows.n_rows > 0) check_scores(forest, rows, in);
    return 0;
}
