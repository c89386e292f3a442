// quantile.cpp: binary searches in the cumulative masses
// SPDX-License-Identifier: BSD-3-Clause
#include "hdicore/quantile.hpp"

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
    const std::size_t k = first_reaching(atoms, atoms.needed(level));
    // F equals the level if it reaches it with, but not without, the tolerance of two units a tree.
    const mass_t exact = atoms.needed(level) + 4 * static_cast<mass_t>(atoms.n_trees);
    const bool equal = level > 0 && k + 1 < atoms.size() && atoms.cumulative[k + 1] <= exact;
    return equal ? atoms.values[k] / 2 + atoms.values[k + 1] / 2 : atoms.values[k];
}

double between_atoms(const Atoms& atoms, double level, Interpolation interpolation) noexcept {
    const std::size_t last = atoms.size() - 1;
    if (last == 0 || level <= 0) return atoms.values[0];
    if (level >= 1) return atoms.values[last];

    const auto left = [&](std::size_t k) { return static_cast<double>(atoms.cumulative[k]); };
    const auto others = [&](std::size_t k) {
        return static_cast<double>(atoms.total() - atoms.cumulative[k + 1] + atoms.cumulative[k]);
    };
    std::size_t below = 0;  // left / others at below <= level < left / others at above
    std::size_t above = last;
    while (above - below > 1) {
        const std::size_t middle = below + (above - below) / 2;
        (left(middle) <= level * others(middle) ? below : above) = middle;
    }
    const double low = atoms.values[below];
    const double high = atoms.values[above];
    // The rounding of shares must not turn a level that is an atom's own into one beside it.
    const auto hits = [&](std::size_t k) {
        return std::fabs(left(k) - level * others(k)) <= 2 * static_cast<double>(atoms.n_trees);
    };
    if (hits(below)) return low;
    if (hits(above)) return high;
    const double level_below = left(below) / others(below);
    const double fraction = (level - level_below) / (left(above) / others(above) - level_below);
    switch (interpolation) {
        case Interpolation::lower:
            return low;
        case Interpolation::higher:
            return high;
        case Interpolation::midpoint:
            return low / 2 + high / 2;
        case Interpolation::nearest:
            return fraction <= 0.5 ? low : high;
        default:
            return std::lerp(low, high, fraction);
    }
}

}  // namespace

double quantile(const Atoms& atoms, double level, Interpolation interpolation) noexcept {
    switch (interpolation) {
        case Interpolation::inverted_cdf:
            return atoms.values[first_reaching(atoms, atoms.needed(level))];
        case Interpolation::averaged_inverted_cdf:
            return averaged_inverted_cdf(atoms, level);
        default:
            return between_atoms(atoms, level, interpolation);
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
