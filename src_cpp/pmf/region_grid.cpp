// pmf/region_grid.cpp: bins by one walk over atoms and edges, and the convolution in a fixed order
// SPDX-License-Identifier: BSD-3-Clause
#include "pmf/region_grid.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

#include "base/refusal.hpp"

namespace hdicore {
namespace {

constexpr double max_distance = 4;  // in standard deviations

// exp(-t) for 0 <= t <= 500, with a relative error below 1e-14: C libraries differ in last bits.
double exp_of_minus(double t) noexcept {
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

}  // namespace

RegionGrid::RegionGrid(double low, double high, std::size_t n_bins, double bandwidth) {
    if (n_bins < 1 || n_bins > max_bins) {
        refuse("n_bins of grid must be from 1 to " + std::to_string(max_bins) + ", got " +
               std::to_string(n_bins));
    }
    if (!(low < high && std::isfinite(high - low))) {
        refuse("grid must run from low to a higher, finite high, got " + text(low) + " and " +
               text(high));
    }
    if (!(bandwidth >= 0 && std::isfinite(bandwidth))) {
        refuse("bandwidth of grid must be at least 0 and finite, got " + text(bandwidth));
    }
    width_ = (high - low) / static_cast<double>(n_bins);
    edges_.resize(n_bins + 1);
    for (std::size_t i = 0; i < n_bins; ++i) edges_[i] = low + static_cast<double>(i) * width_;
    edges_[n_bins] = high;
    for (std::size_t i = 0; i < n_bins; ++i) {
        if (edges_[i] < edges_[i + 1]) continue;
        refuse("grid must have bins whose edges differ, but " + std::to_string(n_bins) + " from " +
               text(low) + " to " + text(high) + " are too narrow");
    }

    const double reach = max_distance * bandwidth / width_;
    const std::size_t furthest = n_bins - 1;
    reach_ = reach < static_cast<double>(furthest) ? static_cast<std::size_t>(reach) : furthest;
    if (reach_ == 0) return;
    kernel_.resize(2 * reach_ + 1);
    const double step = width_ / bandwidth;
    for (std::size_t d = 0; d <= reach_; ++d) {
        const double distance = static_cast<double>(d) * step;
        kernel_[reach_ - d] = kernel_[reach_ + d] = exp_of_minus(distance * distance / 2);
    }
    sums_.assign(n_bins, 0);
    for (std::size_t b = 0; b < n_bins; ++b) {
        const std::size_t end = std::min(n_bins, b + reach_ + 1);
        for (std::size_t t = b - std::min(b, reach_); t < end; ++t) {
            sums_[b] += kernel_[reach_ + t - b];
        }
    }
}

void RegionGrid::masses(const Pmf& pmf, std::span<mass_t> bins,
                        std::span<double> smoothed) const noexcept {
    std::ranges::fill(bins, 0);
    const std::size_t last = n_bins() - 1;
    std::size_t b = 0;
    for (std::size_t k = 0; k < pmf.size(); ++k) {
        while (b < last && pmf.values[k] >= edges_[b + 1]) ++b;
        bins[b] += pmf.cumulative[k + 1] - pmf.cumulative[k];
    }
    if (reach_ > 0) smooth(pmf.total(), bins, smoothed);
}

void RegionGrid::smooth(mass_t total, std::span<mass_t> bins,
                        std::span<double> smoothed) const noexcept {
    const std::size_t n = bins.size();
    std::ranges::fill(smoothed, 0);
    for (std::size_t b = 0; b < n; ++b) {
        if (bins[b] == 0) continue;
        const double mass = static_cast<double>(bins[b]) / sums_[b];
        const std::size_t begin = b - std::min(b, reach_);
        const std::size_t end = std::min(n, b + reach_ + 1);
        const double* weights = kernel_.data() + (reach_ + begin - b);
        // Sums over bins b stay in their order: the loop over t may be vectorised.
        double* to = smoothed.data() + begin;
        for (std::size_t t = 0; t < end - begin; ++t) to[t] += mass * weights[t];
    }
    double sum = 0;
    for (double& mass : smoothed) mass = sum += mass;
    const double scale = static_cast<double>(total) / sum;
    mass_t before = 0;
    for (std::size_t t = 0; t < n; ++t) {
        // Behind the last bin with mass the running sum is the total, without rounding.
        const auto rounded = static_cast<mass_t>(std::floor(smoothed[t] * scale + 0.5));
        const mass_t upto = smoothed[t] == sum ? total : std::min(rounded, total);
        bins[t] = upto - before;
        before = upto;
    }
}

}  // namespace hdicore
