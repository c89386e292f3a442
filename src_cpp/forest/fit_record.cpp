// forest/fit_record.cpp: what leaves recorded of a fit, compared with sums over the rows in them
// SPDX-License-Identifier: BSD-3-Clause
#include "forest/fit_record.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "base/parallel.hpp"
#include "base/refusal.hpp"

namespace hdicore {
namespace {

struct Row {
    std::uint32_t leaf, row;
    double weight;
};

struct Leaf {
    double drawn = 0;  // rows, as often as they were drawn
    double weight = 0;

    // Rounding makes two sums of n products, in any order, and two means times their weight differ
    // by less than 4 n units of the sum of sizes (Higham, Accuracy and Stability of Numerical
    // Algorithms, 2nd ed., section 4.2). So whole numbers agree exactly.
    double tolerance(double size) const noexcept {
        constexpr double unit = 0x1p-53, least = std::numeric_limits<double>::min();
        return 4 * (drawn + 4) * (unit * size + least * (1 + weight));
    }
};

template <class Count>
Difference difference(const FitRecord& record, const FitRows<Count>& rows, std::size_t tree) {
    const std::size_t n_leaves = record.weight.size(), n_rows = rows.leaves.cols();
    std::vector<Leaf> leaves(n_leaves);
    std::vector<Row> drawn;
    for (std::size_t i = 0; i < n_rows; ++i) {  // read once, as the memory may be the caller's
        const auto k = static_cast<std::uint32_t>(rows.leaves(tree, i));
        if (k >= n_leaves) {
            refuse("leaves must name leaves of the trees, got " +
                   std::to_string(static_cast<leaf_t>(k)) + " in tree " + std::to_string(tree));
        }
        const double count = rows.counts.empty() ? 1.0 : static_cast<double>(rows.counts(tree, i));
        double weight = rows.sample_weight.empty() ? count : count * rows.sample_weight[i];
        if (rows.in_float32) weight = static_cast<double>(static_cast<float>(weight));
        if (weight == 0) continue;
        drawn.push_back({k, static_cast<std::uint32_t>(i), weight});
        leaves[k].drawn += count;
        leaves[k].weight += weight;
    }
    for (std::size_t k = 0; k < n_leaves; ++k) {
        const double error = leaves[k].tolerance(leaves[k].weight);
        if (std::abs(record.weight[k] - leaves[k].weight) > error) return Difference::weights;
    }
    const auto is_free = [&](std::size_t side, std::size_t k) {
        return record.bounds.empty() || std::isinf(record.bounds(side, k));
    };
    for (std::size_t output = 0; output < rows.targets.rows(); ++output) {
        const std::span<const double> y = rows.targets.row(output);
        std::vector<std::array<double, 2>> sums(n_leaves);
        for (const auto& [leaf, row, weight] : drawn) {
            auto& [first, second] = sums[leaf];
            if (record.medians) {  // weights below and above the value
                first += y[row] < record.value(leaf, output) ? weight : 0;
                second += y[row] > record.value(leaf, output) ? weight : 0;
            } else {  // targets and their sizes
                first += weight * y[row];
                second += weight * std::abs(y[row]);
            }
        }
        for (std::size_t k = 0; k < n_leaves; ++k) {
            const auto [first, second] = sums[k];
            const double value = record.value(k, output), weight = leaves[k].weight;
            const double excess = value * weight - first, error = leaves[k].tolerance(second);
            // Before version 1.8, scikit-learn's sums of weights had up to n^2 roundings.
            const double half = (0.5 + 1e-9) * weight;
            const bool is_high = record.medians ? first > half : excess > error;
            const bool is_low = record.medians ? second > half : -excess > error;
            const bool differs = (is_high && is_free(0, k)) || (is_low && is_free(1, k));
            if (differs && std::isfinite(value)) return Difference::targets;
        }
    }
    return Difference::none;
}

}  // namespace

template <class Count>
std::vector<Difference> compare(std::span<const FitRecord> trees, const FitRows<Count>& rows,
                                unsigned n_threads, Interruption& interruption) {
    std::vector<Difference> found(trees.size());
    const Worker worker = [&](std::size_t tree) {
        found[tree] = difference(trees[tree], rows, tree);
    };
    parallel_for(trees.size(), n_threads, [&] { return worker; }, interruption);
    return found;
}

template std::vector<Difference> compare(std::span<const FitRecord>, const FitRows<std::uint8_t>&,
                                         unsigned, Interruption&);
template std::vector<Difference> compare(std::span<const FitRecord>, const FitRows<std::uint32_t>&,
                                         unsigned, Interruption&);

}  // namespace hdicore
