// model_file/facts.hpp: what a model file says of its arrays, checked
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model_file/fact_entries.hpp"

namespace hdicore {

// The facts of a model, or of one of its outputs or folds.
struct ModelFacts {
    bool moved;  // whether leaves hold other numbers than training targets
    std::uint64_t n_training_rows;
    bool allow_nan;
    std::int64_t n_features;
    std::vector<std::string> feature_names;  // none: fitted without names
    bool scalar_output;
    std::size_t n_target_names;

    // What is read with the arrays. It lives as long as the document.
    struct Parts {
        std::optional<Json> calibration, mean, boxes, reference;  // nothing: null
        std::vector<Json> outputs, folds;
    } parts;

    // Throws std::invalid_argument at facts that are missing, unknown or of another type, and if
    // the model reads tables whose columns are more than numbers. `whole` facts have the versions
    // that wrote the file.
    static ModelFacts read(const Json& json, bool whole);
};

// What else says which arrays a model may have, beside its forest and its index.
struct FurtherArrays {
    std::string family;          // of its residuals; none: it has none
    std::size_t n_left_out = 0;  // rows of its jackknife+
    std::size_t n_outputs = 1;
    std::size_t n_trees = 1;
    bool is_whole = true;  // not an output or a fold
};

// Checks what is not read of the arrays whose names begin with `prefix`: they are those that such a
// model has. Throws std::invalid_argument if they are not.
void check_further(const TensorFile& file, const std::string& prefix, const ModelFacts& facts,
                   const FurtherArrays& further);

}  // namespace hdicore
