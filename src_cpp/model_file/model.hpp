// model_file/model.hpp: a model file, opened to score rows
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/matrix.hpp"
#include "base/types.hpp"
#include "model_file/model_part.hpp"

namespace hdicore {

// Intervals of rows at coverages in (0, 1], and means beside.
struct ModelQuery {
    RowMatrix rows;
    std::span<const double> levels{};
    std::optional<Kind> kind{};          // nothing: calibrated
    std::span<const double> by{};        // (n_rows,) labels of groups, or none
    Matrix<const double> other_means{};  // (n_rows, n_outputs) of another regressor, or none
    unsigned n_threads = 0;
    std::span<double> means{};   // (n_rows * n_outputs,) or none
    Matrix<double> intervals{};  // (n_rows * n_outputs, 2 * n_levels)
};

// Immutable: safe to share between threads. Queries throw std::invalid_argument at what they do not
// take, and std::runtime_error if a mapped file was written to.
class Model {
  public:
    // Everything but the training rows is checked now; the checksums of large arrays, too, unless
    // the file is `mapped`. Throws std::runtime_error if the file cannot be read, and
    // std::invalid_argument if it is no model, is damaged, or its rows cannot be read from C.
    Model(const std::string& path, bool mapped);

    std::size_t n_features() const noexcept { return whole_.forest.n_features(); }
    std::size_t n_outputs() const noexcept { return whole_.index->n_outputs(); }
    // (n_features,), or none.
    const std::vector<std::string>& feature_names() const noexcept { return facts_.feature_names; }
    // Of the coverages that calibrated intervals are known of, ascending; none without a
    // calibration.
    std::span<const CalibratedLevel> levels() const noexcept {
        const auto& calibration = parts().front().calibration;
        return calibration ? std::span(calibration->levels) : std::span<const CalibratedLevel>();
    }
    const std::shared_ptr<const LeafIndex>& index() const noexcept { return whole_.index; }
    // Of the file, which the index may refer to.
    const std::shared_ptr<const FileBytes>& bytes() const noexcept { return bytes_; }

    // Leaves of rows, (n_rows, n_trees).
    void leaves(const RowMatrix& rows, unsigned n_threads, Matrix<leaf_t> leaves) const;
    // Calibrated ones are those of the coverages that were calibrated. Others that are one-sided
    // are refused of a calibrated model, as a calibrated distribution has others.
    void intervals(const ModelQuery& query) const;

  private:
    explicit Model(const TensorFile& file);
    void check_rows(const RowMatrix& rows) const;
    void calibrated_intervals(const ModelQuery& query) const;
    std::vector<std::size_t> positions(std::span<const double> coverages) const;
    // Of each output.
    std::span<const CalibratedForest> parts() const noexcept {
        return outputs_.empty() ? std::span(&whole_, 1) : std::span(outputs_);
    }

    std::shared_ptr<const FileBytes> bytes_;
    ModelFacts facts_;
    CalibratedForest whole_;
    std::vector<CalibratedForest> outputs_;  // of several outputs, if they are calibrated
};

}  // namespace hdicore
