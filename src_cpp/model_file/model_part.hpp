// model_file/model_part.hpp: a forest, its index and its calibration, made of checked arrays
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "calibrated/calibrated_forest.hpp"
#include "model_file/facts.hpp"
#include "model_file/tensor_file.hpp"

namespace hdicore {

// A whole model, a fold, or what is calibrated of one of its outputs: of the arrays whose names
// begin with `prefix`. Throws std::invalid_argument if they are damaged, or do not fit each other.
CalibratedForest read_part(const TensorFile& file, const std::string& prefix,
                           const ModelFacts& facts);

bool have_same_coverages(const Calibration& a, const Calibration& b);

}  // namespace hdicore
