// model_file/model.cpp: what a file holds is known whole, and rows are checked before they are read
// SPDX-License-Identifier: BSD-3-Clause
#include "model_file/model.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/refusal.hpp"
#include "scoring/route.hpp"
#include "scoring/scorer.hpp"

namespace hdicore {
namespace {

// Rows whose base intervals are in memory at once.
constexpr std::size_t rows_at_once = std::size_t{1} << 16;

TensorFile open_file(const std::string& path, bool mapped) {
    const auto bytes = std::make_shared<const FileBytes>(path, mapped);
    return TensorFile::read(bytes, "hdicore_model", !mapped);
}

std::vector<ModelPart> read_outputs(const TensorFile& file, const ModelFacts& whole,
                                    std::size_t n_outputs) {
    std::vector<ModelPart> outputs;
    if (whole.n_outputs == 0) return outputs;
    if (whole.n_outputs != n_outputs || n_outputs == 1) {
        refuse("outputs must be as many as the targets, or none");
    }
    for (std::size_t output = 0; output < n_outputs; ++output) {
        const std::string name = "output" + std::to_string(output);
        const ModelFacts facts = ModelFacts::read(file, name + ".");
        outputs.emplace_back(file, name + ".", facts);
        if (!outputs.back().is_calibrated() || facts.n_features != whole.n_features) {
            refuse(name + " must be calibrated, and of the features of the model");
        }
        if (outputs.back().index()->n_outputs() != 1) refuse(name + " must have one output");
    }
    return outputs;
}

std::vector<double> coverages_of(const ModelPart& whole, std::span<const ModelPart> outputs) {
    std::vector<double> found;
    const ModelPart& first = outputs.empty() ? whole : outputs.front();
    if (first.stored().calibration) {
        for (const auto& level : first.stored().calibration->levels) {
            found.push_back(level.coverage);
        }
    }
    for (const ModelPart& part : outputs) {
        if (!part.stored().calibration) return {};
        const auto& levels = part.stored().calibration->levels;
        const auto same = [](double a, const CalibratedLevel& b) { return a == b.coverage; };
        if (!std::equal(found.begin(), found.end(), levels.begin(), levels.end(), same)) {
            refuse("the calibrations of all outputs must be of the same coverages");
        }
    }
    return found;
}

// Labels that are texts are NaN, and match no row.
void check_same_labels(std::span<const ModelPart> outputs) {
    const auto same = [](const std::optional<double>& a, const std::optional<double>& b) {
        return a == b || (a && b && std::isnan(*a) && std::isnan(*b));
    };
    for (const ModelPart& part : outputs) {
        const PartCalibration &first = outputs.front().stored(), &own = part.stored();
        if (!first.calibration || !own.calibration) continue;
        if (first.groups.has_value() == own.groups.has_value() &&
            (!own.groups || std::ranges::equal(first.groups->labels, own.groups->labels, same))) {
            continue;
        }
        refuse("the groups of all outputs must be the same");
    }
}

RowMatrix slice(const RowMatrix& rows, std::size_t begin, std::size_t n) {
    return std::visit(
        [&](const auto& X) -> RowMatrix {
            return {std::decay_t<decltype(X)>(X.data() + begin * X.cols(), n, X.cols())};
        },
        rows.features);
}

std::string number_text(double x) {
    std::string text = std::to_string(x);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.push_back('0');
    return text;
}

}  // namespace

Model::Model(const std::string& path, bool mapped) : Model(open_file(path, mapped)) {
    bytes_->require_unchanged();
}

Model::Model(const TensorFile& file)
    : bytes_(file.bytes),
      facts_(ModelFacts::read(file, "")),
      whole_(file, "", facts_),
      outputs_(read_outputs(file, facts_, whole_.index()->n_outputs())),
      coverages_(coverages_of(whole_, outputs_)) {
    check_same_labels(outputs_);
}

void Model::check_rows(const RowMatrix& rows) const {
    bytes_->require_unchanged();
    if (rows.n_features() != n_features()) {
        refuse("X has " + std::to_string(rows.n_features()) + " features, but the model expects " +
               std::to_string(n_features()));
    }
    std::visit(
        [&]<class Real>(const Matrix<const Real>& X) {
            for (std::size_t i = 0; i < X.size(); ++i) {
                const Real x = X.data()[i];
                if (std::fabs(x) < too_large<Real> || (std::isnan(x) && facts_.allow_nan)) continue;
                refuse("X[" + std::to_string(i / X.cols()) + ", " + std::to_string(i % X.cols()) +
                       (std::isnan(x) ? "] is NaN, and the model takes no missing values"
                                      : "] is infinite or too large for float32"));
            }
        },
        rows.features);
}

void Model::mean(const RowMatrix& rows, unsigned n_threads, std::span<double> means) const {
    check_rows(rows);
    score(*index(), RoutedRows(whole_.forest(), rows), {}, {.mean = {means}},
          {.n_threads = n_threads});
}

void Model::leaves(const RowMatrix& rows, unsigned n_threads, Matrix<leaf_t> leaves) const {
    check_rows(rows);
    route_all(whole_.forest(), rows, false, n_threads, leaves);
}

void Model::intervals(const RowMatrix& rows, std::span<const double> levels, Kind kind,
                      unsigned n_threads, Matrix<double> intervals) const {
    if (is_calibrated() && (kind == Kind::lower || kind == Kind::upper)) {
        refuse(
            "kind must not be hdicore_lower or hdicore_upper of a calibrated model, whose bounds "
            "come from a calibrated distribution, which is not read from C");
    }
    check_rows(rows);
    score(*index(), RoutedRows(whole_.forest(), rows), {},
          {.intervals = {.coverages = levels, .kind = kind, .results = intervals}},
          {.n_threads = n_threads});
}

std::vector<std::size_t> Model::positions(std::span<const double> levels) const {
    if (!is_calibrated())
        refuse("kind must not be calibrated, because the model has no calibration");
    const ModelPart* part = &whole_;
    for (const ModelPart& output : outputs_) {
        if (!output.stored().calibration || &output == &outputs_.front()) part = &output;
    }
    const PartCalibration& stored = part->stored();
    if (!stored.calibration) {
        refuse("the calibrated intervals of this file are not read from C, as " + stored.why_not +
               "; ask for hdicore_hdi, which is not calibrated");
    }
    std::vector<std::size_t> found;
    for (const double level : levels) {
        const auto at = stored.calibration->find(level);
        if (!at) {
            std::string known;
            for (const double coverage : coverages_)
                known.append(" ").append(number_text(coverage));
            refuse("coverages must be calibrated ones," + known + ", got " + number_text(level));
        }
        found.push_back(*at);
    }
    return found;
}

void Model::calibrated_intervals(const RowMatrix& rows, std::span<const double> levels,
                                 unsigned n_threads, Matrix<double> intervals) const {
    const std::vector<std::size_t> at = positions(levels);
    check_rows(rows);
    if (at.empty()) return;
    const std::span<const ModelPart> parts =
        outputs_.empty() ? std::span(&whole_, 1) : std::span<const ModelPart>(outputs_);
    for (std::size_t begin = 0; begin < rows.n_rows(); begin += rows_at_once) {
        const RowMatrix some = slice(rows, begin, std::min(rows_at_once, rows.n_rows() - begin));
        for (std::size_t o = 0; o < parts.size(); ++o) {
            parts[o].calibrated(some, at, n_threads,
                                {intervals.row(begin * parts.size() + o).data(), some.n_rows(),
                                 parts.size() * intervals.cols()});
        }
    }
}

}  // namespace hdicore
