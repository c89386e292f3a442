// pmf/pmf.hpp: a discrete distribution of y, complete or with gaps
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "base/fixed_point.hpp"
#include "base/types.hpp"

namespace hdicore {

// Atoms with positive mass in ascending order, no two equal, and the distribution function at them.
// What both kinds of distribution below have in common; read through one of them.
struct StepFunction {
    std::span<const double> values;      // (n_atoms,)
    std::span<const mass_t> cumulative;  // (n_atoms + 1,) cumulative[k] is the mass of the first k
    std::size_t n_trees;                 // trees that contribute, each 2^shift units
    int shift;
    // Masses that are equal differ by no more than this: the rounding of units.
    mass_t rounding = 2 * static_cast<mass_t>(n_trees);
    // Mass of a censored target above all atoms, and the largest time that has weight, below it.
    mass_t beyond = 0;
    double horizon = 0;

    std::size_t size() const noexcept { return values.size(); }
    mass_t total() const noexcept { return cumulative.back(); }
    mass_t whole() const noexcept { return total() + beyond; }
    bool is_empty() const noexcept { return whole() == 0; }

    // As required_units; with pooled leaves a tree contributes less than 2^shift units, and masses
    // of censored targets have units of their own.
    mass_t needed(double level) const noexcept {
        const mass_t of_trees = static_cast<mass_t>(n_trees) << shift;
        return whole() == of_trees ? required_units(level, n_trees, shift) : needed_of_whole(level);
    }

    // First atom up to which the mass is at least `units`, size() if there is none. O(log n_atoms).
    std::size_t first_reaching(mass_t units) const noexcept {
        const auto masses = cumulative.subspan(1);
        const auto at = std::lower_bound(masses.begin(), masses.end(), units);
        return static_cast<std::size_t>(at - masses.begin());
    }

    // Number of atoms before which the mass is at most `units`. O(log n_atoms).
    std::size_t n_up_to(mass_t units) const noexcept {
        const auto masses = cumulative.first(size());
        const auto beyond = std::upper_bound(masses.begin(), masses.end(), units);
        return static_cast<std::size_t>(beyond - masses.begin());
    }

  private:
    mass_t needed_of_whole(double level) const noexcept {
        if (level >= 1) return whole();
        return std::max<mass_t>(1, std::llround(level * static_cast<double>(whole())) - rounding);
    }
};

// A complete distribution, a probability mass function: everything can be read from it.
struct Pmf : StepFunction {
    // Mass of one observation, for quantiles that interpolate; 0 if nobody asked for it.
    double observation = 0;

    Pmf(std::span<const double> values, std::span<const mass_t> cumulative, std::size_t n_trees,
        int shift, double observation = 0) noexcept
        : StepFunction{values, cumulative, n_trees, shift}, observation(observation) {}

    // An atom, or infinity behind the last, where the mass beyond lies.
    double value(std::size_t atom) const noexcept {
        return atom < size() ? values[atom] : infinity;
    }

    // Largest absolute value of an atom.
    double max_abs() const noexcept {
        return std::max(std::fabs(values.front()), std::fabs(values.back()));
    }

    // P(Y <= y), or P(Y < y), O(log n_atoms).
    double cdf(double y, bool inclusive = true) const noexcept {
        const auto above = inclusive ? std::upper_bound(values.begin(), values.end(), y)
                                     : std::lower_bound(values.begin(), values.end(), y);
        const auto n_below = static_cast<std::size_t>(above - values.begin());
        return static_cast<double>(cumulative[n_below]) / static_cast<double>(whole());
    }

    // Smallest atom whose cumulative mass exceeds the share u in [0, 1), O(log n_atoms): a draw,
    // if u is uniform. Infinite if there is none.
    double draw(double u) const noexcept {
        const auto units = static_cast<mass_t>(u * static_cast<double>(whole()));
        if (beyond > 0 && units >= total()) return value(size());
        const auto above = std::upper_bound(cumulative.begin() + 1, cumulative.end() - 1, units);
        return values[static_cast<std::size_t>(above - cumulative.begin()) - 1];
    }
};

// A distribution with gaps: the mass of a gap is known, the atoms in it are not. In `values` a gap
// is one atom of value NaN. Only functions that return std::optional read it: they return nothing
// if the answer lies in a gap.
struct PartialPmf : StepFunction {
    PartialPmf(std::span<const double> values, std::span<const mass_t> cumulative,
               std::size_t n_trees, int shift, double max_abs) noexcept
        : StepFunction{values, cumulative, n_trees, shift}, max_abs_(max_abs) {}

    // Largest absolute value of an atom, those in gaps included.
    double max_abs() const noexcept { return max_abs_; }

  private:
    double max_abs_;
};

}  // namespace hdicore
