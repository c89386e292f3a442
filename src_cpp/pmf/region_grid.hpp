// pmf/region_grid.hpp: a distribution on equal bins, smoothed by a Gaussian kernel
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "pmf/pmf.hpp"

namespace hdicore {

inline constexpr std::size_t max_bins = 4096;

// Equal bins of [low, high], and the weights of the kernel.
class RegionGrid {
  public:
    // n_bins is from 1 to max_bins, bandwidth the kernel's standard deviation; 0: no smoothing.
    // Throws std::invalid_argument unless low < high, bandwidth >= 0, all finite, and neighbouring
    // edges differ.
    RegionGrid(double low, double high, std::size_t n_bins, double bandwidth);

    std::size_t n_bins() const noexcept { return edges_.size() - 1; }
    double width() const noexcept { return width_; }
    // low + i * width, and high itself.
    double edge(std::size_t i) const noexcept { return edges_[i]; }

    // Masses of the bins (n_bins,), in whole units whose sum is the total of the distribution.
    // Atoms outside count in the first or the last bin, an atom at an edge in the bin above it.
    //
    // A bin's mass is spread by exp(-d^2 / 2) at the centres of the bins, where d is the distance
    // in standard deviations, up to d = 4. What would leave the range stays in it: the weights of
    // each bin are divided by their sum over bins. Running sums are rounded to whole units.
    // `smoothed` (n_bins,) is scratch memory.
    void masses(const Pmf& pmf, std::span<mass_t> bins, std::span<double> smoothed) const noexcept;

  private:
    void smooth(mass_t total, std::span<mass_t> bins, std::span<double> smoothed) const noexcept;

    double width_;
    std::vector<double> edges_;
    std::size_t reach_ = 0;       // bins on either side that a bin's mass is spread over
    std::vector<double> kernel_;  // (2 * reach_ + 1,)
    std::vector<double> sums_;    // (n_bins,) of the weights of the bins that there are
};

}  // namespace hdicore
