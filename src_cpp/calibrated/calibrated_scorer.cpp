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
    // Coverages often widen the same interval, which is then read once.
    std::vector<Kind> kinds;
    std::vector<double> levels, common;
    std::vector<std::size_t> columns;  // (k,) of the intervals that are read
    for (const CalibratedLevel& level : std::span(calibration.levels).first(k)) {
        std::size_t column = 0;
        while (column < levels.size() &&
               (levels[column] != level.level || kinds[column] != level.kind)) {
            ++column;
        }
        columns.push_back(column);
        common.push_back(level.q_hat);
        if (column < levels.size()) continue;
        kinds.push_back(level.kind);
        levels.push_back(level.level);
    }
    const std::size_t m = levels.size();
    std::vector<double> bases(n * 2 * m), own(2 * k);
    const std::span lower = std::span(own).first(k), upper = std::span(own).last(k);
    score(index, rows, {},
          {.mean = {request.mean},
           .intervals = {.coverages = levels,
                         .results = {bases.data(), n, 2 * m},
                         .kinds = kinds,
                         .centres = request.centres}},
          execution);
    for (std::size_t i = 0; i < n; ++i) {
        if (i % 4096 == 0) execution.interruption.check();
        const double* base = bases.data() + i * 2 * m;
        const double shift = request.shifts.empty() ? 0 : request.shifts[i];
        for (std::size_t j = 0; j < k; ++j) {
            lower[j] = base[columns[j]] + shift;
            upper[j] = base[m + columns[j]] + shift;
        }
        calibrate(lower, upper, request.q_hat.empty() ? common : request.q_hat.row(i).first(k),
                  calibration.postprocess);
        double* result = request.results.row(i).data();
        for (const std::size_t at : positions) *result++ = lower[at];
        for (const std::size_t at : positions) *result++ = upper[at];
    }
}

}  // namespace hdicore
