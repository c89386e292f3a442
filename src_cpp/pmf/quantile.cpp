// pmf/quantile.cpp: binary searches in the cumulative masses
// SPDX-License-Identifier: BSD-3-Clause
#include "pmf/quantile.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hdicore {
namespace {

// First atom at which at least `units` have been gathered.
std::size_t first_reaching(const Atoms& atoms, mass_t units) noexcept {
    const auto masses = atoms.cumulative.subspan(1);
    const auto at = std::lower_bound(masses.begin(), masses.end(), units);
    return static_cast<std::size_t>(at - masses.begin());
}

double averaged_inverted_cdf(const Atoms& atoms, double level) noexcept {
    const mass_t needed = atoms.needed(level);
    const std::size_t k = first_reaching(atoms, needed);
    // F equals the level if it is within the tolerance of two units a tree on either side.
    const mass_t exact = needed + 4 * static_cast<mass_t>(atoms.n_trees);
    const bool equal = level > 0 && k + 1 < atoms.size() && atoms.cumulative[k + 1] <= exact;
    return equal ? atoms.values[k] / 2 + atoms.values[k + 1] / 2 : atoms.values[k];
}

// Masses closer than that to a position are at it: the rounding of shares.
double rounding_of(const Atoms& atoms) noexcept {
    return 2 * static_cast<double>(atoms.n_trees);
}

double closest_observation(const Atoms& atoms, double level) noexcept {
    const double u = atoms.observation;
    const double slack = rounding_of(atoms) / u;
    // Between two positions the later one, unless it lies halfway and that one is even.
    const double at = level * static_cast<double>(atoms.total()) / u - 1.5;
    const double before = std::floor(at + slack);
    const bool halfway = at - before <= slack;
    const bool odd = std::fmod(before, 2) != 0;
    const double position = std::max(0.0, halfway && odd ? before : before + 1);
    const auto beyond = std::upper_bound(atoms.cumulative.begin() + 1, atoms.cumulative.end() - 1,
                                         (position + 0.5) * u);
    return atoms.values[static_cast<std::size_t>(beyond - atoms.cumulative.begin()) - 1];
}

// Where a level stands among the W / u observations: numpy's "virtual index" is (W / u + 1 - alpha
// - beta) * level + alpha - 1.
struct Plotting {
    double alpha = 1;
    double beta = 1;
};

Plotting plotting(Interpolation interpolation) noexcept {
    switch (interpolation) {
        case Interpolation::interpolated_inverted_cdf:
            return {0, 1};
        case Interpolation::hazen:
            return {0.5, 0.5};
        case Interpolation::weibull:
            return {0, 0};
        case Interpolation::median_unbiased:
            return {1 / 3.0, 1 / 3.0};
        case Interpolation::normal_unbiased:
            return {3 / 8.0, 3 / 8.0};
        default:
            return {};
    }
}

double between_observations(const Atoms& atoms, double level,
                            Interpolation interpolation) noexcept {
    const double u = atoms.observation;
    const auto [alpha, beta] = plotting(interpolation);
    const double whole = static_cast<double>(atoms.total()) + u * (1 - alpha - beta);
    const double at = std::max(0.0, level * whole + u * (alpha - 1));

    // Atom `below` fills [its start, its end - u]; up to the next one's start lies the gap.
    const auto beyond = std::upper_bound(atoms.cumulative.begin(), atoms.cumulative.end() - 1, at);
    const std::size_t below = static_cast<std::size_t>(beyond - atoms.cumulative.begin()) - 1;
    const auto end = static_cast<double>(atoms.cumulative[below + 1]);
    const double into_gap = at - (end - u);
    // The rounding of shares must not move a level off the edge of an atom, or off the middle.
    const double rounding = rounding_of(atoms);
    if (into_gap <= rounding || below + 1 == atoms.size()) return atoms.values[below];
    const double low = atoms.values[below];
    const double high = atoms.values[below + 1];
    if (into_gap >= u - rounding) return high;
    switch (interpolation) {
        case Interpolation::lower:
            return low;
        case Interpolation::higher:
            return high;
        case Interpolation::midpoint:
            return low / 2 + high / 2;
        case Interpolation::nearest: {
            const bool halfway = std::fabs(into_gap - u / 2) <= rounding;
            const bool even = std::llround(end / u) % 2 == 1;  // the position of `low`
            return (halfway ? even : into_gap < u / 2) ? low : high;
        }
        default:
            return std::lerp(low, high, into_gap / u);
    }
}

}  // namespace

double quantile(const Atoms& atoms, double level, Interpolation interpolation) noexcept {
    switch (interpolation) {
        case Interpolation::inverted_cdf:
            return atoms.values[first_reaching(atoms, atoms.needed(level))];
        case Interpolation::averaged_inverted_cdf:
            return averaged_inverted_cdf(atoms, level);
        case Interpolation::closest_observation:
            return closest_observation(atoms, level);
        default:
            return between_observations(atoms, level, interpolation);
    }
}

void mark_quantile(const BucketMasses& masses, double level, BucketSet& marked) noexcept {
    masses.mark_reaching(needed_units(level, masses.n_trees(), narrow_shift), marked);
}

void mark_interval(const BucketMasses& masses, double coverage, Kind kind,
                   BucketSet& marked) noexcept {
    const mass_t needed = needed_units(coverage, masses.n_trees(), narrow_shift);
    const mass_t total = needed_units(1, masses.n_trees(), narrow_shift);
    switch (kind) {
        case Kind::equal_tailed:
            mark_quantile(masses, (1 - coverage) / 2, marked);
            mark_quantile(masses, (1 + coverage) / 2, marked);
            return;
        case Kind::lower:
            masses.mark_reaching(total - needed, marked);
            return;
        case Kind::upper:
            masses.mark_reaching(needed, marked);
            return;
        default:
            masses.mark_shortest(needed, marked);
    }
}

Interval interval(const Atoms& atoms, double coverage, Kind kind) noexcept {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const mass_t needed = atoms.needed(coverage);
    switch (kind) {
        case Kind::equal_tailed:
            return {quantile(atoms, (1 - coverage) / 2, Interpolation::inverted_cdf),
                    quantile(atoms, (1 + coverage) / 2, Interpolation::inverted_cdf)};
        case Kind::lower: {
            // Last start that leaves enough mass to its right.
            const auto& masses = atoms.cumulative;
            const auto behind =
                std::upper_bound(masses.begin(), masses.end() - 1, atoms.total() - needed);
            return {atoms.values[static_cast<std::size_t>(behind - masses.begin()) - 1], infinity};
        }
        case Kind::upper:
            return {-infinity, atoms.values[first_reaching(atoms, needed)]};
        default:
            return shortest_interval(atoms, needed);
    }
}

}  // namespace hdicore
