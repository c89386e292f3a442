// pmf/hdi.cpp: the linear sweep for the shortest interval
// SPDX-License-Identifier: BSD-3-Clause
#include "pmf/hdi.hpp"

#include <algorithm>
#include <cmath>

namespace hdicore {
namespace {

// The first position in [at, end) at which before(k) does not hold, or `end`; it holds up to some
// position. If it fails at others too, some of these are passed by, but only positions below one at
// which it holds. O(distance), eight positions at a time.
template <class Before>
std::size_t partition_point(std::size_t at, std::size_t end, const Before& before) noexcept {
    constexpr std::size_t step = 8;
    while (at + step <= end && before(at + step - 1)) at += step;
    if (at + step <= end) {
        // No branch depends on what is as good as random.
        std::size_t n = 0;
        for (std::size_t k = 0; k + 1 < step; ++k) n += before(at + k);
        return at + n;
    }
    while (at < end && before(at)) ++at;
    return at;
}

// The windows of a distribution: from each start from which the mass suffices to the first end at
// which it does. Ends never move back as starts advance (Theorem 2 of the paper).
class Sweep {
  public:
    Sweep(const StepFunction& steps, mass_t needed) noexcept
        : values_(steps.values.data()),
          cumulative_(steps.cumulative.data()),
          n_atoms_(steps.size()),
          needed_(needed),
          n_starts_(steps.n_up_to(steps.total() - needed)) {}

    // Calls visit(i, j) for each window that ends outside gaps and is no wider than `limit`, and
    // for some others. The call may lower the limit.
    //
    // A window that starts behind i ends at j or beyond: it is at least as wide as from its start
    // to j, rounding included. Starts for which that exceeds the limit are passed by, and so are
    // those whose windows end in one gap.
    template <class Visit>
    void visit_within(const double& limit, const Visit& visit) const noexcept {
        std::size_t j = 0;
        for (std::size_t i = 0; i < n_starts_;) {
            j = end_of(i, j);
            const double end = values_[j];
            if (std::isnan(end)) {
                const mass_t upto = cumulative_[j + 1] - needed_;
                i = partition_point(i + 1, n_starts_,
                                    [&](std::size_t k) { return cumulative_[k] <= upto; });
                continue;
            }
            visit(i, j);
            // Starts in gaps, which are NaN, stop or not.
            i = partition_point(i + 1, n_starts_,
                                [&](std::size_t k) { return end - values_[k] > limit; });
        }
    }

    // The least width of a few windows, infinite if all their ends lie in gaps.
    double least_of_some() const noexcept {
        const std::size_t n_samples = std::min<std::size_t>(n_starts_ / 8, 16);
        double least = infinity;
        std::size_t j = 0;
        for (std::size_t s = 0; s < n_samples; ++s) {
            const std::size_t i = (2 * s + 1) * n_starts_ / (2 * n_samples);
            j = end_of(i, j);
            const double width = values_[j] - values_[i];
            least = width < least ? width : least;
        }
        return least;
    }

  private:
    std::size_t end_of(std::size_t i, std::size_t from) const noexcept {
        const mass_t reached = cumulative_[i] + needed_;
        return partition_point(from, n_atoms_,
                               [&](std::size_t k) { return cumulative_[k + 1] < reached; });
    }

    const double* values_;
    const mass_t* cumulative_;
    std::size_t n_atoms_;
    mass_t needed_;
    std::size_t n_starts_;
};

// The shortest interval among ties: `tied` is the largest width that counts as least. Its ends are
// NaN if the median has to decide and lies in a gap.
Interval choose_tied(const StepFunction& steps, mass_t needed, double tied) noexcept {
    const double* values = steps.values.data();
    // Calls visit(i, j, mass) for the intervals of least width. A width that ends in a gap is NaN.
    const Sweep sweep(steps, needed);
    const auto sweep_tied = [&](auto visit) {
        sweep.visit_within(tied, [&](std::size_t i, std::size_t j) {
            if (!(values[j] - values[i] <= tied)) return;
            visit(i, j, steps.cumulative[j + 1] - steps.cumulative[i]);
        });
    };
    mass_t max_mass = 0;
    sweep_tied([&](std::size_t, std::size_t, mass_t mass) { max_mass = std::max(max_mass, mass); });
    // Rounding leaves masses that are equal apart.
    const mass_t min_mass = max_mass - steps.rounding;
    std::size_t n_tied = 0;
    Interval chosen{std::nan(""), std::nan("")};
    sweep_tied([&](std::size_t i, std::size_t j, mass_t mass) {
        if (mass >= min_mass && n_tied++ == 0) chosen = {values[i], values[j]};
    });
    if (n_tied == 1) return chosen;

    const std::size_t middle = steps.first_reaching(steps.needed(0.5));
    if (middle == steps.size()) return chosen;
    const double median = values[middle];
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

Interval find_shortest(const StepFunction& steps, mass_t needed, double max_abs) noexcept {
    const double* values = steps.values.data();
    double shortest = infinity;
    double runner_up = infinity;
    std::size_t first = 0;
    std::size_t last = steps.size() - 1;
    const double tolerance = tie_tolerance * max_abs;
    const Sweep sweep(steps, needed);
    double limit = sweep.least_of_some() + tolerance;
    sweep.visit_within(limit, [&](std::size_t i, std::size_t j) {
        // NaN where an end lies in a gap: neither comparison holds then.
        const double width = values[j] - values[i];
        if (width < shortest) {
            runner_up = shortest;
            shortest = width;
            first = i;
            last = j;
            limit = std::min(limit, width + tolerance);
        } else {
            runner_up = width < runner_up ? width : runner_up;
        }
    });
    const double tied = shortest + tolerance;
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
