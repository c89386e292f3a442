// model_file/model.cpp: what a file holds is known whole, and rows are checked before they are read
// SPDX-License-Identifier: BSD-3-Clause
#include "model_file/model.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "base/refusal.hpp"
#include "scoring/route.hpp"
#include "scoring/scorer.hpp"

namespace hdicore {
namespace {

TensorFile open_file(const std::string& path, bool mapped) {
    const auto bytes = std::make_shared<const FileBytes>(path, mapped);
    return TensorFile::read(bytes, "hdicore_model", !mapped);
}

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
      whole_(read_part(file, "", facts_)),
      outputs_(read_outputs(file, facts_, n_outputs())) {
    if (!is_calibrated()) return;
    for (const auto& level : parts().front().calibration->levels) {
        coverages_.push_back(level.coverage);
    }
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
    score(*index(), RoutedRows(whole_.forest, rows), {}, {.mean = {means}},
          {.n_threads = n_threads});
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
    if (is_calibrated() && (query.kind == Kind::lower || query.kind == Kind::upper)) {
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

std::vector<std::size_t> Model::positions(std::span<const double> levels) const {
    if (!is_calibrated()) {
        refuse("kind must not be calibrated, because the model has no calibration");
    }
    std::vector<std::size_t> found;
    for (const double level : levels) {
        const auto at = parts().front().calibration->find(level);
        if (!at) {
            std::string known;
            for (const double coverage : coverages_) known += " " + number_text(coverage);
            refuse("coverages must be calibrated ones," + known + ", got " + number_text(level));
        }
        found.push_back(*at);
    }
    return found;
}

void Model::calibrated_intervals(const ModelQuery& query) const {
    const std::vector<std::size_t> at = positions(query.levels);
    check_rows(query.rows);
    const std::size_t n_rows = query.rows.n_rows(), n_parts = parts().size();
    const bool has_means = !query.means.empty(), is_one = n_parts == 1 && !at.empty();
    if (has_means && !is_one) mean(query.rows, query.n_threads, query.means);
    if (at.empty()) return;
    const std::size_t at_once = parts().front().rows_at_once();
    std::vector<double> others;
    for (std::size_t begin = 0; begin < n_rows; begin += at_once) {
        const std::size_t n = std::min(at_once, n_rows - begin);
        for (std::size_t o = 0; o < n_parts; ++o) {
            others.clear();
            for (std::size_t i = begin; i < begin + n && !query.other_means.empty(); ++i) {
                others.push_back(query.other_means(i, o));
            }
            parts()[o].intervals(
                {.rows = query.rows.slice(begin, n),
                 .positions = at,
                 .by = query.by.subspan(query.by.empty() ? 0 : begin, query.by.empty() ? 0 : n),
                 .other_means = others,
                 .means = has_means && is_one ? query.means.subspan(begin, n) : std::span<double>(),
                 .n_threads = query.n_threads,
                 .results = {query.intervals.row(begin * n_parts + o).data(), n,
                             n_parts * query.intervals.cols()}});
        }
    }
}

}  // namespace hdicore
