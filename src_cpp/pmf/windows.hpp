// pmf/windows.hpp: the shortest window from each atom that holds a given mass
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pmf/pmf.hpp"

namespace hdicore {

// Calls visit(i, j) for each start i from which the mass suffices, with the first end j at which it
// does. Ends never move back as starts advance (Theorem 2 of the paper). O(atoms).
template <class Visit>
void each_window(const Steps& steps, mass_t needed, Visit visit) noexcept {
    const mass_t* cumulative = steps.cumulative.data();
    const mass_t last_start = steps.total() - needed;
    std::size_t j = 0;
    for (std::size_t i = 0; i < steps.size() && cumulative[i] <= last_start; ++i) {
        while (cumulative[j + 1] < cumulative[i] + needed) ++j;
        visit(i, j);
    }
}

}  // namespace hdicore
