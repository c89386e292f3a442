// model_file/facts.hpp: what a model file says of its arrays, checked, and its calibration
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model_file/calibration.hpp"
#include "model_file/json.hpp"
#include "model_file/tensor_file.hpp"

namespace hdicore {

// The facts of a model, or of one of its outputs.
struct ModelFacts {
    bool moved;  // whether leaves hold other numbers than training targets
    std::uint64_t n_training_rows;
    bool allow_nan;
    std::int64_t n_features;
    std::vector<std::string> feature_names;  // none: fitted without names
    bool scalar_output;
    std::optional<Json> calibration;
    std::vector<Json> outputs;

    // Throws std::invalid_argument at facts that are missing, unknown or of another type, and if
    // the model reads tables whose columns are more than numbers. `whole` facts have the versions
    // that wrote the file.
    static ModelFacts read(const Json& json, bool whole);
};

// A calibration, or why what the file holds is not one that is computed here.
struct StoredCalibration {
    std::optional<Calibration> calibration;
    std::string why_not;

    // Of the arrays whose names begin with `group`. Throws std::invalid_argument if it is damaged.
    static StoredCalibration read(const Json& json, const TensorFile& file,
                                  const std::string& group, std::int64_t n_features);
};

}  // namespace hdicore
