// model_file/stored_calibration.hpp: facts and arrays of a calibration, checked, and what they mean
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibrated/calibrated_scorer.hpp"
#include "calibrated/groups.hpp"
#include "model_file/fact_entries.hpp"

namespace hdicore {

// A calibration, or why what the file holds is not one that is computed here.
struct StoredCalibration {
    std::optional<Calibration> calibration;
    std::optional<CalibrationGroups> groups;
    std::string why_not;
    std::string family;          // of its bases; none of a calibration by folds
    std::size_t n_forests = 0;   // that a calibration by folds has scores of
    std::size_t n_left_out = 0;  // rows that the jackknife+ has scores of

    // Throws std::invalid_argument if it is damaged.
    static StoredCalibration read(const Json& json, FactArrays arrays, std::int64_t n_features);
};

// What is not read, but must be as a model has it: throw std::invalid_argument if it is not.
void check_boxes(const Json& json, FactArrays arrays, std::size_t n_outputs);

}  // namespace hdicore
