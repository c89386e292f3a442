// calibrated/calibrated_scorer.hpp: rows -> intervals that cover what they say
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/matrix.hpp"
#include "calibrated/post_process.hpp"
#include "scoring/scorer.hpp"

namespace hdicore {

// One coverage: an interval of a kind that holds `level` of a distribution is widened by q_hat.
struct CalibratedLevel {
    double coverage;
    Kind kind;
    double level;
    double q_hat;
};

struct Calibration {
    std::vector<CalibratedLevel> levels;  // coverage ascends
    PostProcess postprocess;

    // Position of a coverage; nothing if it was not calibrated.
    std::optional<std::size_t> find(double coverage) const noexcept;
};

// The intervals of one row for ascending coverages, in place of their bases: each widened by its
// quantile, post-processed, and made to contain the one before.
void calibrate(std::span<double> lower, std::span<double> upper, std::span<const double> q_hat,
               const PostProcess& postprocess) noexcept;

struct CalibratedRequest {
    std::span<const std::size_t> positions;  // (k,) of coverages, k > 0
    std::span<const double> centres{};       // (n_leaves,) as of IntervalRequest
    std::span<const double> shifts{};        // (n_rows,) added to the base intervals, or none
    Matrix<const double> q_hat{};            // (n_rows, n_levels) of each row, or none
    std::span<double> mean{};                // (n_rows,) of the index, or none
    Matrix<double> results{};                // (n_rows, 2 * k at least), lower ends first
};

// Intervals of rows by an index of targets, or of residuals around centres: one merge of a row's
// leaves gives the bases of all coverages. Memory beside the results is that of `score` and 16
// bytes for each row and coverage. Throws as `score`.
void calibrated_intervals(const LeafIndex& index, const LeafSource& rows,
                          const Calibration& calibration, const CalibratedRequest& request,
                          const Execution& execution);

}  // namespace hdicore
