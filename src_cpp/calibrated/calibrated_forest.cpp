// calibrated/calibrated_forest.cpp: groups and shifts of rows, and the ends by each fold
// SPDX-License-Identifier: BSD-3-Clause
#include "calibrated/calibrated_forest.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/refusal.hpp"
#include "scoring/route.hpp"

namespace hdicore {
namespace {

// By all folds, so that memory stays flat.
constexpr std::size_t merges_at_once = std::size_t{1} << 16;

}  // namespace

CalibratedQuery CalibratedQuery::slice(std::size_t begin, std::size_t n) const {
    const auto part = [&](auto values) {
        return values.empty() ? values : values.subspan(begin, n);
    };
    CalibratedQuery some = *this;
    some.rows = rows.slice(begin, n);
    some.by = part(by);
    some.other_means = part(other_means);
    some.results = {results.row(begin).data(), n, results.cols()};
    return some;
}

void CalibratedForest::intervals(const CalibratedQuery& query) const {
    check(query);
    const std::size_t n_rows = query.rows.n_rows();
    const std::size_t at_once =
        std::max<std::size_t>(1, merges_at_once / (cross ? cross->n_folds() : 1));
    for (std::size_t begin = 0; begin < n_rows; begin += at_once) {
        const CalibratedQuery some = query.slice(begin, std::min(at_once, n_rows - begin));
        cross ? intervals_by_folds(some) : block_intervals(some);
    }
}

void CalibratedForest::check(const CalibratedQuery& query) const {
    const std::size_t n_rows = query.rows.n_rows();
    const auto is_text = [](const auto& label) { return label && std::isnan(*label); };
    if (!groups && !query.by.empty()) {
        refuse("by must be null, because the calibration was not made by groups");
    }
    if (groups && !groups->feature && std::ranges::any_of(groups->labels, is_text)) {
        refuse(
            "kind must not be calibrated, because groups of this calibration are texts, which C "
            "does not look up: calibrate by groups that are numbers");
    }
    if (groups && !groups->feature && query.by.size() != n_rows) {
        refuse(
            "by must be the groups of the rows, which the calibration was made by, and which are "
            "no feature");
    }
    if (share == 0 && !query.other_means.empty()) {
        refuse("other_means must be null, because the calibration has no other regressor's mean");
    }
    if (share != 0 && query.other_means.size() != n_rows) {
        refuse(
            "other_means must be the means by the regressor that was given as mean, which the "
            "calibration was made with, and which C does not compute");
    }
    const auto is_finite = [](double mean) { return std::isfinite(mean); };
    if (!std::ranges::all_of(query.other_means, is_finite)) refuse("other_means must be finite");
    if (std::ranges::any_of(folds, [](const auto& fold) { return fold.share != 0; })) {
        refuse(
            "kind must not be calibrated, because each fold of CV+ has the mean of another "
            "regressor, which C does not compute: calibrate by oob, or without mean");
    }
}

void CalibratedForest::block_intervals(const CalibratedQuery& query) const {
    const std::size_t k = calibration->levels.size();
    const std::vector<double> q_hat = quantiles(query);
    std::vector<double> shifts(query.other_means.begin(), query.other_means.end());
    for (double& shift : shifts) shift *= share;
    calibrated_intervals(residuals ? *residuals : *index, RoutedRows(forest, query.rows),
                         *calibration,
                         {.positions = query.positions,
                          .centres = centres.view(),
                          .shifts = shifts,
                          .q_hat = {q_hat.data(), q_hat.size() / k, k},
                          .results = query.results},
                         {.n_threads = query.n_threads});
}

std::vector<double> CalibratedForest::quantiles(const CalibratedQuery& query) const {
    std::vector<double> q_hat;
    for (std::size_t i = 0; groups && i < query.rows.n_rows(); ++i) {
        double label = query.by.empty() ? query.rows(i, *groups->feature) : query.by[i];
        if (query.by.empty() && rounds_labels) label = static_cast<float>(label);
        const std::size_t group = groups->find(label);
        for (std::size_t j = 0; j < calibration->levels.size(); ++j) {
            q_hat.push_back(groups->quantile(group, j, calibration->levels[j].q_hat));
        }
    }
    return q_hat;
}

void CalibratedForest::intervals_by_folds(const CalibratedQuery& query) const {
    const std::size_t n = query.rows.n_rows(), n_folds = cross->n_folds();
    // Intervals contain those of lower coverages; higher ones are not needed.
    const std::size_t k = folds.empty() ? 1 : std::ranges::max(query.positions) + 1;
    std::vector<double> found(n_folds * n * 2 * k);
    const Matrix<double> ends(found.data(), n_folds * n, 2 * k);
    if (folds.empty()) read_left_out(query, ends);
    std::vector<std::size_t> lowest(k);
    std::iota(lowest.begin(), lowest.end(), std::size_t{0});
    for (std::size_t f = 0; f < folds.size(); ++f) {
        folds[f].intervals({.rows = query.rows,
                            .positions = lowest,
                            .n_threads = query.n_threads,
                            .results = {ends.row(f * n).data(), n, 2 * k}});
    }
    cross->intervals(ends, query.positions, {.n_threads = query.n_threads}, query.results);
}

// For each row left out, those of all rows by the trees that did not draw it.
void CalibratedForest::read_left_out(const CalibratedQuery& query, Matrix<double> ends) const {
    const std::size_t n = query.rows.n_rows(), n_trees = forest.n_trees();
    std::vector<leaf_t> leaves(n * n_trees), masked;
    route_all(forest, query.rows, false, query.n_threads, {leaves.data(), n, n_trees});
    masked.reserve(ends.rows() * n_trees);
    for (std::size_t f = 0; f < cross->n_folds(); ++f) {
        const std::uint8_t* was_drawn = drawn.data() + f * n_trees;
        for (std::size_t i = 0; i < leaves.size(); ++i) {
            masked.push_back(was_drawn[i % n_trees] != 0 ? no_leaf : leaves[i]);
        }
    }
    const CalibratedLevel& base = calibration->levels.front();
    const GivenLeaves given(*of_draws, {masked.data(), ends.rows(), n_trees});
    score(*of_draws, given, {},
          {.intervals = {.coverages = {&base.level, 1}, .kind = base.kind, .results = ends}},
          {.n_threads = query.n_threads});
}

}  // namespace hdicore
