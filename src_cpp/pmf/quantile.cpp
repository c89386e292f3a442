// pmf/quantile.cpp: binary searches in the cumulative masses
// SPDX-License-Identifier: BSD-3-Clause
#include "pmf/quantile.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hdicore {
namespace {

double averaged_inverted_cdf(const Pmf& pmf, double level) noexcept {
    const mass_t needed = pmf.needed(level);
    const std::size_t k = pmf.first_reaching(needed);
    // F equals the level if it is within the tolerance of two units a tree on either side.
    const mass_t exact = needed + 2 * pmf.rounding;
    const bool equal = level > 0 && k + 1 < pmf.size() && pmf.cumulative[k + 1] <= exact;
    return equal ? pmf.values[k] / 2 + pmf.values[k + 1] / 2 : pmf.values[k];
}

// Masses closer than this to a position are at it: the rounding of units.
double rounding_of(const Pmf& pmf) noexcept {
    return static_cast<double>(pmf.rounding);
}

// The least mass of equal observations is rounded down, which many of them would add up.
double mass_of_observation(const Pmf& pmf) noexcept {
    const auto total = static_cast<double>(pmf.total());
    const double n = std::round(total / pmf.observation);
    return std::fabs(total - n * pmf.observation) <= n * rounding_of(pmf) ? total / n
                                                                          : pmf.observation;
}

double closest_observation(const Pmf& pmf, double level) noexcept {
    const double u = mass_of_observation(pmf);
    const double slack = rounding_of(pmf) / u;
    // Between two positions the later one, unless it lies halfway and that one is even.
    const double at = level * static_cast<double>(pmf.total()) / u - 1.5;
    const double before = std::floor(at + slack);
    const bool halfway = at - before <= slack;
    const bool odd = std::fmod(before, 2) != 0;
    const double position = std::max(0.0, halfway && odd ? before : before + 1);
    const auto beyond = std::upper_bound(pmf.cumulative.begin() + 1, pmf.cumulative.end() - 1,
                                         (position + 0.5) * u);
    return pmf.values[static_cast<std::size_t>(beyond - pmf.cumulative.begin()) - 1];
}

// Where a level stands among the W / u observations: numpy's "virtual index" is (W / u + 1 - alpha
// - beta) * level + alpha - 1.
struct Plotting {
    double alpha = 1;
    double beta = 1;
};

// A level between two neighbouring observations.
struct Between {
    double low;
    double high;
    double into_gap;  // mass from the low one to the level, less than u
    double u;         // mass of one observation
    double low_end;   // mass up to the low one, itself included
    double rounding;  // of masses

    double interpolated() const noexcept { return std::lerp(low, high, into_gap / u); }
    double nearest() const noexcept {
        const bool halfway = std::fabs(into_gap - u / 2) <= rounding;
        const bool low_is_even = std::llround(low_end / u) % 2 == 1;
        return (halfway ? low_is_even : into_gap < u / 2) ? low : high;
    }
};

// Calls choose(Between) if the level lies between two atoms.
template <class Choose>
double between_observations(const Pmf& pmf, double level, Plotting plotting,
                            const Choose& choose) noexcept {
    const double u = pmf.observation;
    const auto [alpha, beta] = plotting;
    const double whole = static_cast<double>(pmf.total()) + u * (1 - alpha - beta);
    const double at = std::max(0.0, level * whole + u * (alpha - 1));

    // Atom `below` fills [its start, its end - u]; up to the next one's start lies the gap.
    const auto beyond = std::upper_bound(pmf.cumulative.begin(), pmf.cumulative.end() - 1, at);
    const std::size_t below = static_cast<std::size_t>(beyond - pmf.cumulative.begin()) - 1;
    const auto end = static_cast<double>(pmf.cumulative[below + 1]);
    const double into_gap = at - (end - u);
    // The rounding of units must not move a level off the edge of an atom, or off the middle.
    const double rounding = rounding_of(pmf);
    if (into_gap <= rounding || below + 1 == pmf.size()) return pmf.values[below];
    const double low = pmf.values[below];
    const double high = pmf.values[below + 1];
    if (into_gap >= u - rounding) return high;
    return choose(Between{low, high, into_gap, u, end, rounding});
}

}  // namespace

double quantile(const Pmf& pmf, double level, Interpolation interpolation) noexcept {
    const auto interpolated = [&](Plotting plotting) {
        return between_observations(pmf, level, plotting,
                                    [](const Between& at) { return at.interpolated(); });
    };
    switch (interpolation) {
        case Interpolation::inverted_cdf:
            return inverted_cdf(pmf, level);
        case Interpolation::averaged_inverted_cdf:
            return averaged_inverted_cdf(pmf, level);
        case Interpolation::linear:
            return interpolated({1, 1});
        case Interpolation::lower:
            return between_observations(pmf, level, {}, [](const Between& at) { return at.low; });
        case Interpolation::higher:
            return between_observations(pmf, level, {}, [](const Between& at) { return at.high; });
        case Interpolation::midpoint:
            return between_observations(pmf, level, {},
                                        [](const Between& at) { return at.low / 2 + at.high / 2; });
        case Interpolation::nearest:
            return between_observations(pmf, level, {},
                                        [](const Between& at) { return at.nearest(); });
        case Interpolation::closest_observation:
            return closest_observation(pmf, level);
        case Interpolation::interpolated_inverted_cdf:
            return interpolated({0, 1});
        case Interpolation::hazen:
            return interpolated({0.5, 0.5});
        case Interpolation::weibull:
            return interpolated({0, 0});
        case Interpolation::median_unbiased:
            return interpolated({1 / 3.0, 1 / 3.0});
        case Interpolation::normal_unbiased:
            return interpolated({3 / 8.0, 3 / 8.0});
    }
    unreachable();
}

double inverted_cdf(const Pmf& pmf, double level) noexcept {
    return pmf.value(pmf.first_reaching(pmf.needed(level)));
}

std::optional<double> inverted_cdf(const PartialPmf& pmf, double level) noexcept {
    const double found = pmf.values[pmf.first_reaching(pmf.needed(level))];
    return std::isnan(found) ? std::nullopt : std::optional(found);
}

double min_share_of_inverted_cdf(double level) noexcept {
    // Far above the rounding of levels and units, so that it cannot move the quantile inwards.
    constexpr double margin = 0x1p-20;
    return std::max(level, 1 - level) - margin;
}

void mark_inverted_cdf(const BucketMasses& masses, double level, BucketSet& marked) noexcept {
    masses.mark_reaching(masses.needed(level), marked);
}

}  // namespace hdicore
