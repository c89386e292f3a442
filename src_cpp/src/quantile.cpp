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
    const mass_t needed = atoms.needed(level);
    const std::size_t k = first_reaching(atoms, needed);
    // F equals the level if it is within the tolerance of two units a tree on either side.
    const mass_t exact = needed + 4 * static_cast<mass_t>(atoms.n_trees);
    const bool equal = level > 0 && k + 1 < atoms.size() && atoms.cumulative[k + 1] <= exact;
    return equal ? atoms.values[k] / 2 + atoms.values[k + 1] / 2 : atoms.values[k];
}

double between_atoms(const Atoms& atoms, double level, Interpolation interpolation) noexcept {
    const auto mass = [&](std::size_t k) { return atoms.cumulative[k + 1] - atoms.cumulative[k]; };
    mass_t grain = atoms.total();
    for (std::size_t k = 0; k < atoms.size(); ++k) grain = std::min(grain, mass(k));

    // Atom `below` fills [its start, its end - grain]; up to the next one's start lies the gap.
    const double at = level * static_cast<double>(atoms.total() - grain);
    const auto beyond = std::upper_bound(atoms.cumulative.begin(), atoms.cumulative.end() - 1, at);
    const std::size_t below = static_cast<std::size_t>(beyond - atoms.cumulative.begin()) - 1;
    const double into_gap = at - static_cast<double>(atoms.cumulative[below + 1] - grain);
    const double gap = static_cast<double>(grain);
    // The rounding of shares must not move a level off the edge of an atom, or off the middle.
    const double rounding = 2 * static_cast<double>(atoms.n_trees);
    if (into_gap <= rounding || below + 1 == atoms.size()) return atoms.values[below];
    const double low = atoms.values[below];
    const double high = atoms.values[below + 1];
    if (into_gap >= gap - rounding) return high;
    switch (interpolation) {
        case Interpolation::lower:
            return low;
        case Interpolation::higher:
            return high;
        case Interpolation::midpoint:
            return low / 2 + high / 2;
        case Interpolation::nearest:
            return into_gap <= gap / 2 + rounding ? low : high;
        default:
            return std::lerp(low, high, into_gap / gap);
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
