// pmf/smoothed_hdi.cpp: one pass for the least width, one for the mean of the windows
// SPDX-License-Identifier: BSD-3-Clause
#include "pmf/smoothed_hdi.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "pmf/exp_of_minus.hpp"

namespace hdicore {
namespace {

// The shortest window from each start from which the mass suffices, in runs that fit the memory.
class Windows {
  public:
    Windows(const StepFunction& steps, mass_t needed) noexcept : steps_(steps), needed_(needed) {}

    // Calls use(lower ends, upper ends) with one run after the other. If there is one alone, it is
    // kept for the next call.
    template <class Use>
    void each_run(const Use& use) noexcept {
        if (n_ == 0) find(0, steps_.first_reaching(needed_));
        while (n_ > 0) {
            use(lower(), upper());
            if (n_ < capacity) break;
            find(first_ + n_, last_);
        }
        if (first_ > 0) n_ = 0;
    }

  private:
    static constexpr std::size_t capacity = 1024;

    std::span<const double> lower() const noexcept { return steps_.values.subspan(first_, n_); }
    std::span<const double> upper() const noexcept { return std::span(upper_).first(n_); }

    // Finds the windows from `first` on, the first of which ends at `last` or later.
    void find(std::size_t first, std::size_t last) noexcept {
        const double* values = steps_.values.data();
        const mass_t* cumulative = steps_.cumulative.data();
        const mass_t last_start = steps_.total() - needed_;
        std::size_t n = 0;
        // Whether start or end moves on is as good as random: no branch depends on it.
        while (n < capacity && cumulative[first + n] <= last_start) {
            upper_[n] = values[last];
            const bool reached = cumulative[last + 1] >= cumulative[first + n] + needed_;
            n += reached;
            last += !reached;
        }
        first_ = first;
        n_ = n;
        last_ = last;
    }

    const StepFunction& steps_;
    mass_t needed_;
    std::size_t first_ = 0;  // the run starts at atoms [first_, first_ + n_)
    std::size_t n_ = 0;
    std::size_t last_ = 0;  // where it ends
    std::array<double, capacity> upper_;
};

// Weighted sums over windows, taken in blocks.
class WindowSums {
  public:
    // Ends are summed as differences from those of a shortest window.
    explicit WindowSums(const Interval& shortest) noexcept
        : shortest_(shortest), least_(shortest.upper - shortest.lower) {}

    // Adds windows, but for those that are too wide or end in a gap: then the width is NaN.
    void add(std::span<const double> lower, std::span<const double> upper) noexcept {
        const double widest = smoothing_reach * least_;
        for (std::size_t k = 0; k < lower.size(); ++k) {
            lower_[n_] = lower[k];
            upper_[n_] = upper[k];
            n_ += upper[k] - lower[k] <= widest;
            if (n_ == block) add_block();
        }
    }

    Interval mean() noexcept {
        add_block();
        const auto sum = [](const Lanes& of) { return (of[0] + of[1]) + (of[2] + of[3]); };
        const double weight = sum(weight_sum_);
        const double lower = shortest_.lower + sum(lower_sum_) / weight;
        const double upper = shortest_.upper + sum(upper_sum_) / weight;
        // Rounding may cross them if they nearly meet.
        return {lower, std::max(lower, upper)};
    }

  private:
    static constexpr std::size_t n_lanes = 4;
    static constexpr std::size_t block = 64;
    using Lanes = std::array<double, n_lanes>;

    void add_block() noexcept {
        const std::size_t n = (n_ + n_lanes - 1) / n_lanes * n_lanes;
        std::fill(lower_.begin() + n_, lower_.begin() + n, shortest_.lower);
        std::fill(upper_.begin() + n_, upper_.begin() + n, shortest_.upper);
        std::array<double, block> weight;
        for (std::size_t k = 0; k < n; ++k) {
            const double excess = (upper_[k] - lower_[k] - least_) / least_;
            weight[k] = k < n_ ? exp_of_minus(5 * excess) : 0;
        }
        for (std::size_t k = 0; k < n; k += n_lanes) {
            for (std::size_t lane = 0; lane < n_lanes; ++lane) {
                const double w = weight[k + lane];
                weight_sum_[lane] += w;
                lower_sum_[lane] += w * (lower_[k + lane] - shortest_.lower);
                upper_sum_[lane] += w * (upper_[k + lane] - shortest_.upper);
            }
        }
        n_ = 0;
    }

    Interval shortest_;
    double least_;
    Lanes weight_sum_{};
    Lanes lower_sum_{};
    Lanes upper_sum_{};
    // Windows on their way to the sums.
    std::size_t n_ = 0;
    std::array<double, block> lower_;
    std::array<double, block> upper_;
};

// Nothing if the shortest interval is asked for.
std::optional<Interval> mean_of_windows(const StepFunction& steps, mass_t needed,
                                        double max_abs) noexcept {
    Windows windows(steps, needed);
    double least = std::numeric_limits<double>::infinity();
    Interval shortest{};
    windows.each_run([&](std::span<const double> lower, std::span<const double> upper) {
        for (std::size_t k = 0; k < lower.size(); ++k) {
            // NaN where the window ends in a gap.
            const double width = upper[k] - lower[k];
            if (width < least) {
                least = width;
                shortest = {lower[k], upper[k]};
            }
        }
    });
    const bool can_overflow = max_abs > 0x1p900;
    const bool none_known = least == std::numeric_limits<double>::infinity();
    if (can_overflow || none_known || least <= tie_tolerance * max_abs) return std::nullopt;

    WindowSums sums(shortest);
    windows.each_run([&](std::span<const double> lower, std::span<const double> upper) {
        sums.add(lower, upper);
    });
    return sums.mean();
}

}  // namespace

Interval smoothed_hdi(const Pmf& pmf, mass_t needed) noexcept {
    const std::optional<Interval> mean = mean_of_windows(pmf, needed, pmf.max_abs());
    return mean ? *mean : shortest_interval(pmf, needed);
}

std::optional<Interval> smoothed_hdi(const PartialPmf& pmf, mass_t needed) noexcept {
    const std::optional<Interval> mean = mean_of_windows(pmf, needed, pmf.max_abs());
    return mean ? mean : shortest_interval(pmf, needed);
}

}  // namespace hdicore
