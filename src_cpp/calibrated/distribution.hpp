// calibrated/distribution.hpp: which level of a forest's distribution is asked for which
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "calibrated/post_process.hpp"

namespace hdicore {

// Quantiles of the forest at 0.05, 0.10, ..., 0.95, with straight lines between them.
inline constexpr std::size_t n_base_levels = 19;
using BaseQuantiles = std::span<const double, n_base_levels>;

double base_level(std::size_t k) noexcept;

// The largest s with Q(x, s) <= y, or, strictly, the least with Q(x, s) >= y, where Q is the
// quantile function through the base quantiles of a row, which goes on beyond them with the slope
// of the range of targets.
double score_of_target(BaseQuantiles base, double y, const PostProcess& postprocess,
                       bool strictly) noexcept;

// A conformal predictive distribution: the quantile at each known level is Q at a score of a
// calibration row, moved to a value that targets can have.
class PredictiveDistribution {
  public:
    // `levels` are known, and `scores` what s each is; both ascend. Throws std::invalid_argument
    // unless levels are between 0 and 1, and scores as many and no NaN.
    PredictiveDistribution(std::span<const double> levels, std::span<const double> scores,
                           PostProcess postprocess);

    // Where Q at a score is: a share of the way from one base quantile to the next. Both may be
    // one.
    struct Place {
        std::size_t below;
        std::size_t above;
        double share;
        double score;
    };
    // That of a level in [0, 1], or of the next known one.
    Place place(double level) const noexcept;
    // That of a draw by a number in [0, 1).
    Place drawn(double uniform) const noexcept;

    // The quantile at a place, by the base quantiles below and above it. Lattice points of no
    // training target are moved outwards: 1 up, -1 down.
    double quantile(const Place& place, double below, double above, double outwards) const noexcept;

    // Numbers of the base levels that places need, ascending.
    static std::vector<std::size_t> needed(std::span<const Place> places);

    // The largest known level whose quantile is at most y, or, not inclusive, below it.
    double cdf(BaseQuantiles base, double y, bool inclusive) const noexcept;

  private:
    Place place_of_score(double score) const noexcept;

    std::vector<double> levels_;
    std::vector<double> scores_;
    PostProcess postprocess_;
};

}  // namespace hdicore
