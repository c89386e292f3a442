// calibrated/post_process.hpp: intervals that were widened, made ones that targets can have
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "pmf/interval.hpp"

namespace hdicore {

// Equally spaced values base + k step; `slack` is how far, in steps, a value may be from its own.
struct Lattice {
    double base;
    double step;
    double slack;

    double place(double value) const noexcept { return (value - base) / step; }
};

// Of the operations between a score or a target and an end, relative to both.
inline constexpr double allowance = 4 * std::numeric_limits<double>::epsilon();

// Both ends moved outwards by q, with an allowance for the rounding of a score. At 0 nothing moves.
Interval widened(Interval base, double q) noexcept;

// What is known of every target, and so applied to every widened interval.
class PostProcess {
  public:
    // `targets` are the distinct training targets on a lattice, ascending. Throws
    // std::invalid_argument unless all is finite and in range.
    PostProcess(double low, double high, bool clip, std::optional<Lattice> lattice,
                std::span<const double> targets);

    // Ends that targets can have: those that cross become their midpoint, and on a lattice both
    // move inwards to a target. NaN stays NaN.
    Interval apply(Interval interval) const noexcept;

    // What an interval must contain so that it holds y once it is post-processed: y itself, or the
    // farther of the lattice points around it, or, outside of the range, everything.
    Interval reach(double y) const noexcept;

    // The nearest value that targets can have, an infinite one of the range, too. Lattice points of
    // no training target are moved as far as targets deviate: 1 up, -1 down.
    double nearest(double value, double outwards) const noexcept;

    // From where to where values are rounded to a target y. Of y between two points both are where
    // those begin that are rounded up.
    Interval cell(double y) const noexcept;

    double low() const noexcept { return low_; }
    double high() const noexcept { return high_; }
    bool clips() const noexcept { return clip_; }

  private:
    double in_range(double value) const noexcept;
    // The same, but infinite ends stay.
    double clipped(double end) const noexcept;
    // The target that is the k-th lattice point; if none is, the point moved outwards as far as
    // targets deviate from theirs.
    double point(double k, double outwards) const noexcept;

    double low_;
    double high_;
    bool clip_;
    std::optional<Lattice> lattice_;
    std::vector<double> places_;   // of the targets on the lattice, ascending
    std::vector<double> targets_;  // these
};

// The score of a target: what widens an interval enough to cover it, given its reach.
double conformity_score(const Interval& base, const Interval& reach) noexcept;

// The least interval that holds both. NaN if an end is.
Interval hull(const Interval& a, const Interval& b) noexcept;

}  // namespace hdicore
