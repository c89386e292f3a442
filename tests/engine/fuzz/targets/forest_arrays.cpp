// forest_arrays.cpp: fuzzes Forest from its own layout, as a model file hands it over
// SPDX-License-Identifier: BSD-3-Clause
#include <optional>
#include <variant>

#include "../../cpp/samples.hpp"
#include "forest/prune.hpp"
#include "rows.hpp"

namespace {

using namespace fuzz;
using namespace hdicore;

struct Layout {
    std::variant<std::vector<NarrowNode>, std::vector<WideNode>> nodes;
    std::vector<offset_t> tree_offsets;
    std::vector<std::int32_t> leaf_nodes;
    std::int64_t n_features;

    explicit Layout(const Forest& forest)
        : tree_offsets(forest.tree_offsets().view().begin(), forest.tree_offsets().view().end()),
          leaf_nodes(forest.leaf_nodes().view().begin(), forest.leaf_nodes().view().end()),
          n_features(static_cast<std::int64_t>(forest.n_features())) {
        std::visit(
            [&]<class Node>(const Array<Node>& array) {
                nodes = std::vector<Node>(array.view().begin(), array.view().end());
            },
            forest.nodes());
    }

    template <class... Options>
    Forest forest(const Options&... options) const {
        return std::visit(
            [&](const auto& values) {
                return Forest(Array(values), Array(tree_offsets), Array(leaf_nodes), n_features,
                              options...);
            },
            nodes);
    }

    // Makes a split of some node, with children that need not be there.
    template <class Node>
    static void make_split(Input& in, std::vector<Node>& values) {
        if (values.empty()) return;
        Node& node = values[in.below(values.size())];
        const auto left = static_cast<std::uint32_t>(in.below(values.size() + 2));
        node = Node::inner(in.bits<feature_key>(), static_cast<std::uint32_t>(in.below(4)), left,
                           in.one_in(2));
    }

    void poke_one(Input& in) {
        const bool resize = in.one_in(8);
        const auto change = [&](auto& values) { resize ? in.resize(values) : in.poke(values); };
        switch (in.below(6)) {
            case 0:
                return change(tree_offsets);
            case 1:
                return change(leaf_nodes);
            case 2:
                n_features = in.one_in(4) ? in.bits<std::int64_t>()
                                          : static_cast<std::int64_t>(in.below(300));
                return;
            case 3:
                return std::visit([&](auto& values) { make_split(in, values); }, nodes);
            default:
                return std::visit(change, nodes);
        }
    }
};

// The same layout, whose nodes are checked as rows reach them.
void check_lazily(const Layout& layout, const Rows& rows, const std::vector<leaf_t>& expected) {
    std::optional<Forest> forest;
    const std::string reason =
        refusal([&] { forest.emplace(layout.forest(std::string("file"), Checks::lazily)); });
    REQUIRE(reason.empty() || (expected.empty() && reason.starts_with("file: ")));
    if (!forest || forest->n_features() != rows.n_features) return;
    std::vector<leaf_t> leaves;
    const std::string refused = refusal([&] { leaves = rows.leaves(*forest, false); });
    REQUIRE(expected.empty() || (refused.empty() && leaves == expected));
    for (std::size_t i = 0; i < leaves.size(); ++i) {
        const std::size_t t = i % forest->n_trees();
        REQUIRE(leaves[i] >= 0 && static_cast<std::size_t>(leaves[i]) < forest->n_leaves(t));
    }
}

// A pruned forest takes rows to the new leaves of their old ones.
void check_pruned(Input& in, const Forest& forest, const Rows& rows,
                  const std::vector<leaf_t>& leaves) {
    std::vector<std::int64_t> sizes(forest.n_leaves());
    for (auto& size : sizes) size = static_cast<std::int64_t>(in.below(4));
    const PrunedForest pruned = prune(forest, sizes, 1 + static_cast<std::int64_t>(in.below(6)));
    const std::vector<leaf_t> now = rows.leaves(pruned.forest, false);
    for (std::size_t i = 0; i < leaves.size(); i += forest.n_trees()) {
        std::size_t first = 0;
        for (std::size_t t = 0; t < forest.n_trees(); first += forest.n_leaves(t++)) {
            const auto old = first + static_cast<std::size_t>(leaves[i + t]);
            REQUIRE(now[i + t] == pruned.new_leaves[old]);
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input in(data, size);
    samples::Random random(in.bits<std::uint16_t>());
    samples::Trees trees = samples::random_trees(random, 1 + in.below(4), in.below(16));
    if (in.one_in(3)) trees = samples::with_many_features(trees);
    Layout layout(Forest(trees.arrays(), 1));
    const std::size_t n_pokes = in.below(5);
    for (std::size_t k = 0; k < n_pokes; ++k) layout.poke_one(in);

    std::optional<Forest> forest;
    const std::string reason = refusal([&] { forest.emplace(layout.forest()); });
    REQUIRE(reason.empty() || n_pokes > 0);
    if (layout.n_features < 1 || layout.n_features > 300) return 0;
    const Rows rows(in, static_cast<std::size_t>(layout.n_features));
    if (!forest) {
        check_lazily(layout, rows, {});
        return 0;
    }
    const std::vector<leaf_t> leaves = rows.leaves(*forest, false);
    check_lazily(layout, rows, leaves);
    const std::vector<leaf_t> ids = rows.leaves(*forest, true);
    std::size_t first = 0;
    for (std::size_t t = 0; t < forest->n_trees(); ++t) {
        for (std::size_t i = 0; i < rows.n_rows; ++i) {
            const leaf_t leaf = leaves[i * forest->n_trees() + t];
            REQUIRE(leaf >= 0 && static_cast<std::size_t>(leaf) < forest->n_leaves(t));
            REQUIRE(ids[i * forest->n_trees() + t] ==
                    layout.leaf_nodes[first + static_cast<std::size_t>(leaf)]);
        }
        first += forest->n_leaves(t);
    }
    REQUIRE(first == forest->n_leaves());
    check_pruned(in, *forest, rows, leaves);
    return 0;
}
