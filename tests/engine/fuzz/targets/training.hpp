// training.hpp: a fuzzer's bytes -> training rows that an index can be built from
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../../cpp/samples.hpp"
#include "input.hpp"

namespace fuzz {

using hdicore::TrainingRows;

// Few rows with many differences, or many rows in few leaves, for which bucket counts are kept.
inline samples::Training some_training(Input& in) {
    samples::Random random(in.bits<std::uint16_t>());
    const bool large = in.one_in(8);
    const std::size_t n_rows = large ? 64 + in.below(256) : 1 + in.below(16);
    const std::size_t n_leaves = 1 + in.below(large ? 3 : 8);
    samples::Training training =
        samples::random_training(random, n_rows, 1 + in.below(4), n_leaves, 1 + in.below(2));
    if (in.one_in(4)) {
        for (double& y : training.y) y = samples::uniform(random);
    }
    const std::size_t n_pokes = in.below(6);
    for (std::size_t k = 0; k < n_pokes; ++k) {
        double& y = training.y[in.below(training.y.size())];
        const double value = in.real();
        if (std::isfinite(value)) y = value;
    }
    if (in.one_in(3)) {
        training.counts.resize(training.leaves.size());
        for (std::int32_t& count : training.counts) {
            count = static_cast<std::int32_t>(samples::below(random, 4));
        }
        // A leaf of many rows takes units of 40 bits.
        if (in.one_in(4)) {
            training.counts[in.below(training.counts.size())] =
                in.bits<std::int32_t>() & 0x7fffffff;
        }
    }
    if (in.one_in(3)) {
        training.weights.resize(n_rows);
        for (double& weight : training.weights) {
            weight = static_cast<double>(samples::below(random, 5)) / 4;
        }
        double& weight = training.weights[in.below(n_rows)];
        const double value = std::fabs(in.real());
        weight = std::isfinite(value) && value > 0 ? value : 1;
    }
    return training;
}

// The rows, with what else decides how they are kept.
inline TrainingRows some_rows(Input& in, const samples::Training& training) {
    TrainingRows rows = training.rows();
    rows.mask_leaves = in.one_in(3);
    rows.pooled = in.one_in(4);
    if (in.one_in(8)) rows.max_samples_leaf = 1 + in.below(8);
    rows.seed = in.below(4);
    return rows;
}

}  // namespace fuzz
