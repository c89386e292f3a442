// calibrated/calibrated_forest.hpp: a forest with its calibration, by any method: rows -> intervals
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/matrix.hpp"
#include "base/types.hpp"
#include "calibrated/calibrated_scorer.hpp"
#include "calibrated/cross_calibration.hpp"
#include "calibrated/groups.hpp"
#include "forest/forest.hpp"
#include "index/leaf_index.hpp"

namespace hdicore {

struct CalibratedQuery {
    RowMatrix rows;
    std::span<const std::size_t> positions;  // (k,) of coverages, k > 0
    std::span<const double> by{};            // (n_rows,) labels of groups, NaN: missing; or none
    std::span<const double> other_means{};   // (n_rows,) of another regressor, or none
    unsigned n_threads = 0;
    Matrix<double> results{};  // (n_rows, 2 * k at least), lower ends first

    // Of rows [begin, begin + n).
    CalibratedQuery slice(std::size_t begin, std::size_t n) const;
};

// A forest of one output. Immutable once it is made.
struct CalibratedForest {
    Forest forest;
    std::shared_ptr<const LeafIndex> index;  // never null
    // None: the forest has its own intervals only. By folds each level has the interval that is
    // read from a forest without a calibration, and how much scores must weigh in place of q_hat.
    std::optional<Calibration> calibration{};
    std::optional<CalibrationGroups> groups{};
    bool rounds_labels = false;  // whether features are float32 before groups are read from them
    std::optional<LeafIndex> residuals{};  // around centres
    Array<double> centres{};               // (n_leaves,) whose mean is the centre of a row
    double share = 0;                      // of another regressor's mean in the centres

    // By folds: of each a calibrated forest, or for each row which trees drew it.
    std::optional<CrossCalibration> cross{};
    std::vector<CalibratedForest> folds{};
    std::optional<LeafIndex> of_draws{};  // of the training rows as the trees drew them
    Array<std::uint8_t> drawn{};          // (n_left_out, n_trees)

    // There must be a calibration. Throws std::invalid_argument if `by` or `other_means` are there
    // but not used, or needed and not there.
    void intervals(const CalibratedQuery& query) const;

  private:
    void check(const CalibratedQuery& query) const;
    void block_intervals(const CalibratedQuery& query) const;
    std::vector<double> quantiles(const CalibratedQuery& query) const;
    void intervals_by_folds(const CalibratedQuery& query) const;
    void read_left_out(const CalibratedQuery& query, Matrix<double> ends) const;
};

}  // namespace hdicore
