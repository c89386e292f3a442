// pmf/pmf.cpp: binary searches in the cumulative masses
// SPDX-License-Identifier: BSD-3-Clause
#include "pmf/pmf.hpp"

namespace hdicore {

mass_t StepFunction::needed_of_pool(double level) const noexcept {
    if (level >= 1) return total();
    const mass_t tolerance = 2 * static_cast<mass_t>(n_trees);
    return std::max<mass_t>(1, std::llround(level * static_cast<double>(total())) - tolerance);
}

double Pmf::cdf(double y, bool inclusive) const noexcept {
    const auto above = inclusive ? std::upper_bound(values.begin(), values.end(), y)
                                 : std::lower_bound(values.begin(), values.end(), y);
    const auto n_below = static_cast<std::size_t>(above - values.begin());
    return static_cast<double>(cumulative[n_below]) / static_cast<double>(total());
}

double Pmf::draw(double u) const noexcept {
    const auto units = static_cast<mass_t>(u * static_cast<double>(total()));
    const auto above = std::upper_bound(cumulative.begin() + 1, cumulative.end() - 1, units);
    return values[static_cast<std::size_t>(above - cumulative.begin()) - 1];
}

}  // namespace hdicore
