// model_file/calibration.hpp: base intervals of a row become calibrated ones, as a model stores how
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pmf/interval.hpp"

namespace hdicore {

// An interval before it is widened.
struct BaseInterval {
    bool centred = false;     // of residuals around the centre of a row, or of targets
    std::vector<Kind> kinds;  // whose ends are averaged
    double level = 0;         // that the kinds hold

    friend bool operator==(const BaseInterval&, const BaseInterval&) = default;
};

// One coverage: both ends of its base move outwards by q_hat.
struct CalibratedLevel {
    double coverage;
    BaseInterval base;
    double q_hat;
};

// Equally spaced values base + k step; `slack` is how far, in steps, a value may be from its own.
struct Lattice {
    double base;
    double step;
    double slack;

    double place(double value) const noexcept { return (value - base) / step; }
};

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

  private:
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

// Quantiles of the coverages for rows whose feature has one of the labels.
struct CalibrationGroups {
    std::size_t feature;
    std::vector<std::optional<double>> labels;  // (g,) nothing: the feature is missing
    std::vector<double> q_hat;                  // (g, n_levels) NaN: as all rows

    // Number of the group; labels.size() if there is none.
    std::size_t find(double label) const noexcept;
};

struct Calibration {
    std::vector<CalibratedLevel> levels;  // coverage ascends
    PostProcess postprocess;
    std::optional<CalibrationGroups> groups;

    // Position of a coverage; nothing if it was not calibrated.
    std::optional<std::size_t> find(double coverage) const noexcept;
    // Bases of the lowest k coverages.
    std::vector<BaseInterval> bases(std::size_t k) const;

    // The intervals of the lowest k coverages of one row, in place of those of its bases, each
    // widened, post-processed, and made to contain the one before. `group` is that of the row.
    void widen(std::span<Interval> ends, std::size_t k, std::size_t group) const noexcept;
};

}  // namespace hdicore
