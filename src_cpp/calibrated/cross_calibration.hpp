// calibrated/cross_calibration.hpp: intervals by K forests -> one, by the scores of each one's rows
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/matrix.hpp"
#include "calibrated/post_process.hpp"
#include "scoring/row_blocks.hpp"

namespace hdicore {

// Scores of the training rows by K forests, each of which knows nothing of its rows: CV+ and the
// jackknife+ (Barber, Candes, Ramdas, Tibshirani, Annals of Statistics 49, 2021, eq. 8).
class CrossCalibration {
  public:
    // Scores (n, k) and perhaps their weights, fold after fold, of which each has some `sizes`;
    // those of a fold ascend. Up to an end so many of them are `needed`, (k,), or weigh so much;
    // if there are fewer, or infinite ones are needed, it is infinite. Throws std::invalid_argument
    // unless sizes are those of the scores, these ascend, weights are positive, and there are two
    // folds.
    CrossCalibration(std::span<const std::size_t> sizes, Matrix<const double> scores,
                     Matrix<const double> weights, std::span<const double> needed,
                     PostProcess postprocess);

    std::size_t n_folds() const noexcept { return begins_.size() - 1; }
    std::size_t n_levels() const noexcept { return levels_.size(); }

    // Intervals (n_rows, 2 * p) of coverages at p positions, post-processed and nested in those of
    // higher ones, from the ends (K * n_rows, 2 * m) by the forest of each fold: for the lowest m
    // coverages, or if m is 1 for all. Upper ends are the least sums of an upper end and a score of
    // the same fold up to which there are so many as needed, or larger by a few roundings; lower
    // ends likewise. NaN where an end is. O(K log n) for each row and coverage.
    void intervals(Matrix<const double> ends, std::span<const std::size_t> positions,
                   const Execution& execution, Matrix<double> results) const;

  private:
    struct Level {
        std::vector<double> scores;
        std::vector<double> weights;  // none: all weigh 1
        std::vector<double> reached;  // (n,) what the scores of a fold up to each weigh
        double needed = 0;
        double middle = 0;  // the score that is sought if all shifts are 0
    };
    class Search;

    std::vector<std::size_t> begins_;  // of the folds, and the end
    std::vector<Level> levels_;
    PostProcess postprocess_;
};

}  // namespace hdicore
