// samples.hpp: random trees, training rows and distributions for the tests of the engine
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "forest/forest.hpp"
#include "index/leaf_index.hpp"
#include "pmf/pmf.hpp"

namespace samples {

using namespace hdicore;
using Random = std::mt19937_64;

// Uniform in [0, n).
inline std::size_t below(Random& random, std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
}

inline double uniform(Random& random) {
    return std::uniform_real_distribution<double>()(random);
}

struct Trees {
    std::vector<std::int64_t> left, right, feature;
    std::vector<double> threshold;
    std::vector<std::uint8_t> missing_left;
    std::vector<std::int64_t> offsets{0};
    std::int64_t n_features = 3;

    TreeArrays arrays() const {
        return {left, right, feature, threshold, missing_left, offsets, n_features};
    }

    // Adds a tree of n_inner splits whose nodes, but for the root, are numbered at random.
    void add_tree(Random& random, std::size_t n_inner) {
        const std::size_t n = 2 * n_inner + 1;
        std::vector<std::int64_t> ids(n);
        for (std::size_t i = 0; i < n; ++i) ids[i] = static_cast<std::int64_t>(i);
        std::shuffle(ids.begin() + 1, ids.end(), random);
        const std::size_t base = left.size();
        left.resize(base + n, -1);
        right.resize(base + n, -1);
        feature.resize(base + n, -2);
        threshold.resize(base + n, -2);
        missing_left.resize(base + n, 0);
        std::vector<std::int64_t> leaves{0};
        for (std::size_t used = 1; used < n; used += 2) {
            const std::size_t pick = below(random, leaves.size());
            const std::size_t at = base + static_cast<std::size_t>(leaves[pick]);
            leaves.erase(leaves.begin() + static_cast<std::ptrdiff_t>(pick));
            left[at] = ids[used];
            right[at] = ids[used + 1];
            feature[at] = static_cast<std::int64_t>(below(random, 3));
            threshold[at] = uniform(random);
            missing_left[at] = below(random, 2) == 1;
            leaves.push_back(ids[used]);
            leaves.push_back(ids[used + 1]);
        }
        offsets.push_back(static_cast<std::int64_t>(left.size()));
    }
};

inline Trees random_trees(Random& random, std::size_t n_trees, std::size_t most_splits) {
    Trees trees;
    for (std::size_t t = 0; t < n_trees; ++t) {
        trees.add_tree(random, below(random, most_splits + 1));
    }
    return trees;
}

// Values of which some lie on others and some are missing.
inline std::vector<float> random_rows(Random& random, std::size_t n_values) {
    std::vector<float> rows(n_values);
    for (float& x : rows) {
        x = below(random, 10) == 0 ? std::numeric_limits<float>::quiet_NaN()
                                   : static_cast<float>(uniform(random));
    }
    return rows;
}

// Leaf of each row in each tree, (n_rows, n_trees).
inline std::vector<leaf_t> leaves_of(const Forest& forest, const std::vector<float>& rows) {
    const std::size_t n = rows.size() / forest.n_features();
    RowTiles tiles;
    tiles.assign({Matrix(rows.data(), n, forest.n_features())}, 0, n);
    const std::size_t stride = tiles.n_tiles() * RowTiles::tile_rows;
    std::vector<leaf_t> routed(forest.n_trees() * stride);
    forest.route(tiles, 0, forest.n_trees(), routed.data());
    std::vector<leaf_t> leaves(n * forest.n_trees());
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t t = 0; t < forest.n_trees(); ++t) {
            leaves[i * forest.n_trees() + t] = routed[t * stride + i];
        }
    }
    return leaves;
}

// The trees with so many features that their nodes are wide.
inline Trees with_many_features(Trees trees) {
    trees.n_features = NarrowNode::max_features + 1;
    return trees;
}

struct Training {
    std::size_t n_rows, n_trees, n_outputs;
    std::vector<leaf_t> leaves;
    std::vector<double> y;
    std::vector<std::int32_t> counts;
    std::vector<double> weights;

    TrainingRows rows() const {
        TrainingRows rows;
        rows.n_trees = n_trees;
        rows.leaves = {leaves.data(), n_rows, n_trees};
        rows.y = {y.data(), n_rows, n_outputs};
        if (!counts.empty()) rows.counts = {counts.data(), n_rows, n_trees};
        rows.sample_weight = weights;
        return rows;
    }
};

inline Training random_training(Random& random, std::size_t n_rows, std::size_t n_trees,
                                std::size_t n_leaves, std::size_t n_outputs = 1) {
    Training training{n_rows, n_trees, n_outputs, {}, {}, {}, {}};
    training.leaves.resize(n_rows * n_trees);
    for (leaf_t& leaf : training.leaves) leaf = static_cast<leaf_t>(below(random, n_leaves));
    training.y.resize(n_rows * n_outputs);
    for (double& y : training.y) y = static_cast<double>(below(random, 40)) / 4 - 5;
    return training;
}

// A distribution that owns its memory.
struct Sample {
    std::vector<double> values;
    std::vector<mass_t> cumulative{0};
    std::size_t n_trees = 1;

    // One observation behind each.
    Pmf pmf() const {
        mass_t lightest = cumulative.back();
        for (std::size_t k = 0; k < values.size(); ++k) {
            lightest = std::min(lightest, cumulative[k + 1] - cumulative[k]);
        }
        return {values, cumulative, n_trees, wide_shift, static_cast<double>(lightest)};
    }
};

// Random masses, many of them equal, on an exact lattice, a decimal one, or none.
inline Sample random_sample(Random& random, std::size_t n_atoms) {
    Sample sample;
    const std::size_t kind = below(random, 3);
    std::size_t steps = 0;
    std::vector<double> weights(n_atoms);
    double total = 0;
    for (double& weight : weights) {
        steps += 1 + below(random, 2);
        const double on_lattice = static_cast<double>(steps) / (kind == 0 ? 2 : 10) - 3;
        const double z = kind < 2 ? on_lattice : on_lattice + uniform(random) / 11;
        sample.values.push_back(z);
        weight = static_cast<double>(1 + below(random, 3));
        total += weight;
    }
    double part = 0;
    for (const double weight : weights) {
        part += weight;
        sample.cumulative.push_back(
            floor_units(static_cast<count_t>(part), static_cast<count_t>(total), wide_shift));
    }
    return sample;
}

}  // namespace samples
