// pmf/kaplan_meier.cpp: one ascending pass over the atoms of a row
// SPDX-License-Identifier: BSD-3-Clause
#include "pmf/kaplan_meier.hpp"

#include <algorithm>
#include <cmath>

namespace hdicore {

Pmf kaplan_meier(std::span<double> times, std::span<mass_t> cumulative,
                 std::span<const rank_t> ranks, std::span<const std::uint8_t> events,
                 std::size_t n_trees) noexcept {
    constexpr mass_t whole = mass_t{1} << 52;
    constexpr double most_rounding = 0x1p-10;  // else rows that weigh next to nothing hide the rest
    const double horizon = times.empty() ? 0 : times.back();
    mass_t at_risk = cumulative.back();
    mass_t below = 0;  // of what was merged
    mass_t last = 0;   // mass up to the last atom kept
    double survival = 1;
    double runs = 0;  // sum of S / R at the first event of each run
    mass_t previous = 0;
    std::size_t n = 0;
    // Whether an atom is an event is as good as random: no branch depends on it.
    for (std::size_t k = 0; k < ranks.size(); ++k) {
        const mass_t event = events[ranks[k]];
        const mass_t units = cumulative[k + 1] - below;
        const mass_t lost = units & -event;
        below += units;
        runs += static_cast<double>(event & ~previous) * (survival / static_cast<double>(at_risk));
        survival *= static_cast<double>(at_risk - lost) / static_cast<double>(at_risk);
        const mass_t upto = whole - static_cast<mass_t>(survival * static_cast<double>(whole));
        times[n] = times[k];
        cumulative[n + 1] = upto;
        n += upto > last;
        last = upto;
        at_risk -= units;
        previous = event;
    }
    Pmf pmf(times.first(n), cumulative.first(n + 1), n_trees, 0);
    // A mass is the difference of two S.
    const double rounding = std::min(4 * static_cast<double>(n_trees) * runs, most_rounding);
    pmf.rounding = std::llround(rounding * static_cast<double>(whole)) + 2 * std::ssize(ranks) + 2;
    pmf.beyond = ranks.empty() ? 0 : whole - cumulative[n];
    pmf.horizon = horizon;
    return pmf;
}

}  // namespace hdicore
