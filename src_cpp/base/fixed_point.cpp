// base/fixed_point.cpp: long division of weights into units, and the scaling of real weights
// SPDX-License-Identifier: BSD-3-Clause
#include "base/fixed_point.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/refusal.hpp"

namespace hdicore {

mass_t floor_units(count_t part, count_t whole, int shift) noexcept {
    // Long division, as many bits at a time as fit beside the remainder.
    const int step = 63 - static_cast<int>(std::bit_width(whole));
    count_t quotient = part / whole;
    count_t remainder = part % whole;
    for (int bits = shift; bits > 0;) {
        const int now = std::min(bits, step);
        remainder <<= now;
        quotient = (quotient << now) + remainder / whole;
        remainder %= whole;
        bits -= now;
    }
    return static_cast<mass_t>(quotient);
}

void apportion(std::span<const count_t> weights, int shift, count_t pool, mass_t* units) noexcept {
    const auto n = static_cast<mass_t>(weights.size());
    const count_t total = std::accumulate(weights.begin(), weights.end(), count_t{0});
    const mass_t all =
        pool == 0 ? mass_t{1} << shift : std::max(n, floor_units(total, pool, shift));
    count_t before = 0;
    mass_t given = 0;
    for (mass_t k = 0; k < n; ++k) {
        before += weights[static_cast<std::size_t>(k)];
        const mass_t exact = floor_units(before, pool == 0 ? total : pool, shift);
        const mass_t upto = std::clamp(exact, given + 1, all - (n - 1 - k));
        units[k] = upto - given;
        given = upto;
    }
}

mass_t required_units(double level, std::size_t n_trees, int shift) noexcept {
    const auto trees = static_cast<mass_t>(n_trees);
    if (level >= 1) return trees << shift;
    const double whole = shift == narrow_shift ? 0x1p31 : 0x1p40;
    return std::max<mass_t>(1, trees * (std::llround(level * whole) - 2));
}

std::vector<count_t> integer_weights(std::span<const double> weights, std::size_t copies) {
    std::vector<double> scratch;
    std::vector<count_t> whole;
    integer_weights(weights, copies, scratch, whole);
    return whole;
}

void integer_weights(std::span<const double> weights, std::size_t copies,
                     std::vector<double>& scratch, std::vector<count_t>& whole) {
    const double heaviest = weights.empty() ? 0 : *std::max_element(weights.begin(), weights.end());
    if (!(heaviest > 0)) refuse("the weights must not all be zero");
    const int exponent = std::ilogb(heaviest) + 1;
    scratch.assign(weights.begin(), weights.end());
    // Ascending, so that the sum and with it the scale do not depend on the order of rows.
    std::sort(scratch.begin(), scratch.end());
    double total = 0;
    for (const double w : scratch) total += std::scalbn(w, -exponent);
    const int scale = 51 - (std::ilogb(total * static_cast<double>(copies)) + 1) - exponent;
    whole.resize(weights.size());
    std::transform(weights.begin(), weights.end(), whole.begin(), [&](double w) {
        return std::max<count_t>(w > 0, static_cast<count_t>(std::llround(std::scalbn(w, scale))));
    });
}

}  // namespace hdicore
