// model_file/model_part.hpp: a forest, its index and its calibration, made of checked arrays
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibrated/calibrated_forest.hpp"
#include "model_file/tensor_file.hpp"

namespace hdicore {

// The facts of a model, or of one of its outputs.
struct ModelFacts {
    std::int64_t n_features;
    std::uint64_t n_training_rows;
    bool moved;  // whether leaves hold other numbers than training targets
    bool allow_nan;
    bool scalar_output;
    std::size_t n_folds;
    std::size_t n_outputs;                   // that have a calibration of their own
    std::vector<std::string> feature_names;  // none: fitted without names
    std::optional<std::size_t> n_target_names;

    // Of the arrays whose names begin with `prefix`. Throws std::invalid_argument if they are
    // missing, unknown or out of range, and if only Python makes rows of such a model.
    static ModelFacts read(const TensorFile& file, const std::string& prefix);
};

// A whole model, a fold, or what is calibrated of one of its outputs: of the arrays whose names
// begin with `prefix`. Throws std::invalid_argument if they are damaged, or do not fit each other.
CalibratedForest read_part(const TensorFile& file, const std::string& prefix,
                           const ModelFacts& facts);

bool have_same_coverages(const Calibration& a, const Calibration& b);

}  // namespace hdicore
