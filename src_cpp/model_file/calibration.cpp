// model_file/calibration.cpp: arithmetic in the order in which models are calibrated, bit for bit
// SPDX-License-Identifier: BSD-3-Clause
#include "model_file/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace hdicore {
namespace {

constexpr double rounding_of_places = 1e-6;
// Of the operations between a score and an end, relative to both.
constexpr double allowance = 4 * std::numeric_limits<double>::epsilon();

// NaN if one is; the second of equal ones.
double least(double a, double b) noexcept {
    return std::isnan(a) || a < b ? a : b;
}
double greatest(double a, double b) noexcept {
    return std::isnan(a) || a > b ? a : b;
}

Interval widened(Interval base, double q) noexcept {
    const double share = q == 0 ? 0 : allowance;
    return {base.lower - q - share * (std::fabs(base.lower) + std::fabs(q)),
            base.upper + q + share * (std::fabs(base.upper) + std::fabs(q))};
}

}  // namespace

PostProcess::PostProcess(double low, double high, bool clip, std::optional<Lattice> lattice,
                         std::span<const double> targets)
    : low_(low), high_(high), clip_(clip), lattice_(lattice) {
    if (!(std::isfinite(low) && std::isfinite(high) && low <= high)) {
        throw std::invalid_argument("low and high must be finite with low <= high");
    }
    if (!lattice) {
        if (targets.empty()) return;
        throw std::invalid_argument("targets must be none without a lattice");
    }
    if (!(std::isfinite(lattice->base) && lattice->step > 0 && std::isfinite(lattice->step) &&
          lattice->slack >= 0 && lattice->slack < 0.01)) {
        throw std::invalid_argument(
            "lattice must have a finite base, a positive step and a slack in [0, 0.01)");
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
        const double y = targets[i];
        if (!(y >= low && y <= high) || (i > 0 && !(y > targets[i - 1]))) {
            throw std::invalid_argument("targets must ascend in [low, high]");
        }
        const double place = lattice->place(y);
        if (!(std::fabs(place - std::nearbyint(place)) <= lattice->slack)) continue;
        places_.push_back(std::nearbyint(place));
        targets_.push_back(y);
    }
}

double PostProcess::clipped(double end) const noexcept {
    if (!clip_ || !std::isfinite(end)) return end;
    const double above = end > low_ ? end : low_;
    return above < high_ ? above : high_;
}

double PostProcess::point(double k, double outwards) const noexcept {
    const auto at = std::lower_bound(places_.begin(), places_.end(), k);
    if (at != places_.end() && *at == k) {
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

std::size_t CalibrationGroups::find(double label) const noexcept {
    const auto is_of = [&](const std::optional<double>& own) {
        return own ? *own == label : std::isnan(label);
    };
    return static_cast<std::size_t>(std::find_if(labels.begin(), labels.end(), is_of) -
                                    labels.begin());
}

std::optional<std::size_t> Calibration::find(double coverage) const noexcept {
    for (std::size_t j = 0; j < levels.size(); ++j) {
        if (std::fabs(levels[j].coverage - coverage) <= 1e-7) return j;  // float32 will do
    }
    return std::nullopt;
}

std::vector<BaseInterval> Calibration::bases(std::size_t k) const {
    std::vector<BaseInterval> found;
    for (std::size_t j = 0; j < k; ++j) found.push_back(levels[j].base);
    return found;
}

void Calibration::widen(std::span<Interval> ends, std::size_t k, std::size_t group) const noexcept {
    for (std::size_t j = 0; j < k; ++j) {
        double q = levels[j].q_hat;
        if (groups && group < groups->labels.size()) {
            const double own = groups->q_hat[group * levels.size() + j];
            if (!std::isnan(own)) q = own;
        }
        ends[j] = postprocess.apply(widened(ends[j], q));
        if (j == 0) continue;
        ends[j] = {least(ends[j - 1].lower, ends[j].lower),
                   greatest(ends[j - 1].upper, ends[j].upper)};
    }
}

}  // namespace hdicore
