// scoring/reading.cpp: one function of the atoms after the other
// SPDX-License-Identifier: BSD-3-Clause
#include "scoring/reading.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "pmf/hdi.hpp"

namespace hdicore {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

bool needs_all(const Wanted& wanted) noexcept {
    return wanted.mean != nullptr || wanted.cdf != nullptr || wanted.draws != nullptr ||
           (wanted.quantiles != nullptr && wanted.interpolation != Interpolation::inverted_cdf);
}

bool needs_observation(const Wanted& wanted) noexcept {
    return wanted.quantiles != nullptr && wanted.interpolation != Interpolation::inverted_cdf &&
           wanted.interpolation != Interpolation::averaged_inverted_cdf;
}

double least_share(const Wanted& wanted) noexcept {
    if (needs_all(wanted)) return 0;
    // Keeps rounding in the shares below on the safe side; far above the units' own rounding.
    constexpr double margin = 0x1p-20;
    double least = 1;
    for (const double coverage : wanted.coverages) {
        const bool equal_tailed = wanted.kind == Kind::equal_tailed;
        least = std::min(least, equal_tailed ? (1 + coverage) / 2 - margin : coverage);
    }
    for (const double level : wanted.levels) {
        least = std::min(least, std::max(level, 1 - level) - margin);
    }
    return least;
}

void mark(const BucketMasses& masses, const Wanted& wanted, BucketSet& marked) noexcept {
    for (const double coverage : wanted.coverages) {
        mark_interval(masses, coverage, wanted.kind, marked);
    }
    for (const double level : wanted.levels) mark_quantile(masses, level, marked);
}

bool read(const Atoms& atoms, const Wanted& wanted, std::size_t at) noexcept {
    const bool silent = atoms.size() == 0;
    if (wanted.mean != nullptr) wanted.mean[at] = silent ? nan : atoms.mean();

    const std::size_t n_coverages = wanted.coverages.size();
    for (std::size_t k = 0; k < n_coverages; ++k) {
        const Interval found =
            silent ? undecided : interval(atoms, wanted.coverages[k], wanted.kind);
        if (!silent && is_undecided(found)) return false;
        wanted.intervals[(2 * at) * n_coverages + k] = found.lower;
        wanted.intervals[(2 * at + 1) * n_coverages + k] = found.upper;
    }
    for (std::size_t k = 0; k < wanted.levels.size(); ++k) {
        const double found = silent ? nan : quantile(atoms, wanted.levels[k], wanted.interpolation);
        if (!silent && std::isnan(found)) return false;
        wanted.quantiles[at * wanted.levels.size() + k] = found;
    }
    for (std::size_t k = 0; k < wanted.n_points; ++k) {
        const std::size_t i = at * wanted.n_points + k;
        wanted.cdf[i] = silent ? nan : atoms.cdf(wanted.points[i], wanted.inclusive);
    }
    for (std::size_t k = 0; k < wanted.n_draws; ++k) {
        double& value = wanted.draws[at * wanted.n_draws + k];
        value = silent ? nan : atoms.draw(value);
    }
    return true;
}

}  // namespace hdicore
