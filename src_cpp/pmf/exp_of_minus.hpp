// pmf/exp_of_minus.hpp: the exponential function by basic operations, the same bits everywhere
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cstdint>

namespace hdicore {

// exp(-t) for 0 <= t <= 500, with a relative error below 1e-14: C libraries differ in last bits.
inline double exp_of_minus(double t) noexcept {
    constexpr double log2_e = 0x1.71547652b82fep+0;
    // Adding this rounds to a whole number, which is then in the lowest bits.
    constexpr double rounder = 0x1.8p52;
    const double x = -log2_e * t;
    const double whole = x + rounder;
    const double r = x - (whole - rounder);
    // 2^r by its Taylor series: |r| <= 1/2, coefficients log(2)^k / k!.
    double power = 0x1.e8cac7351bb25p-32;
    power = power * r + 0x1.e4cf5158b8ecap-28;
    power = power * r + 0x1.b5253d395e7c4p-24;
    power = power * r + 0x1.62c0223a5c824p-20;
    power = power * r + 0x1.ffcbfc588b0c7p-17;
    power = power * r + 0x1.430912f86c787p-13;
    power = power * r + 0x1.5d87fe78a6731p-10;
    power = power * r + 0x1.3b2ab6fba4e77p-7;
    power = power * r + 0x1.c6b08d704a0c0p-5;
    power = power * r + 0x1.ebfbdff82c58fp-3;
    power = power * r + 0x1.62e42fefa39efp-1;
    power = power * r + 1;
    const std::uint64_t exponent = std::bit_cast<std::uint64_t>(whole) << 52;
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(power) + exponent);
}

}  // namespace hdicore
