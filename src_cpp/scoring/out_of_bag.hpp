// scoring/out_of_bag.hpp: training rows, their means and intervals from trees without them
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "base/interruption.hpp"
#include "base/matrix.hpp"
#include "index/leaf_index.hpp"
#include "pmf/interval.hpp"

namespace hdicore {

// How often each tree drew each row, (n_trees, n_rows).
using Draws = std::variant<Matrix<const std::uint8_t>, Matrix<const std::uint32_t>>;

struct OutOfBagRows {
    Matrix<const leaf_t> leaves;  // (n_trees, n_rows)
    Draws draws;
    std::span<const double> y;              // (n_rows,) targets
    std::span<const double> draw_weight;    // (n_rows,) of a row each time it is drawn, or none: 1
    std::span<const double> sample_weight;  // (n_rows,) of a row in its leaves, or none: 1
};

struct OutOfBagMeans {
    std::vector<double> centres;     // (n_rows,) mean over its out-of-bag trees of leaf means, or 0
    std::vector<double> n_oob;       // (n_rows,) number of trees that did not draw a row
    std::vector<double> leaf_means;  // (n_leaves,) of the rows drawn, 0 without any
    std::vector<double> leaf_weight;  // (n_leaves,) of these rows
};

// What the atoms of a row are.
enum class Family {
    raw,      // targets
    centred,  // the row's centre plus residuals
    stacked,  // the same, with another mean in the centres
};

struct OutOfBagRequest {
    std::span<const std::uint32_t> rows;  // (n,) training rows to find intervals for
    std::span<const double> coverages;    // (n_levels,) in (0, 1]
    std::span<const Kind> kinds;          // (n_levels,) of each
    std::span<const Family> families;
    double scale = 1;
    std::span<const double> offsets{};  // (n_rows,) of all training rows, finite, or none: 0
    Matrix<double> results;             // (n_families * n, 2 * n_levels), lower ends first
};

// The training rows of a forest. Immutable after construction: safe to share between threads.
class OutOfBagScorer {
  public:
    // Averages the targets of the rows that trees drew, and for each row these means of its leaves
    // in the trees that did not draw it. A row weighs its count times `draw_weight`. Rows are
    // summed in their order, and trees in theirs.
    //
    // Leaves and draws are not copied. They must outlive the object; each leaf is checked when it
    // is read. `index` has the same leaves. It is used itself if each row is an atom of it, all
    // weigh alike and it keeps no row weights; else another one is built. O(n_rows * (log n_rows +
    // n_trees)) over n_threads threads. Throws std::invalid_argument.
    OutOfBagScorer(const OutOfBagRows& rows, std::shared_ptr<const LeafIndex> index,
                   unsigned n_threads, Interruption& interruption = Interruption::never());

    const OutOfBagMeans& means() const noexcept { return means_; }
    std::size_t n_rows() const noexcept { return y_.size(); }
    // Whether intervals may be of the family `raw`: rows weigh alike, and atoms ascend in y.
    bool has_raw() const noexcept { return !index_->row_weights(); }

    // Intervals of each training row i from the trees that did not draw it, without row i itself:
    // of the atoms y_j, or s_i + (y_j - s_j(i)), where s_j = scale c_j + offset_j. An atom has the
    // weight that row j has in the out-of-bag distribution of row i. s_j(i) has in place of the
    // centre c_j the same without y_i: (c_j - v y_i) / (1 - v), where v is the weight of y_i in
    // c_j, and 1 - v is taken as min_rest at least. NaN where no tree contributes.
    //
    // O(entries of the row's leaves + atoms log atoms + levels * atoms) for each row, O(n_rows) in
    // all besides. Throws std::invalid_argument.
    void intervals(const OutOfBagRequest& request, unsigned n_threads,
                   Interruption& interruption = Interruption::never()) const;

    static constexpr double min_rest = 0.05;

  private:
    struct Atoms;
    class IntervalWorker;

    std::size_t n_trees() const noexcept { return leaves_.rows(); }
    std::size_t checked_leaf(std::size_t tree, std::size_t row) const;
    std::size_t leaf_number(std::size_t tree, std::size_t leaf) const noexcept {
        return static_cast<std::size_t>(index_->arrays().leaf_offsets[tree]) + leaf;
    }
    template <class Count>
    void find_means(Matrix<const Count> draws, unsigned n_threads, Interruption& interruption);
    // Of rows without a centre none, and none at all if all weigh alike.
    std::vector<double> row_weights(std::span<const double> sample_weight) const;
    void index_by_row(std::span<const double> sample_weight, unsigned n_threads,
                      Interruption& interruption);
    LeafIndex index_of(std::span<const double> values, std::span<const double> weights,
                       bool keep_row_weights, unsigned n_threads, Interruption& interruption) const;
    template <class Count>
    void pack(Matrix<const Count> draws, unsigned n_threads, Interruption& interruption);

    Matrix<const leaf_t> leaves_;
    Draws draws_;
    std::vector<double> y_;
    std::vector<double> draw_weight_;
    OutOfBagMeans means_;
    // Each row is an atom. It keeps row weights, or has no units.
    std::shared_ptr<const LeafIndex> index_;
    std::vector<std::uint32_t> rows_of_atoms_;  // (n_rows,)
    // (n_trees, ceil(n_rows / 8)) bit k of a tree tells whether it drew the row of atom k
    std::vector<std::uint8_t> drawn_;
};

}  // namespace hdicore
