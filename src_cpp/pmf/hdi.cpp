// pmf/hdi.cpp: the linear sweep for the shortest interval
// SPDX-License-Identifier: BSD-3-Clause
#include "pmf/hdi.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hdicore {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Calls visit(i, j) for each start i from which the mass suffices, with the first end j at which it
// does. Ends never move back as starts advance (Theorem 2 of the paper).
template <class Visit>
void sweep(const Steps& steps, mass_t needed, Visit visit) noexcept {
    const mass_t* cumulative = steps.cumulative.data();
    const mass_t last_start = steps.total() - needed;
    std::size_t j = 0;
    for (std::size_t i = 0; i < steps.size() && cumulative[i] <= last_start; ++i) {
        while (cumulative[j + 1] < cumulative[i] + needed) ++j;
        visit(i, j);
    }
}

// The shortest interval among ties: `tied` is the largest width that counts as least. Its ends are
// NaN if the median has to decide and lies in a gap.
Interval choose_tied(const Steps& steps, mass_t needed, double tied) noexcept {
    const double* values = steps.values.data();
    // Calls visit(i, j, mass) for the intervals of least width. A width that ends in a gap is NaN.
    const auto sweep_tied = [&](auto visit) {
        sweep(steps, needed, [&](std::size_t i, std::size_t j) {
            if (!(values[j] - values[i] <= tied)) return;
            visit(i, j, steps.cumulative[j + 1] - steps.cumulative[i]);
        });
    };
    mass_t max_mass = 0;
    sweep_tied([&](std::size_t, std::size_t, mass_t mass) { max_mass = std::max(max_mass, mass); });
    // Rounding leaves masses that are equal less than two units a tree apart.
    const mass_t min_mass = max_mass - 2 * static_cast<mass_t>(steps.n_trees);
    std::size_t n_tied = 0;
    Interval chosen{std::nan(""), std::nan("")};
    sweep_tied([&](std::size_t i, std::size_t j, mass_t mass) {
        if (mass >= min_mass && n_tied++ == 0) chosen = {values[i], values[j]};
    });
    if (n_tied == 1) return chosen;

    const double median = values[steps.first_reaching(steps.needed(0.5))];
    if (std::isnan(median)) return {median, median};
    double nearest = infinity;
    sweep_tied([&](std::size_t i, std::size_t j, mass_t mass) {
        // Halves, so that the sum of two large values does not overflow.
        const double distance = std::fabs(values[i] / 2 + values[j] / 2 - median);
        if (mass >= min_mass && distance < nearest) {
            nearest = distance;
            chosen = {values[i], values[j]};
        }
    });
    return chosen;
}

Interval find_shortest(const Steps& steps, mass_t needed, double max_abs) noexcept {
    const double* values = steps.values.data();
    double shortest = infinity;
    double runner_up = infinity;
    std::size_t first = 0;
    std::size_t last = steps.size() - 1;
    sweep(steps, needed, [&](std::size_t i, std::size_t j) {
        // NaN where an end lies in a gap: neither comparison holds then.
        const double width = values[j] - values[i];
        if (width < shortest) {
            runner_up = shortest;
            shortest = width;
            first = i;
            last = j;
        } else {
            runner_up = width < runner_up ? width : runner_up;
        }
    });
    const double tied = shortest + tie_tolerance * max_abs;
    if (runner_up > tied) return {values[first], values[last]};
    return choose_tied(steps, needed, tied);
}

}  // namespace

Interval shortest_interval(const Pmf& pmf, mass_t needed) noexcept {
    return find_shortest(pmf, needed, pmf.max_abs());
}

std::optional<Interval> shortest_interval(const PartialPmf& pmf, mass_t needed) noexcept {
    const Interval found = find_shortest(pmf, needed, pmf.max_abs());
    if (std::isnan(found.lower) || std::isnan(found.upper)) return std::nullopt;
    return found;
}

}  // namespace hdicore
