// pmf/hdi.hpp: atoms -> the shortest interval that holds a given mass
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "merge/distribution.hpp"

namespace hdicore {

// A closed interval.
struct Interval {
    double lower;
    double upper;
};

// What stands in place of an interval that a distribution with a gap does not tell.
inline constexpr Interval undecided{std::numeric_limits<double>::quiet_NaN(),
                                    std::numeric_limits<double>::quiet_NaN()};
inline bool is_undecided(const Interval& interval) noexcept {
    return interval.lower != interval.lower || interval.upper != interval.upper;
}

// Shortest interval between two atoms that holds at least `needed` units, 0 < needed <= total.
// Among intervals of equal width (to 2^-48 of the largest magnitude) the one with most mass (to two
// units a tree), then with its midpoint nearest the lower weighted median, then the leftmost.
//
// Algorithm 1 of Zhu, Lu, Chen (IJCAI 2019), eq. (19)-(21), with its threshold read as the
// coverage, its indices kept in bounds, and prefix sums in place of a running one. O(atoms), two
// pointers; only starts in the lower (1 - coverage) tail are visited. Where the median has to
// decide but lies in a gap of the distribution: undecided.
Interval shortest_interval(const Atoms& atoms, mass_t needed) noexcept;

// The same for any weighted sample in any order: draws of a posterior, importance weights.
class WeightedSample {
  public:
    // Makes room for n values, so that assign allocates nothing.
    void reserve(std::size_t n);

    // values (n,) are finite; weights (n,) are finite, not negative and not all zero, or none are
    // given and all values weigh alike. O(n log n). Throws std::invalid_argument otherwise.
    void assign(std::span<const double> values, std::span<const double> weights,
                Interruption& interruption = Interruption::never());

    Atoms atoms() const noexcept {
        return {values_, cumulative_, 1, wide_shift, false, 0, observation_};
    }

  private:
    std::vector<double> scratch_;
    std::vector<count_t> given_;  // (n,) whole weights
    std::vector<std::size_t> order_;
    std::vector<double> values_;
    std::vector<count_t> whole_;       // weight of each atom
    std::vector<std::size_t> copies_;  // values behind each atom
    std::vector<mass_t> cumulative_;
    double observation_ = 0;  // the least mass of an atom over the values behind it
};

}  // namespace hdicore
