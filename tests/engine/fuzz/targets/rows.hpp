// rows.hpp: a fuzzer's bytes -> rows to route down a forest
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "forest/forest.hpp"
#include "input.hpp"
#include "scoring/route.hpp"
#include "scoring/scorer.hpp"

namespace fuzz {

// Rows of float32, and the same as float64; NaN, but nothing infinite.
struct Rows {
    std::size_t n_rows;
    std::size_t n_features;
    std::vector<float> as_float;
    std::vector<double> as_double;

    Rows(Input& in, std::size_t n) : n_rows(in.below(in.one_in(4) ? 40 : 8)), n_features(n) {
        for (std::size_t i = 0; i < n_rows * n_features; ++i) {
            const bool common = !in.one_in(4);
            const double x = common ? static_cast<double>(in.below(16)) / 16 : in.real();
            const bool too_large = std::fabs(x) >= 0x1.ffffffp127;
            as_float.push_back(too_large ? 0.5f : static_cast<float>(x));
            as_double.push_back(as_float.back());
        }
    }

    const float* row(std::size_t i) const { return as_float.data() + i * n_features; }
    hdicore::RowMatrix matrix(bool of_doubles) const {
        if (of_doubles) return {hdicore::Matrix(as_double.data(), n_rows, n_features)};
        return {hdicore::Matrix(as_float.data(), n_rows, n_features)};
    }

    // (n_rows, n_trees), as every way of routing finds them.
    std::vector<hdicore::leaf_t> leaves(const hdicore::Forest& forest, bool node_ids) const {
        const std::size_t m = forest.n_trees();
        std::vector<hdicore::leaf_t> all(n_rows * m), others(n_rows * m), one(m);
        hdicore::route_all(forest, matrix(false), node_ids, 1, {all.data(), n_rows, m});
        hdicore::route_all(forest, matrix(true), node_ids, 2, {others.data(), n_rows, m});
        REQUIRE(all == others);
        for (std::size_t i = 0; i < n_rows; ++i) {
            const hdicore::RowMatrix alone{hdicore::Matrix(row(i), 1, n_features)};
            hdicore::route_all(forest, alone, node_ids, 1, {one.data(), 1, m});
            REQUIRE(std::equal(one.begin(), one.end(), all.data() + i * m));
        }
        return all;
    }
};

}  // namespace fuzz
