// forest/fit_record.cpp: bounds of what a tree may have recorded of each leaf, from the rows in it
// SPDX-License-Identifier: BSD-3-Clause
#include "forest/fit_record.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/parallel.hpp"

namespace hdicore {
namespace {

using Values = std::vector<double>;
using position = std::uint32_t;  // of a node or leaf in its tree

// Largest relative error of one operation, and more than any error near 0: the least number would
// do, but is subnormal, and processors multiply these far more slowly.
constexpr double unit = 0x1p-53;
constexpr double least = std::numeric_limits<double>::min();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Bounds the error of `factor` sums of n products, or of such sums divided by `weight`. A sum in
// any order errs by at most (n - 1) u of its size, and the products by u (Higham, Accuracy and
// Stability of Numerical Algorithms, 2nd ed., section 4.2), and by less than `least` each if they
// underflow.
class SumError {
  public:
    SumError(double factor, double n, double weight = infinity)
        : scale_(factor * (n + 4)), least_(least * (1 + 1 / weight)) {}

    // `size` is the result if all terms are taken as positive.
    double of(double size) const noexcept { return scale_ * (unit * size + least_); }

  private:
    double scale_;
    double least_;
};

// Bounds the error of means of one node that were computed when its parent was split: one child
// has the difference of two sums over the parent and over part of it, which err by at most three
// times what a sum over the parent does; the weights by twice. Squares of means, their differences
// and quotients make it at most ten.
class SplitError {
  public:
    SplitError(double parent_n, double parent_weight, double weight)
        : error_(10, parent_n, weight),
          share_(parent_weight / weight),
          // If the difference of two weights is mostly rounding, nothing is proved.
          proves_(SumError(10, parent_n).of(share_) < 0.01) {}

    // Of a mean whose `size` is its own if all terms are taken as positive; `total` is their sum
    // over the parent, divided by the weight of the node.
    double of(double total, double size) const noexcept {
        return proves_ ? error_.of(total + share_ * size) : infinity;
    }

  private:
    SumError error_;
    double share_;
    bool proves_;
};

// Least and largest number that may have been recorded. NaN bounds nothing.
struct Bounds {
    double low = -infinity;
    double high = infinity;

    bool exclude(double recorded) const noexcept {
        return std::isfinite(recorded) && (recorded < low || recorded > high);
    }
    // NaN in an end stays NaN.
    double clip(double x) const noexcept {
        if (low > x || std::isnan(low)) x = low;
        return high < x || std::isnan(high) ? high : x;
    }
};

// Nodes of a tree, depth first, left before right: a left child follows its parent. Copies what
// each records, as the records of a large tree leave the cache between one use and the next.
struct TreeShape {
    explicit TreeShape(const FitRecord& tree);

    std::vector<position> nodes;   // (n_nodes,) as the record counts them
    std::vector<position> parent;  // (n_nodes,) the root is its own
    std::vector<position> right;   // (n_nodes,) right child, 0 at leaves
    Values n_rows, weight;         // (n_nodes,)
    std::vector<position> leaves;  // (n_leaves,)
    Values impurity;               // (n_leaves,)

    // Sums over the leaves below each node.
    Values sums(const Values& of_leaves) const {
        Values sums(nodes.size());
        for (std::size_t k = 0; k < leaves.size(); ++k) sums[leaves[k]] = of_leaves[k];
        for (std::size_t i = nodes.size(); i-- > 0;) {
            if (right[i] != 0) sums[i] = sums[i + 1] + sums[right[i]];
        }
        return sums;
    }
};

TreeShape::TreeShape(const FitRecord& tree) {
    struct Pending {
        std::int64_t node;
        position parent;
        bool is_right;
    };
    for (auto* array : {&nodes, &parent, &right}) array->reserve(tree.n_nodes());
    for (auto* array : {&n_rows, &weight}) array->reserve(tree.n_nodes());
    std::vector<Pending> pending{{0, 0, false}};
    while (!pending.empty()) {
        const auto [node, above, is_right] = pending.back();
        pending.pop_back();
        const auto at = static_cast<std::size_t>(node);
        if (at >= tree.n_nodes() || nodes.size() == tree.n_nodes()) {
            throw std::invalid_argument("children must make one tree of the nodes");
        }
        const auto i = static_cast<position>(nodes.size());
        nodes.push_back(static_cast<position>(at));
        parent.push_back(above);
        right.push_back(0);
        n_rows.push_back(static_cast<double>(tree.n_rows[at]));
        weight.push_back(tree.weight[at]);
        if (is_right) right[above] = i;
        if (tree.children_left[at] == -1) {
            leaves.push_back(i);
            impurity.push_back(tree.impurity[at]);
        } else {
            pending.push_back({tree.children_right[at], i, true});
            pending.push_back({tree.children_left[at], i, false});
        }
    }
}

struct WeightedTarget {
    std::size_t leaf;
    double target;
    double weight;
};

// Least and largest target of a leaf, ascending, that may be its median if sums of weights err.
std::pair<double, double> medians_of(std::span<const WeightedTarget> rows, double slack) {
    double half = 0;
    for (const WeightedTarget& row : rows) half += row.weight;
    half /= 2;
    double upto = 0;
    std::size_t low = 0, high = 0;
    for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
        upto += rows[i].weight;
        low += upto < half - slack;
        high += upto <= half + slack;
    }
    return {rows[low].target, rows[high].target};
}

// One tree and the rows in it.
class FittedTree {
  public:
    template <class Count>
    FittedTree(const FitRecord& record, const FitRows<Count>& rows, std::size_t tree)
        : record_(record), shape_(record), leaf_weight_(n_leaves()) {
        const std::size_t n = rows.leaves.cols();
        rows_.reserve(n);
        for (std::size_t i = 0; i < n; ++i) {
            double weight = rows.counts.empty() ? 1.0 : static_cast<double>(rows.counts(tree, i));
            if (!rows.sample_weight.empty()) weight *= rows.sample_weight[i];
            if (rows.in_float32) weight = static_cast<double>(static_cast<float>(weight));
            // Checked once, as their memory may be the caller's.
            const auto leaf = static_cast<std::size_t>(rows.leaves(tree, i));
            if (leaf >= n_leaves()) {
                throw std::invalid_argument("leaves must name leaves of the trees, got " +
                                            std::to_string(rows.leaves(tree, i)) + " in tree " +
                                            std::to_string(tree));
            }
            if (weight == 0) continue;
            rows_.push_back({static_cast<position>(leaf), static_cast<position>(i), weight});
            leaf_weight_[leaf] += weight;
        }
        const std::size_t n_outputs = rows.targets.rows();
        recorded_.resize(n_outputs * n_leaves());
        mean_error_.reserve(n_leaves());
        split_error_.reserve(n_leaves());
        for (std::size_t k = 0; k < n_leaves(); ++k) {
            const std::size_t node = shape_.nodes[shape_.leaves[k]];
            for (std::size_t o = 0; o < n_outputs; ++o) {
                recorded_[o * n_leaves() + k] = record_.value(node, o);
            }
            mean_error_.emplace_back(4, n_rows(k), leaf_weight_[k]);
            split_error_.push_back(split_error(shape_.leaves[k]));
        }
    }

    Difference difference(Matrix<const double> targets) const {
        if (!weights_agree()) return Difference::weights;
        std::vector<Bounds> impurities(n_leaves(), Bounds{0, 0});  // sums over outputs
        for (std::size_t output = 0; output < targets.rows(); ++output) {
            const std::span<const double> y = targets.row(output);
            const bool agree = record_.criterion == Criterion::absolute_error
                                   ? medians_agree(y, output, impurities)
                                   : means_agree(y, output, impurities);
            if (!agree) return Difference::targets;
        }
        const auto n_outputs = static_cast<double>(targets.rows());
        for (std::size_t k = 0; k < n_leaves(); ++k) {
            const auto [low, high] = impurities[k];
            const Bounds mean{low / n_outputs, high / n_outputs};
            if (mean.exclude(shape_.impurity[k])) return Difference::targets;
        }
        return Difference::none;
    }

  private:
    struct Medians;
    struct Row {
        position leaf;
        position row;
        double weight;
    };

    std::size_t n_leaves() const noexcept { return shape_.leaves.size(); }
    double n_rows(std::size_t leaf) const noexcept { return shape_.n_rows[shape_.leaves[leaf]]; }

    bool weights_agree() const {
        for (std::size_t k = 0; k < n_leaves(); ++k) {
            const double recorded = shape_.weight[shape_.leaves[k]];
            const SumError error(2, n_rows(k));
            if (std::abs(leaf_weight_[k] - recorded) > error.of(recorded)) return false;
        }
        return true;
    }

    // What the leaves predict of an output, (n_leaves,).
    std::span<const double> recorded(std::size_t output) const {
        return std::span(recorded_).subspan(output * n_leaves(), n_leaves());
    }

    // Of the mean over node i of the shape.
    SplitError split_error(std::size_t i) const {
        const std::size_t above = shape_.parent[i];
        return {shape_.n_rows[above], shape_.weight[above], shape_.weight[i]};
    }

    // Weighted mean of value(row) over the rows of each leaf.
    template <class Value>
    Values mean_of(const Value& value) const {
        Values means(n_leaves());
        for (const Row& row : rows_) means[row.leaf] += row.weight * value(row);
        for (std::size_t k = 0; k < n_leaves(); ++k) means[k] /= leaf_weight_[k];
        return means;
    }

    // Sums over the rows of leaves, from their means; without weight they have none.
    Values weighted(const Values& means) const {
        Values sums(n_leaves());
        for (std::size_t k = 0; k < n_leaves(); ++k) {
            if (leaf_weight_[k] != 0) sums[k] = leaf_weight_[k] * means[k];
        }
        return sums;
    }

    // Errors of means over the leaves, of positive `terms` in their size.
    Values split_errors(const Values& terms, const Values& sizes) const {
        const Values sums = shape_.sums(weighted(terms));
        Values errors(n_leaves());
        for (std::size_t k = 0; k < n_leaves(); ++k) {
            const double total = sums[shape_.parent[shape_.leaves[k]]] / leaf_weight_[k];
            errors[k] = split_error_[k].of(total, sizes[k]);
        }
        return errors;
    }

    bool means_agree(std::span<const double> y, std::size_t output,
                     std::vector<Bounds>& impurities) const;
    void add_impurities(std::span<const double> y, const Values& mean,
                        std::vector<Bounds>& impurities) const;
    std::vector<Bounds> constraints(const Values& mean, const Values& size, double side) const;
    bool medians_agree(std::span<const double> y, std::size_t output,
                       std::vector<Bounds>& impurities) const;
    Medians medians(std::span<const double> y) const;

    const FitRecord& record_;
    TreeShape shape_;
    std::vector<Row> rows_;                // that have a weight
    Values leaf_weight_;                   // (n_leaves,)
    Values recorded_;                      // (n_outputs, n_leaves): an output after the other
    std::vector<SumError> mean_error_;     // (n_leaves,)
    std::vector<SplitError> split_error_;  // (n_leaves,)
};

bool FittedTree::means_agree(std::span<const double> y, std::size_t output,
                             std::vector<Bounds>& impurities) const {
    // Both in one pass, side by side: most of the time goes into reaching the sums of a leaf.
    std::vector<std::array<double, 2>> sums(n_leaves());
    for (const Row& row : rows_) {
        sums[row.leaf][0] += row.weight * y[row.row];
        sums[row.leaf][1] += row.weight * std::abs(y[row.row]);
    }
    Values mean(n_leaves()), size(n_leaves());
    for (std::size_t k = 0; k < n_leaves(); ++k) {
        mean[k] = sums[k][0] / leaf_weight_[k];
        size[k] = sums[k][1] / leaf_weight_[k];
    }
    std::vector<Bounds> lowest, highest;
    if (record_.signs) {
        lowest = constraints(mean, size, -1);
        highest = constraints(mean, size, 1);
    }
    for (std::size_t k = 0; k < n_leaves(); ++k) {
        const double error = mean_error_[k].of(size[k]);
        Bounds bounds{mean[k] - error, mean[k] + error};
        if (record_.signs) bounds = {lowest[k].clip(bounds.low), highest[k].clip(bounds.high)};
        if (bounds.exclude(recorded(output)[k])) return false;
    }
    add_impurities(y, mean, impurities);
    return true;
}

// scikit-learn computes variances as mean squares less squared means.
void FittedTree::add_impurities(std::span<const double> y, const Values& mean,
                                std::vector<Bounds>& impurities) const {
    const bool is_poisson = record_.criterion == Criterion::poisson;
    const Values impurity = mean_of([&](const Row& row) {
        const double of_row = y[row.row], of_leaf = mean[row.leaf];
        if (!is_poisson) return (of_row - of_leaf) * (of_row - of_leaf);
        const double ratio = of_row / of_leaf;
        return of_row == 0 && !std::isnan(ratio) ? 0 : of_row * std::log(ratio);
    });
    Values terms = mean, sizes(n_leaves());
    for (std::size_t k = 0; k < n_leaves(); ++k) {
        sizes[k] = impurity[k] + (is_poisson ? mean[k] : mean[k] * mean[k]);
        if (!is_poisson) terms[k] = sizes[k];
    }
    const Values errors = split_errors(terms, sizes);
    for (std::size_t k = 0; k < n_leaves(); ++k) {
        impurities[k].low += impurity[k] - errors[k];
        impurities[k].high += impurity[k] + errors[k];
    }
}

// Bounds that constraints set each leaf, if the means of nodes are moved to a side by their
// rounding: the middle of two children divides what lies below them.
std::vector<Bounds> FittedTree::constraints(const Values& mean, const Values& size,
                                            double side) const {
    Values moved = shape_.sums(weighted(mean));
    const Values weight = shape_.sums(leaf_weight_), sizes = shape_.sums(weighted(size));
    for (std::size_t i = 0; i < moved.size(); ++i) {
        moved[i] /= weight[i];
        const double total = sizes[shape_.parent[i]] / weight[i];
        moved[i] += side * split_error(i).of(total, std::abs(moved[i]));
    }
    std::vector<Bounds> bounds(moved.size()), of_leaves;
    for (std::size_t i = 0; i < moved.size(); ++i) {
        if (shape_.right[i] == 0) {
            of_leaves.push_back(bounds[i]);
            continue;
        }
        Bounds& left = bounds[i + 1];
        Bounds& right = bounds[shape_.right[i]];
        left = right = bounds[i];
        const double middle = (moved[i + 1] + moved[shape_.right[i]]) / 2;
        const std::int8_t sign = (*record_.signs)[shape_.nodes[i]];
        if (sign == 1) left.high = right.low = middle;
        if (sign == -1) right.high = left.low = middle;
    }
    return of_leaves;
}

// Least and largest target of each leaf that may be its median, NaN without weight.
struct FittedTree::Medians {
    Values low, high;
    Values slack;         // by which weights of rows may be rounded, (n_leaves,)
    bool weights_differ;  // between rows
};

FittedTree::Medians FittedTree::medians(std::span<const double> y) const {
    std::vector<WeightedTarget> rows;
    double total = 0;
    for (const Row& row : rows_) {
        if (!(row.weight > 0)) continue;
        rows.push_back({row.leaf, y[row.row], row.weight});
        total += row.weight;
    }
    std::ranges::sort(rows, [](const WeightedTarget& a, const WeightedTarget& b) {
        if (a.leaf != b.leaf) return a.leaf < b.leaf;
        return std::isnan(b.target) ? !std::isnan(a.target) : a.target < b.target;
    });
    const auto differs = [&](const WeightedTarget& row) { return row.weight != rows[0].weight; };
    Medians found{Values(n_leaves(), nan), Values(n_leaves(), nan), Values(n_leaves()),
                  std::ranges::any_of(rows, differs)};
    // Rounding of the sums of weights, here and in scikit-learn, may decide between neighbours.
    const double rounding = 4 * static_cast<double>(rows.size()) * unit * total;
    for (auto first = rows.cbegin(); first != rows.cend();) {
        const std::size_t k = first->leaf;
        const auto last =
            std::find_if(first, rows.cend(), [k](const auto& r) { return r.leaf != k; });
        found.slack[k] = 1e-9 * leaf_weight_[k] + rounding;
        if (std::isfinite(found.slack[k])) {
            std::tie(found.low[k], found.high[k]) = medians_of({first, last}, found.slack[k]);
        }
        first = last;
    }
    return found;
}

// Constraints move medians anywhere. Before scikit-learn 1.8 some impurities were recorded about
// another point if weights differ. They can only be larger.
bool FittedTree::medians_agree(std::span<const double> y, std::size_t output,
                               std::vector<Bounds>& impurities) const {
    const Medians found = medians(y);
    for (std::size_t k = 0; k < n_leaves(); ++k) {
        const Bounds bounds{found.low[k], found.high[k]};
        if (!record_.signs && bounds.exclude(recorded(output)[k])) return false;
    }
    const Values deviation =
        mean_of([&](const Row& row) { return std::abs(y[row.row] - found.low[row.leaf]); });
    const Values terms = mean_of([&](const Row& row) { return 2 * std::abs(y[row.row]); });
    const Values errors = split_errors(terms, deviation);
    for (std::size_t k = 0; k < n_leaves(); ++k) {
        const double error =
            errors[k] + 4 * found.slack[k] / leaf_weight_[k] * (found.high[k] - found.low[k]);
        impurities[k].low += deviation[k] - error;
        impurities[k].high += found.weights_differ ? infinity : deviation[k] + error;
    }
    return true;
}

}  // namespace

template <class Count>
Mismatch find_mismatch(std::span<const FitRecord> trees, const FitRows<Count>& rows,
                       unsigned n_threads, Interruption& interruption) {
    std::vector<Difference> differences(trees.size(), Difference::none);
    std::atomic<std::size_t> first{trees.size()};  // found so far
    const auto make_worker = [&]() -> Worker {
        return [&](std::size_t tree) {
            interruption.check();
            if (tree > first) return;
            differences[tree] = FittedTree(trees[tree], rows, tree).difference(rows.targets);
            if (differences[tree] == Difference::none) return;
            std::size_t before = first;
            while (tree < before && !first.compare_exchange_weak(before, tree)) continue;
        };
    };
    parallel_for(trees.size(), n_threads, make_worker, interruption);
    return {first, first == trees.size() ? Difference::none : differences[first]};
}

template Mismatch find_mismatch(std::span<const FitRecord>, const FitRows<std::uint8_t>&, unsigned,
                                Interruption&);
template Mismatch find_mismatch(std::span<const FitRecord>, const FitRows<std::uint32_t>&, unsigned,
                                Interruption&);

}  // namespace hdicore
