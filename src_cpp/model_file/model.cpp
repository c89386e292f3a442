// model_file/model.cpp: what a file holds is known whole, and rows are checked before they are read
// SPDX-License-Identifier: BSD-3-Clause
#include "model_file/model.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

#include "base/refusal.hpp"
#include "scoring/route.hpp"
#include "scoring/scorer.hpp"

namespace hdicore {
namespace {

bool have_same_labels(const std::optional<CalibrationGroups>& a,
                      const std::optional<CalibrationGroups>& b) {
    // Labels that are texts are NaN.
    const auto same = [](const std::optional<double>& x, const std::optional<double>& y) {
        return x == y || (x && y && std::isnan(*x) && std::isnan(*y));
    };
    return a.has_value() == b.has_value() && (!a || std::ranges::equal(a->labels, b->labels, same));
}

std::vector<CalibratedForest> read_outputs(const TensorFile& file, const ModelFacts& whole,
                                           std::size_t n_outputs) {
    std::vector<CalibratedForest> outputs;
    if (whole.n_outputs == 0) return outputs;
    if (whole.n_outputs != n_outputs || n_outputs == 1) {
        refuse("outputs must be as many as the targets, or none");
    }
    for (std::size_t output = 0; output < n_outputs; ++output) {
        const std::string name = "output" + std::to_string(output);
        const ModelFacts facts = ModelFacts::read(file, name + ".");
        outputs.push_back(read_part(file, name + ".", facts));
        const CalibratedForest &own = outputs.back(), &first = outputs.front();
        if (!own.calibration || own.cross || facts.n_features != whole.n_features) {
            refuse(name + " must be calibrated, not by folds, and of the features of the model");
        }
        if (!have_same_coverages(*own.calibration, *first.calibration)) {
            refuse("the calibrations of all outputs must be of the same coverages");
        }
        if (!have_same_labels(own.groups, first.groups)) {
            refuse("the groups of all outputs must be the same");
        }
    }
    return outputs;
}

}  // namespace

Model::Model(const std::string& path, bool mapped)
    : Model(TensorFile::read(std::make_shared<const FileBytes>(path, mapped), !mapped)) {
    bytes_->require_unchanged();
}

Model::Model(const TensorFile& file)
    : bytes_(file.bytes),
      facts_(ModelFacts::read(file, "")),
      whole_(read_part(file, "", facts_)),
      outputs_(read_outputs(file, facts_, n_outputs())) {}

void Model::check_rows(const RowMatrix& rows) const {
    bytes_->require_unchanged();
    if (rows.n_features() != n_features()) {
        refuse("X has " + std::to_string(rows.n_features()) + " features, but the model expects " +
               std::to_string(n_features()));
    }
    if (facts_.allow_nan) return;
    std::visit(
        [](const auto& X) {
            for (std::size_t i = 0; i < X.size(); ++i) {
                if (!std::isnan(X.data()[i])) continue;
                refuse("X[" + std::to_string(i / X.cols()) + ", " + std::to_string(i % X.cols()) +
                       "] is NaN, and the model takes no missing values");
            }
        },
        rows.features);
}

void Model::leaves(const RowMatrix& rows, unsigned n_threads, Matrix<leaf_t> leaves) const {
    check_rows(rows);
    route_all(whole_.forest, rows, false, n_threads, leaves);
}

void Model::intervals(const ModelQuery& query) const {
    if (!query.kind) {
        calibrated_intervals(query);
        return;
    }
    if (!query.by.empty() || !query.other_means.empty()) {
        refuse("by and other_means must be null, because these intervals are not calibrated");
    }
    if (!levels().empty() && (query.kind == Kind::lower || query.kind == Kind::upper)) {
        refuse(
            "kind must not be hdicore_lower or hdicore_upper of a calibrated model, whose bounds "
            "come from a calibrated distribution, which is not read from C");
    }
    check_rows(query.rows);
    score(
        *index(), RoutedRows(whole_.forest, query.rows), {},
        {.mean = {query.means},
         .intervals = {.coverages = query.levels, .kind = *query.kind, .results = query.intervals}},
        {.n_threads = query.n_threads});
}

std::vector<std::size_t> Model::positions(std::span<const double> coverages) const {
    if (levels().empty()) {
        refuse("kind must not be calibrated, because the model has no calibration");
    }
    std::vector<std::size_t> found;
    for (const double coverage : coverages) {
        const auto at = parts().front().calibration->find(coverage);
        if (!at) {
            std::string known;
            for (const CalibratedLevel& level : levels()) known += " " + text(level.coverage);
            refuse("coverages must be calibrated ones," + known + ", got " + text(coverage));
        }
        found.push_back(*at);
    }
    return found;
}

void Model::calibrated_intervals(const ModelQuery& query) const {
    const std::vector<std::size_t> at = positions(query.levels);
    check_rows(query.rows);
    if (!query.means.empty()) {
        intervals({.rows = query.rows,
                   .kind = Kind::hdi,
                   .n_threads = query.n_threads,
                   .means = query.means});
    }
    const std::size_t n = query.rows.n_rows(), n_parts = parts().size();
    std::vector<double> others(query.other_means.empty() ? 0 : n);
    for (std::size_t o = 0; o < n_parts && n > 0 && !at.empty(); ++o) {
        for (std::size_t i = 0; i < others.size(); ++i) others[i] = query.other_means(i, o);
        parts()[o].intervals(
            {.rows = query.rows,
             .positions = at,
             .by = query.by,
             .other_means = others,
             .n_threads = query.n_threads,
             .results = {query.intervals.row(o).data(), n, n_parts * query.intervals.cols()}});
    }
}

}  // namespace hdicore
