// model_file/model_part.hpp: a forest, its index and its calibration, made of checked arrays
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/matrix.hpp"
#include "calibrated/groups.hpp"
#include "calibrated/stored_calibration.hpp"
#include "forest/forest.hpp"
#include "index/leaf_index.hpp"
#include "model_file/facts.hpp"
#include "model_file/tensor_file.hpp"

namespace hdicore {

// A calibration, or why what the file holds is not one that is computed here.
struct PartCalibration {
    std::optional<Calibration> calibration;
    std::optional<CalibrationGroups> groups;
    std::string why_not;
};

// A whole model, or what is calibrated of one of its outputs. Immutable.
class ModelPart {
  public:
    // Of the arrays whose names begin with `prefix`. Throws std::invalid_argument if they are
    // damaged, or do not fit each other.
    ModelPart(const TensorFile& file, const std::string& prefix, const ModelFacts& facts);

    const Forest& forest() const noexcept { return forest_; }
    const std::shared_ptr<const LeafIndex>& index() const noexcept { return index_; }
    const PartCalibration& stored() const noexcept { return stored_; }
    bool is_calibrated() const noexcept { return stored_.calibration || !stored_.why_not.empty(); }

    // Calibrated intervals of all rows at `positions` among the calibrated coverages, (n_rows, 2 *
    // n_positions at least), lower ends first. There must be a calibration.
    void calibrated(const RowMatrix& rows, std::span<const std::size_t> positions,
                    unsigned n_threads, Matrix<double> results) const;

  private:
    Forest forest_;
    std::shared_ptr<const LeafIndex> index_;  // never null
    PartCalibration stored_;
    bool rounds_labels_;  // whether features are float32 before groups are read from them
    std::optional<LeafIndex> residuals_;  // of centred intervals
    Array<double> leaf_means_;            // (n_leaves,) whose mean is the centre of a row
};

}  // namespace hdicore
