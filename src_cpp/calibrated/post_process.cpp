// calibrated/post_process.cpp: arithmetic in one order, so that all doors agree bit for bit
// SPDX-License-Identifier: BSD-3-Clause
#include "calibrated/post_process.hpp"

#include <algorithm>
#include <cmath>

#include "base/refusal.hpp"

namespace hdicore {
namespace {

constexpr double rounding_of_places = 1e-6;

// NaN if one is; the second of equal ones.
double least(double a, double b) noexcept {
    return std::isnan(a) || a < b ? a : b;
}
double greatest(double a, double b) noexcept {
    return std::isnan(a) || a > b ? a : b;
}

}  // namespace

Interval widened(Interval base, double q) noexcept {
    if (q == 0) return base;
    return {base.lower - q - allowance * (std::fabs(base.lower) + std::fabs(q)),
            base.upper + q + allowance * (std::fabs(base.upper) + std::fabs(q))};
}

PostProcess::PostProcess(double low, double high, bool clip, std::optional<Lattice> lattice,
                         std::span<const double> targets)
    : low_(low), high_(high), clip_(clip), lattice_(lattice) {
    if (!(std::isfinite(low) && std::isfinite(high) && low <= high)) {
        refuse("low and high must be finite with low <= high");
    }
    if (!lattice) {
        if (targets.empty()) return;
        refuse("targets must be none without a lattice");
    }
    if (!(std::isfinite(lattice->base) && lattice->step > 0 && std::isfinite(lattice->step) &&
          lattice->slack >= 0 && lattice->slack < 0.01)) {
        refuse("lattice must have a finite base, a positive step and a slack in [0, 0.01)");
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
        const double y = targets[i];
        if (!(y >= low && y <= high) || (i > 0 && !(y > targets[i - 1]))) {
            refuse("targets must ascend in [low, high]");
        }
        const double place = lattice->place(y);
        if (!(std::fabs(place - std::nearbyint(place)) <= lattice->slack)) continue;
        places_.push_back(std::nearbyint(place));
        targets_.push_back(y);
    }
}

double PostProcess::in_range(double value) const noexcept {
    if (!clip_ || std::isnan(value)) return value;
    const double above = value > low_ ? value : low_;
    return above < high_ ? above : high_;
}

double PostProcess::clipped(double end) const noexcept {
    return std::isinf(end) ? end : in_range(end);
}

double PostProcess::point(double k, double outwards) const noexcept {
    auto at = std::lower_bound(places_.begin(), places_.end(), k);
    if (at != places_.end() && *at == k) {  // NaN is at none
        while (outwards > 0 && at + 1 != places_.end() && *(at + 1) == k) ++at;
        return targets_[static_cast<std::size_t>(at - places_.begin())];
    }
    const auto& [base, step, slack] = *lattice_;
    return base + step * k + outwards * step * std::max(slack - rounding_of_places, 0.0);
}

Interval PostProcess::apply(Interval interval) const noexcept {
    auto& [low, high] = interval;
    if (low > high) low = high = low / 2 + high / 2;
    low = clipped(low);
    high = clipped(high);
    if (!lattice_) return interval;
    double first = std::ceil(lattice_->place(low) - lattice_->slack);
    double last = std::floor(lattice_->place(high) + lattice_->slack);
    if (first > last) first = last = std::nearbyint(lattice_->place(low / 2 + high / 2));
    return {clipped(point(first, -1)), clipped(point(last, 1))};
}

Interval PostProcess::reach(double y) const noexcept {
    Interval reach{y, y};
    if (lattice_) {
        const double nearest = std::nearbyint(lattice_->place(y));
        const bool below = y<point(nearest, -1), above = y> point(nearest, 1);
        if (below || above) {
            reach = {point(nearest - (below ? 1 : 0), -1), point(nearest + (above ? 1 : 0), 1)};
        }
    }
    if (clip_ && (y < low_ || y > high_)) reach = {-infinity, infinity};
    return reach;
}

double PostProcess::nearest(double value, double outwards) const noexcept {
    if (lattice_) value = point(std::nearbyint(lattice_->place(value)), outwards);
    return in_range(value);
}

Interval PostProcess::cell(double y) const noexcept {
    if (!lattice_) return {y, y};
    const auto& [base, step, slack] = *lattice_;
    const double place = lattice_->place(y);
    return {base + step * (std::ceil(place - slack) - 0.5),
            base + step * (std::floor(place + slack) + 0.5)};
}

double conformity_score(const Interval& base, const Interval& reach) noexcept {
    return greatest(base.lower - reach.lower, reach.upper - base.upper);
}

Interval hull(const Interval& a, const Interval& b) noexcept {
    return {least(a.lower, b.lower), greatest(a.upper, b.upper)};
}

}  // namespace hdicore
