// pmf/moving_quantiles.cpp: conformal quantiles of a window of scores that moves row by row
// SPDX-License-Identifier: BSD-3-Clause
#include "pmf/moving_quantiles.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/types.hpp"

namespace hdicore {
namespace {

constexpr double rounding = 1e-9;  // of (m + 1) (1 - miss), which may be a whole number

double quantile_of(const std::vector<double>& sorted, double miss) noexcept {
    const auto m = static_cast<double>(sorted.size());
    const double rank = std::max(1.0, std::ceil((m + 1) * (1 - miss) - rounding));
    if (rank > m) return infinity;
    return sorted[static_cast<std::size_t>(rank) - 1];
}

}  // namespace

double moving_quantiles(std::span<const double> start, std::span<const double> scores,
                        std::size_t size, double target, double miss, double rate,
                        std::span<double> quantiles, Interruption& interruption) {
    start = start.last(std::min(start.size(), size));
    std::vector<double> sorted(start.begin(), start.end());
    sorted.reserve(size + 1);
    std::ranges::sort(sorted);
    for (std::size_t i = 0; i < scores.size(); ++i) {
        if (i % 1024 == 0) interruption.check();
        quantiles[i] = quantile_of(sorted, miss);
        const double missed = scores[i] > quantiles[i] ? 1 : 0;
        miss += rate * (target - missed);
        sorted.insert(std::ranges::upper_bound(sorted, scores[i]), scores[i]);
        if (sorted.size() <= size) continue;
        // The oldest: of all scores, those of the start first, number i + start.size() - size.
        const std::size_t oldest = i + start.size() - size;
        const double gone = oldest < start.size() ? start[oldest] : scores[oldest - start.size()];
        sorted.erase(std::ranges::lower_bound(sorted, gone));
    }
    return miss;
}

}  // namespace hdicore
