// calibrated/distribution.cpp: scores of targets, and quantiles of scores
// SPDX-License-Identifier: BSD-3-Clause
#include "calibrated/distribution.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "base/refusal.hpp"

namespace hdicore {
namespace {

constexpr double rounding = 1e-9;  // of a level that should equal a known one
constexpr double level_allowance =
    16 * std::numeric_limits<double>::epsilon();  // quantile to level
constexpr double huge = 1e300;                    // infinite points are moved here

constexpr std::array<double, n_base_levels> known = [] {
    std::array<double, n_base_levels> levels{};
    for (std::size_t k = 0; k < n_base_levels; ++k) levels[k] = static_cast<double>(k + 1) / 20;
    return levels;
}();

// What a score of one is beyond the base quantiles, in the unit of y.
double unit_of(const PostProcess& postprocess) noexcept {
    const double half = postprocess.high() / 2 - postprocess.low() / 2;
    return half != 0 ? half : 1.0;
}

// The first of ascending values that is not below x, or of those above it.
template <class Values>
std::size_t first_not_below(const Values& values, double x) noexcept {
    return static_cast<std::size_t>(std::lower_bound(values.begin(), values.end(), x) -
                                    values.begin());
}
template <class Values>
std::size_t first_above(const Values& values, double x) noexcept {
    return static_cast<std::size_t>(std::upper_bound(values.begin(), values.end(), x) -
                                    values.begin());
}

}  // namespace

double base_level(std::size_t k) noexcept {
    return known[k];
}

double score_of_target(BaseQuantiles base, double y, const PostProcess& postprocess,
                       bool strictly) noexcept {
    const Interval cell = postprocess.cell(y);
    const double z = strictly ? cell.lower : cell.upper;
    const auto count = static_cast<std::size_t>(std::ranges::count_if(
        base, [&](double quantile) { return strictly ? quantile < z : quantile <= z; }));
    constexpr std::size_t last = n_base_levels - 1;
    if (count == 0) return known[0] + (z - base[0]) / unit_of(postprocess);
    if (count > last) return known[last] + (z - base[last]) / unit_of(postprocess);
    const std::size_t cell_of = count - 1;
    return known[cell_of] + (known[cell_of + 1] - known[cell_of]) *
                                ((z - base[cell_of]) / (base[cell_of + 1] - base[cell_of]));
}

PredictiveDistribution::PredictiveDistribution(std::span<const double> levels,
                                               std::span<const double> scores,
                                               PostProcess postprocess)
    : levels_(levels.begin(), levels.end()),
      scores_(scores.begin(), scores.end()),
      postprocess_(std::move(postprocess)) {
    if (levels_.empty() || levels_.size() != scores_.size()) {
        refuse("levels and scores of the distribution must be as many, and some");
    }
    const auto not_less = [](double a, double b) { return !(a < b); };
    if (std::ranges::adjacent_find(levels_, not_less) != levels_.end() || !(levels_.front() > 0) ||
        !(levels_.back() < 1)) {
        refuse("levels of the distribution must ascend between 0 and 1");
    }
    const auto is_nan = [](double score) { return std::isnan(score); };
    if (std::ranges::any_of(scores_, is_nan) || !std::ranges::is_sorted(scores_)) {
        refuse("scores of the distribution must be numbers and ascend");
    }
}

PredictiveDistribution::Place PredictiveDistribution::place(double level) const noexcept {
    if (!(level > 0)) return place_of_score(-infinity);
    const std::size_t at = first_not_below(levels_, level - rounding);
    return place_of_score(at < scores_.size() ? scores_[at] : infinity);
}

PredictiveDistribution::Place PredictiveDistribution::drawn(double uniform) const noexcept {
    // Of the levels that are known, as the others may be infinite.
    const double level = (1 - uniform) * levels_.back();
    return place_of_score(scores_[first_not_below(levels_, level - rounding)]);
}

PredictiveDistribution::Place PredictiveDistribution::place_of_score(double score) const noexcept {
    const std::size_t above = first_above(known, score);
    const std::size_t cell = std::clamp<std::size_t>(above, 1, n_base_levels - 1) - 1;
    const double share =
        std::clamp((score - known[cell]) / (known[cell + 1] - known[cell]), 0.0, 1.0);
    return {share == 1 ? cell + 1 : cell, share == 0 ? cell : cell + 1, share, score};
}

double PredictiveDistribution::quantile(const Place& place, double below, double above,
                                        double outwards) const noexcept {
    const double between = below + place.share * (above - below);
    if (std::isnan(between)) return nan;
    const double inside = std::min(between, above);  // not beyond it by rounding
    const double beyond = place.score - std::clamp(place.score, known.front(), known.back());
    return postprocess_.nearest(inside + unit_of(postprocess_) * beyond, outwards);
}

std::vector<std::size_t> PredictiveDistribution::needed(std::span<const Place> places) {
    std::set<std::size_t> found;
    for (const Place& place : places) found.insert({place.below, place.above});
    return {found.begin(), found.end()};
}

double PredictiveDistribution::cdf(BaseQuantiles base, double y, bool inclusive) const noexcept {
    if (std::ranges::any_of(base, [](double q) { return std::isnan(q); })) return nan;
    const bool clips = postprocess_.clips();
    const double low = clips ? postprocess_.low() : -infinity;
    const double high = clips ? postprocess_.high() : infinity;
    if (inclusive ? y < low : y <= low) return 0;
    if (inclusive ? y >= high : y > high) return 1;
    const double finite = std::clamp(y, -huge, huge);
    const double scale =
        std::max({std::fabs(base.front()), std::fabs(base.back()), std::fabs(finite)});
    // What rounding may have taken from a quantile, or added to it.
    const double moved = finite + (inclusive ? 1 : -1) * (scale * level_allowance);
    const double score = score_of_target(base, moved, postprocess_, !inclusive);
    const std::size_t at =
        inclusive ? first_above(scores_, score) : first_not_below(scores_, score);
    return at == 0 ? 0 : levels_[at - 1];
}

}  // namespace hdicore
