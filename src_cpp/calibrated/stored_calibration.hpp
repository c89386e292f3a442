// calibrated/stored_calibration.hpp: what answers need of a calibration, as one array of numbers
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "calibrated/calibrated_scorer.hpp"
#include "calibrated/distribution.hpp"
#include "calibrated/groups.hpp"
#include "scoring/out_of_bag.hpp"

namespace hdicore {

enum class Method { oob, split, cv_plus, jackknife_plus };

// Read from the array that docs/file_format.md describes; spans are parts of it.
struct StoredCalibration {
    static constexpr double version = 1;

    Method method;
    Family family;
    double low, high;
    bool clip;
    std::optional<Lattice> lattice;
    std::span<const double> targets;
    std::vector<CalibratedLevel> levels;      // of methods by folds as CalibratedForest has them
    std::optional<CalibrationGroups> groups;  // none of methods by folds
    std::span<const double> distribution_levels, distribution_scores;  // none: no distribution

    bool is_by_folds() const noexcept {
        return method == Method::cv_plus || method == Method::jackknife_plus;
    }
    PostProcess postprocess() const { return {low, high, clip, lattice, targets}; }

    // Throws std::invalid_argument unless the array is of this version, and each number in range.
    static StoredCalibration read(std::span<const double> numbers);
};

}  // namespace hdicore
