// forest/split_gains.cpp: adds up leaves towards the root of each tree
// SPDX-License-Identifier: BSD-3-Clause
#include "forest/split_gains.hpp"

#include <algorithm>
#include <string>
#include <variant>

#include "base/refusal.hpp"

namespace hdicore {
namespace {

struct Moments {
    double weight;
    double mean;
};

// Children lie behind their parents. `below` (n_nodes,) is scratch memory.
template <class Node>
void add_gains(std::span<const Node> nodes, std::span<const double> weights,
               std::span<const double> means, std::span<Moments> below, std::span<double> gains) {
    for (std::size_t i = nodes.size(); i-- > 0;) {
        const std::size_t left = nodes[i].left();
        if (left == i) {
            below[i] = {weights[nodes[i].leaf()], means[nodes[i].leaf()]};
            continue;
        }
        const auto [u, a] = below[left];
        const auto [v, b] = below[left + 1];
        const double sum = u + v;
        below[i] = {sum, sum > 0 ? a + v / sum * (b - a) : 0};
        if (sum > 0) gains[nodes[i].feature()] += u * (v / sum) * (a - b) * (a - b);
    }
}

}  // namespace

std::vector<double> split_gains(const Forest& forest, std::span<const double> weights,
                                std::span<const double> means, Interruption& interruption) {
    if (weights.size() != forest.n_leaves() || means.size() != forest.n_leaves()) {
        refuse("weights and means must have " + std::to_string(forest.n_leaves()) +
               " elements, one for each leaf of the forest");
    }
    std::vector<double> gains(forest.n_features(), 0.0);
    const auto add_trees = [&](const auto& nodes) {
        std::vector<Moments> below;
        std::size_t leaf = 0;
        for (std::size_t t = 0; t < forest.n_trees(); ++t) {
            interruption.check();
            const std::size_t n = forest.n_leaves(t);
            below.resize(std::max(below.size(), 2 * n - 1));
            const auto first = static_cast<std::size_t>(forest.tree_offsets()[t]);
            add_gains(std::span(nodes.data() + first, 2 * n - 1), weights.subspan(leaf, n),
                      means.subspan(leaf, n), below, gains);
            leaf += n;
        }
    };
    std::visit(add_trees, forest.nodes());
    return gains;
}

}  // namespace hdicore
