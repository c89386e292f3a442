// calibrated/calibrated_scorer.cpp: base intervals of a row, then what calibration makes of them
// SPDX-License-Identifier: BSD-3-Clause
#include "calibrated/calibrated_scorer.hpp"

#include <algorithm>
#include <cmath>

namespace hdicore {

std::optional<std::size_t> Calibration::find(double coverage) const noexcept {
    for (std::size_t j = 0; j < levels.size(); ++j) {
        if (std::fabs(levels[j].coverage - coverage) <= 1e-7) return j;  // float32 will do
    }
    return std::nullopt;
}

void calibrate(std::span<double> lower, std::span<double> upper, std::span<const double> q_hat,
               const PostProcess& postprocess) noexcept {
    for (std::size_t j = 0; j < lower.size(); ++j) {
        Interval own = postprocess.apply(widened({lower[j], upper[j]}, q_hat[j]));
        if (j > 0) own = hull({lower[j - 1], upper[j - 1]}, own);
        lower[j] = own.lower;
        upper[j] = own.upper;
    }
}

void calibrated_intervals(const LeafIndex& index, const LeafSource& rows,
                          const Calibration& calibration, const CalibratedRequest& request,
                          const Execution& execution) {
    const std::span<const std::size_t> positions = request.positions;
    // Intervals contain those of lower coverages; higher ones are not needed.
    const std::size_t k = *std::ranges::max_element(positions) + 1, n = rows.n_rows();
    std::vector<Kind> kinds;
    std::vector<double> levels, common;
    for (const CalibratedLevel& level : std::span(calibration.levels).first(k)) {
        kinds.push_back(level.kind);
        levels.push_back(level.level);
        common.push_back(level.q_hat);
    }
    std::vector<double> ends(n * 2 * k);
    score(index, rows, {},
          {.mean = {request.mean},
           .intervals = {.coverages = levels,
                         .results = {ends.data(), n, 2 * k},
                         .kinds = kinds,
                         .centres = request.centres}},
          execution);
    for (std::size_t i = 0; i < n; ++i) {
        const std::span own = std::span(ends).subspan(i * 2 * k, 2 * k);
        if (!request.shifts.empty()) {
            for (double& end : own) end += request.shifts[i];
        }
        calibrate(own.first(k), own.last(k), request.q_hat.empty() ? common : request.q_hat.row(i),
                  calibration.postprocess);
        double* result = request.results.row(i).data();
        for (const std::size_t at : positions) *result++ = own[at];
        for (const std::size_t at : positions) *result++ = own[k + at];
    }
}

}  // namespace hdicore
