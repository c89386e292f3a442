// pmf/kaplan_meier.cpp: one ascending pass over the atoms of a row
// SPDX-License-Identifier: BSD-3-Clause
#include "pmf/kaplan_meier.hpp"

#include <algorithm>

namespace hdicore {

mass_t survival_rounding(mass_t least_units, int shift) noexcept {
    // A mass is the difference of two S. Rows that weigh next to nothing must not make all masses
    // equal.
    constexpr mass_t most = mass_t{1} << (survival_shift - 12);
    const mass_t whole = mass_t{1} << shift;
    const mass_t n_max = (whole + least_units - 1) / least_units;
    return std::min(n_max << (survival_shift + 2 - shift), most);
}

Pmf kaplan_meier(std::span<double> times, std::span<mass_t> cumulative,
                 std::span<const rank_t> ranks, std::span<const std::uint8_t> events,
                 std::size_t n_trees, mass_t rounding) noexcept {
    constexpr mass_t whole = mass_t{1} << survival_shift;
    const double horizon = times.empty() ? 0 : times.back();
    mass_t at_risk = cumulative.back();
    mass_t below = 0;  // of what was merged
    double survival = 1;
    std::size_t n = 0;
    for (std::size_t k = 0; k < ranks.size(); ++k) {
        const mass_t units = cumulative[k + 1] - below;
        below += units;
        if (events[ranks[k]] != 0) {
            survival *= static_cast<double>(at_risk - units) / static_cast<double>(at_risk);
            const mass_t upto = whole - static_cast<mass_t>(survival * static_cast<double>(whole));
            if (upto > cumulative[n]) {
                times[n] = times[k];
                cumulative[++n] = upto;
            }
        }
        at_risk -= units;
    }
    Pmf pmf(times.first(n), cumulative.first(n + 1), n_trees, 0);
    pmf.rounding = rounding;
    pmf.beyond = ranks.empty() ? 0 : whole - cumulative[n];
    pmf.horizon = horizon;
    return pmf;
}

}  // namespace hdicore
