// register_calibrated.cpp: the Python classes of what is calibrated
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <limits>

#include "bound_classes.hpp"
#include "register_queries.hpp"
#include "registration.hpp"
#include "stub.hpp"

namespace hdicore::bindings {
namespace {

template <class Bound, class Class>
void pickle(Class& cls) {
    cls.def("__reduce__", [](const py::object& self) {
        return py::make_tuple(py::type::of(self), self.cast<const Bound&>().made_of);
    });
}

// What a caller may change afterwards, as it was read.
py::object copied(const py::object& given) {
    return py::module_::import("copy").attr("copy")(given);
}

// Base intervals of rows, by one base or m of them.
py::array_t<double> base_ends(const py::object& object, std::size_t& n_bases) {
    auto ends = reals(object, "ends");
    const bool has_bases = ends.ndim() == 3;
    n_bases = has_bases ? static_cast<std::size_t>(ends.shape(2)) : 1;
    if ((ends.ndim() != 2 && !has_bases) || ends.shape(1) != 2) {
        throw py::value_error("ends must have shape (n, 2) or (n, 2, m), got " +
                              shape_text(shape_of(ends)));
    }
    return ends;
}

BoundPostProcess make_postprocess(double low, double high, bool clip, const py::object& lattice,
                                  const py::object& targets) {
    std::optional<Lattice> points;
    if (!lattice.is_none()) {
        const auto given = reals(lattice, "lattice");
        check_shape(given, "lattice", {3});
        points = {given.data()[0], given.data()[1], given.data()[2]};
    }
    py::array_t<double> values(0);
    if (!targets.is_none()) values = reals(targets, "targets");
    check_ndim(values, "targets", 1);
    return {PostProcess(low, high, clip, points, span_of(values)),
            py::make_tuple(low, high, clip, copied(lattice), copied(targets))};
}

py::array_t<double> scores(const BoundPostProcess& self, const py::object& given,
                           const py::object& y) {
    std::size_t m = 0;
    const auto ends = base_ends(given, m);
    const auto targets = reals(y, "y");
    check_shape(targets, "y", {ends.shape(0)});
    Shape shape{ends.shape(0)};
    if (ends.ndim() == 3) shape.push_back(ends.shape(2));
    py::array_t<double> result(shape);
    const double* base = ends.data();
    double* score = result.mutable_data();
    for (const double target : span_of(targets)) {
        const Interval reach = self.engine.reach(target);
        for (std::size_t j = 0; j < m; ++j) {
            *score++ = conformity_score({base[j], base[m + j]}, reach);
        }
        base += 2 * m;
    }
    return result;
}

py::array_t<double> widen(const BoundPostProcess& self, const py::object& given,
                          const py::object& q_hat, bool nested) {
    std::size_t m = 0;
    const auto ends = base_ends(given, m);
    check_ndim(ends, "ends", 3);
    const auto q = reals(q_hat, "q_hat");
    const Shape common{ends.shape(2)}, of_rows{ends.shape(0), ends.shape(2)};
    check_shape(q, "q_hat", q.ndim() == 2 ? of_rows : common);
    py::array_t<double> result({ends.shape(0), py::ssize_t{2}, ends.shape(2)});
    std::ranges::copy(span_of(ends), result.mutable_data());
    const std::span all = mutable_span_of(result);
    for (std::size_t i = 0; i < static_cast<std::size_t>(ends.shape(0)); ++i) {
        const std::span own = all.subspan(i * 2 * m, 2 * m);
        const std::span quantiles = span_of(q).subspan(q.ndim() == 2 ? i * m : 0, m);
        const std::size_t step = nested ? m : 1;  // each by itself, or all together
        for (std::size_t j = 0; j < m; j += step) {
            calibrate(own.subspan(j, step), own.subspan(m + j, step), quantiles.subspan(j, step),
                      self.engine);
        }
    }
    return result;
}

// Arrays (n_fold, k), one for each fold, put together.
std::vector<double> of_folds(const py::object& given, const char* name, std::size_t k,
                             std::vector<std::size_t>& sizes) {
    std::vector<double> all;
    for (const py::handle each : given) {
        const auto own = reals(each, name);
        if (own.ndim() != 2 || static_cast<std::size_t>(own.shape(1)) != k) {
            throw py::value_error(std::string(name) + " of each fold must be of " +
                                  std::to_string(k) + " coverages");
        }
        sizes.push_back(static_cast<std::size_t>(own.shape(0)));
        all.insert(all.end(), own.data(), own.data() + own.size());
    }
    return all;
}

BoundCross make_cross(const py::object& scores, const py::object& needed,
                      const py::object& postprocess, const py::object& weights) {
    const auto& known = held<BoundPostProcess>(postprocess, "postprocess");
    const auto least = reals(needed, "needed");
    check_ndim(least, "needed", 1);
    const auto k = static_cast<std::size_t>(least.size());
    std::vector<std::size_t> sizes, of_weights;
    const std::vector<double> own = of_folds(scores, "scores", k, sizes);
    std::vector<double> heavy;
    if (!weights.is_none()) {
        heavy = of_folds(weights, "weights", k, of_weights);
        if (of_weights != sizes) {
            throw py::value_error("weights must be as many as scores in each fold");
        }
    }
    const auto rows_of = [&](const std::vector<double>& values) {
        return Matrix<const double>(values.data(), k == 0 ? 0 : values.size() / k, k);
    };
    return {CrossCalibration(sizes, rows_of(own), rows_of(heavy), span_of(least), known.engine),
            py::make_tuple(copied(scores), copied(needed), postprocess, copied(weights))};
}

// Of one coverage, which has no axis in a result, or of several.
struct Positions {
    std::vector<std::size_t> values;
    Shape axis;
};

Positions positions_of(const py::object& object, std::size_t n_levels) {
    const auto asked = integers<std::int64_t>(object, "positions");
    if (asked.ndim() > 1) {
        throw py::value_error("positions must have shape () or (p,), got " +
                              shape_text(shape_of(asked)));
    }
    std::vector<std::size_t> at;
    for (const std::int64_t position : span_of(asked)) {
        if (position < 0 || position >= static_cast<std::int64_t>(n_levels)) {
            throw py::value_error("positions must be from 0 to " + std::to_string(n_levels - 1) +
                                  ", got " + std::to_string(position));
        }
        at.push_back(static_cast<std::size_t>(position));
    }
    if (at.empty()) throw py::value_error("positions must be one or more");
    return {std::move(at), {asked.shape(), asked.shape() + asked.ndim()}};
}

py::array_t<double> widen_by_folds(const BoundCross& self, const py::object& given,
                                   const py::object& positions, const py::object& n_threads) {
    const auto [at, axis] = positions_of(positions, self.engine.n_levels());
    const auto ends = reals(given, "ends");
    const auto n_folds = static_cast<py::ssize_t>(self.engine.n_folds());
    const auto n_lowest = static_cast<py::ssize_t>(*std::ranges::max_element(at)) + 1;
    if (ends.ndim() != 4 || ends.shape(0) != n_folds || ends.shape(2) != 2 ||
        (ends.shape(3) != 1 && ends.shape(3) < n_lowest)) {
        throw py::value_error("ends must have shape (" + std::to_string(n_folds) +
                              ", n, 2, m), m 1 or at least " + std::to_string(n_lowest) + ", got " +
                              shape_text(shape_of(ends)));
    }
    Shape shape{ends.shape(1), 2};
    shape.insert(shape.end(), axis.begin(), axis.end());
    py::array_t<double> result(shape);
    const Matrix<const double> of_folds(ends.data(),
                                        static_cast<std::size_t>(n_folds * ends.shape(1)),
                                        static_cast<std::size_t>(2 * ends.shape(3)));
    const Matrix<double> results = flat_matrix(result, 2 * at.size());
    Interruption interruption(pending_signals());
    const Execution execution{.n_threads = thread_count(n_threads),
                              .block_rows = block_rows,
                              .interruption = interruption};
    const py::gil_scoped_release no_gil;
    self.engine.intervals(of_folds, at, execution, results);
    return result;
}

BoundGroups make_groups(const py::object& labels, const py::object& q_hat) {
    std::vector<std::optional<double>> known;
    for (const py::handle label : labels) {
        known.emplace_back();
        if (label.is_none()) continue;
        known.back() = py::isinstance<py::str>(label)
                           ? std::numeric_limits<double>::quiet_NaN()
                           : py::float_(py::reinterpret_borrow<py::object>(label)).cast<double>();
    }
    const auto own = reals(q_hat, "q_hat");
    check_ndim(own, "q_hat", 2);
    check_shape(own, "q_hat", {static_cast<py::ssize_t>(known.size()), own.shape(1)});
    return {
        CalibrationGroups(std::nullopt, std::move(known), {own.data(), own.data() + own.size()}),
        py::make_tuple(copied(labels), copied(q_hat))};
}

py::array_t<std::int64_t> codes_of(const BoundGroups& self, const py::object& values) {
    const auto labels = reals(values, "values");
    check_ndim(labels, "values", 1);
    py::array_t<std::int64_t> result(labels.size());
    std::ranges::transform(span_of(labels), result.mutable_data(), [&](double label) {
        const std::size_t group = self.engine.find(label);
        return group < self.engine.labels.size() ? static_cast<std::int64_t>(group) : -1;
    });
    return result;
}

py::array_t<double> quantiles_of_groups(const BoundGroups& self, const py::object& given,
                                        const py::object& common) {
    const auto codes = integers<std::int64_t>(given, "codes");
    const auto of_all = reals(common, "common");
    check_ndim(codes, "codes", 1);
    const auto g = static_cast<std::int64_t>(self.engine.labels.size());
    check_ndim(of_all, "common", 1);
    if (of_all.size() * g != static_cast<std::int64_t>(self.engine.q_hat.size())) {
        throw py::value_error("common must have a quantile of each coverage");
    }
    py::array_t<double> result({codes.size(), of_all.size()});
    double* to = result.mutable_data();
    for (const std::int64_t code : span_of(codes)) {
        if (code < -1 || code >= g) {
            throw py::value_error("codes must be from -1 to " + std::to_string(g - 1) + ", got " +
                                  std::to_string(code));
        }
        const auto group = static_cast<std::size_t>(code < 0 ? g : code);
        for (std::size_t j = 0; j < span_of(of_all).size(); ++j) {
            *to++ = self.engine.quantile(group, j, of_all.data()[j]);
        }
    }
    return result;
}

BoundDistribution make_distribution(const py::object& levels, const py::object& scores,
                                    const py::object& postprocess) {
    const auto& known = held<BoundPostProcess>(postprocess, "postprocess");
    const auto of_levels = reals(levels, "levels"), of_scores = reals(scores, "scores");
    check_ndim(of_levels, "levels", 1);
    check_ndim(of_scores, "scores", 1);
    return {PredictiveDistribution(span_of(of_levels), span_of(of_scores), known.engine),
            py::make_tuple(copied(levels), copied(scores), postprocess)};
}

std::vector<PredictiveDistribution::Place> places_of(const BoundDistribution& self,
                                                     const py::object& levels) {
    std::vector<PredictiveDistribution::Place> places;
    for (const double level : levels_of(levels, "levels", true).values) {
        places.push_back(self.engine.place(level));
    }
    return places;
}

py::array_t<double> base_levels(const BoundDistribution& self, const py::object& levels) {
    const auto needed = PredictiveDistribution::needed(places_of(self, levels));
    std::vector<double> found;
    for (const std::size_t k : needed) found.push_back(base_level(k));
    return array_from(std::move(found));
}

// Base quantiles of rows, (n, n_columns).
py::array_t<double> base_of_rows(const py::object& object, std::size_t n_columns) {
    auto base = reals(object, "base");
    check_ndim(base, "base", 2);
    check_shape(base, "base", {base.shape(0), static_cast<py::ssize_t>(n_columns)});
    return base;
}

py::array_t<double> quantiles_of(const BoundDistribution& self, const py::object& given,
                                 const py::object& levels, int outwards) {
    if (outwards != 1 && outwards != -1) {
        throw py::value_error("outwards must be 1 or -1, got " + std::to_string(outwards));
    }
    const auto places = places_of(self, levels);
    const auto needed = PredictiveDistribution::needed(places);
    const auto base = base_of_rows(given, needed.size());
    const auto column = [&](std::size_t k) {
        return static_cast<std::size_t>(std::ranges::lower_bound(needed, k) - needed.begin());
    };
    py::array_t<double> result({base.shape(0), static_cast<py::ssize_t>(places.size())});
    const Matrix<double> quantiles = flat_matrix(result, places.size());
    for (std::size_t j = 0; j < places.size(); ++j) {
        const std::size_t below = column(places[j].below), above = column(places[j].above);
        for (std::size_t i = 0; i < quantiles.rows(); ++i) {
            const auto row = matrix_of(base).row(i);
            quantiles(i, j) = self.engine.quantile(places[j], row[below], row[above], outwards);
        }
    }
    return result;
}

// Calls answer(base quantiles of the row, value) for each value of each row.
template <class Answer>
py::array_t<double> of_values(const py::object& given, const py::object& values, const char* name,
                              const Answer& answer) {
    const auto base = base_of_rows(given, n_base_levels);
    const auto own = reals(values, name);
    if (own.ndim() < 1 || own.ndim() > 2 || own.shape(0) != base.shape(0)) {
        throw py::value_error(std::string(name) + " must have shape (n,) or (n, k), got " +
                              shape_text(shape_of(own)));
    }
    const auto owned = shape_of(own);
    py::array_t<double> result(Shape(owned.begin(), owned.end()));
    const std::size_t k = own.ndim() == 2 ? static_cast<std::size_t>(own.shape(1)) : 1;
    for (std::size_t at = 0; at < static_cast<std::size_t>(own.size()); ++at) {
        const BaseQuantiles row(base.data() + at / k * n_base_levels, n_base_levels);
        result.mutable_data()[at] = answer(row, own.data()[at]);
    }
    return result;
}

py::array_t<double> cdf_of(const BoundDistribution& self, const py::object& base,
                           const py::object& y, bool inclusive) {
    return of_values(base, y, "y", [&](BaseQuantiles row, double point) {
        if (std::isnan(point)) throw py::value_error("y must not hold NaN");
        return self.engine.cdf(row, point, inclusive);
    });
}

py::array_t<double> draws_of(const BoundDistribution& self, const py::object& base,
                             const py::object& uniforms) {
    return of_values(base, uniforms, "uniforms", [&](BaseQuantiles row, double uniform) {
        if (!(uniform >= 0 && uniform <= 1)) throw py::value_error("uniforms must lie in [0, 1]");
        const auto place = self.engine.drawn(uniform);
        return self.engine.quantile(place, row[place.below], row[place.above], 1);
    });
}

py::array_t<double> scores_of_targets(const py::object& base, const py::object& y,
                                      const py::object& postprocess, bool strictly) {
    const auto& known = held<BoundPostProcess>(postprocess, "postprocess");
    return of_values(base, y, "y", [&](BaseQuantiles row, double target) {
        return score_of_target(row, target, known.engine, strictly);
    });
}

BoundCalibrated make_calibrated(const py::object& scorer, const py::object& kinds,
                                const py::object& levels, const py::object& q_hat,
                                const py::object& postprocess, const py::object& centres) {
    const auto& bound = held<BoundScorer>(scorer, "scorer");
    const LeafIndex& index = bound.bound_index.current();
    if (index.n_outputs() != 1) throw py::value_error("scorer must be of one output");
    const auto& known = held<BoundPostProcess>(postprocess, "postprocess");
    const Levels shares = levels_of(levels, "levels", false);
    const std::vector<Kind> of_levels = kinds_of(kinds, shares.values.size());
    const auto q = reals(q_hat, "q_hat");
    check_shape(q, "q_hat", {static_cast<py::ssize_t>(shares.values.size())});
    Calibration calibration{{}, known.engine};
    for (std::size_t j = 0; j < shares.values.size(); ++j) {
        if (!(q.data()[j] > -std::numeric_limits<double>::infinity())) {
            throw py::value_error(
                py::str("q_hat must be above -inf, got {:g}").format(q.data()[j]));
        }
        calibration.levels.push_back({0, of_levels[j], shares.values[j], q.data()[j]});
    }
    py::array_t<double> of_leaves(0);
    if (!centres.is_none()) {
        of_leaves = reals(centres, "centres");
        check_shape(of_leaves, "centres", {static_cast<py::ssize_t>(index.n_leaves())});
    }
    return {
        &bound, std::move(calibration), of_leaves,
        py::make_tuple(scorer, copied(kinds), copied(levels), copied(q_hat), postprocess, centres)};
}

py::array_t<double> calibrated(const BoundCalibrated& self, const py::object& X,
                               const py::object& positions, const py::object& q_hat,
                               const py::object& shifts, const py::object& mean,
                               const py::object& n_threads) {
    Query query(*self.scorer, X, py::none(), n_threads);
    const auto n = static_cast<py::ssize_t>(query.n_rows());
    const auto n_levels = static_cast<py::ssize_t>(self.calibration.levels.size());
    const auto [at, axis] = positions_of(positions, self.calibration.levels.size());
    CalibratedRequest request{.positions = at, .centres = span_of(self.centres)};
    py::array_t<double> of_rows(0), added(0), means(0);
    if (!q_hat.is_none()) {
        of_rows = reals(q_hat, "q_hat");
        check_shape(of_rows, "q_hat", {n, n_levels});
        request.q_hat = matrix_of(of_rows);
    }
    if (!shifts.is_none()) {
        added = reals(shifts, "shifts");
        check_shape(added, "shifts", {n});
        request.shifts = span_of(added);
    }
    if (!mean.is_none()) {
        means = output_array<double>(mean, {n}, "mean");
        query.check_apart(means, "mean");
        check_disjoint(means, "mean", of_rows, "q_hat");
        check_disjoint(means, "mean", added, "shifts");
        check_disjoint(means, "mean", self.centres, "centres");
        request.mean = mutable_span_of(means);
    }
    Shape shape{n, 2};
    shape.insert(shape.end(), axis.begin(), axis.end());
    py::array_t<double> result(shape);
    request.results = flat_matrix(result, 2 * at.size());
    query.calibrate(self.calibration, request);
    return result;
}

std::vector<const BoundCalibrated*> outputs_of(const py::object& scorers) {
    std::vector<const BoundCalibrated*> outputs;
    for (const py::handle each : scorers) {
        outputs.push_back(
            &held<BoundCalibrated>(py::reinterpret_borrow<py::object>(each), "scorers"));
        if (outputs.back()->calibration.levels.size() != outputs[0]->calibration.levels.size()) {
            throw py::value_error("scorers must be of the same coverages");
        }
    }
    if (outputs.empty()) throw py::value_error("scorers must be one or more");
    return outputs;
}

// What is given of the rows of each of d outputs; empty of those, or all, that are None.
std::vector<py::array_t<double>> of_outputs(const py::object& given, const char* name,
                                            std::size_t d, const std::vector<py::ssize_t>& shape) {
    std::vector<py::array_t<double>> arrays(d, py::array_t<double>(0));
    if (given.is_none()) return arrays;
    if (py::len(given) != d) {
        throw py::value_error(std::string(name) + " must be one for each of " + std::to_string(d) +
                              " scorers, got " + std::to_string(py::len(given)));
    }
    for (std::size_t o = 0; o < d; ++o) {
        const py::object own = given[py::int_(o)];
        if (own.is_none()) continue;
        arrays[o] = reals(own, name);
        check_shape(arrays[o], name, shape);
    }
    return arrays;
}

// Scorers of one forest share the leaves of rows, some rows at a time, so that memory stays flat.
py::array_t<double> intervals_of_outputs(const py::object& scorers, const py::object& X,
                                         const py::object& positions, const py::object& q_hat,
                                         const py::object& shifts, const py::object& n_threads) {
    constexpr std::size_t rows_at_once = std::size_t{1} << 16;
    const std::vector<const BoundCalibrated*> outputs = outputs_of(scorers);
    const std::size_t n_levels = outputs[0]->calibration.levels.size(), d = outputs.size();
    const auto [at, axis] = positions_of(positions, n_levels);
    py::array rows;
    const std::size_t n = row_matrix(X, rows).n_rows();
    const auto size = static_cast<py::ssize_t>(n);
    const auto of_rows = of_outputs(q_hat, "q_hat", d, {size, static_cast<py::ssize_t>(n_levels)});
    const auto added = of_outputs(shifts, "shifts", d, {size});
    Shape shape{size, static_cast<py::ssize_t>(d), 2};
    shape.insert(shape.end(), axis.begin(), axis.end());
    py::array_t<double> result(shape);
    const Engine<Forest>& trees = outputs[0]->scorer->forest_engine;
    for (std::size_t begin = 0; begin == 0 || begin < n; begin += rows_at_once) {
        const std::size_t end = std::min(n, begin + rows_at_once);
        const py::object some =
            rows[py::slice(static_cast<py::ssize_t>(begin), static_cast<py::ssize_t>(end), 1)];
        const py::object leaves =
            outputs[0]->scorer->forest.attr("leaves")(some, py::arg("n_threads") = n_threads);
        for (std::size_t o = 0; o < d; ++o) {
            const BoundScorer& scorer = *outputs[o]->scorer;
            Query query = scorer.forest_engine == trees
                              ? Query(scorer.bound_index, leaves, py::none(), n_threads)
                              : Query(scorer, some, py::none(), n_threads);
            CalibratedRequest request{.positions = at, .centres = span_of(outputs[o]->centres)};
            if (of_rows[o].size() > 0) {
                request.q_hat = {of_rows[o].data() + begin * n_levels, end - begin, n_levels};
            }
            if (added[o].size() > 0) request.shifts = span_of(added[o]).subspan(begin, end - begin);
            const std::size_t width = 2 * at.size();  // of one output
            request.results = {result.mutable_data() + (begin * d + o) * width, end - begin,
                               d * width};
            query.calibrate(outputs[o]->calibration, request);
        }
    }
    return result;
}

}  // namespace

void register_calibrated(py::module_& module) {
    py::class_<BoundPostProcess> postprocess(module, stub::PostProcess::name,
                                             stub::PostProcess::doc);
    stub::PostProcess::init(postprocess, constructor(&make_postprocess));
    stub::PostProcess::scores(postprocess, &scores);
    stub::PostProcess::widen(postprocess, &widen);
    pickle<BoundPostProcess>(postprocess);

    py::class_<BoundCross> cross(module, stub::CrossCalibration::name, stub::CrossCalibration::doc);
    stub::CrossCalibration::init(cross, constructor(&make_cross));
    stub::CrossCalibration::widen(cross, &widen_by_folds);
    pickle<BoundCross>(cross);

    using Groups = stub::CalibrationGroups;
    py::class_<BoundGroups> groups(module, Groups::name, Groups::doc);
    Groups::init(groups, constructor(&make_groups));
    Groups::codes(groups, &codes_of);
    Groups::quantiles(groups, &quantiles_of_groups);
    pickle<BoundGroups>(groups);

    using Distribution = stub::PredictiveDistribution;
    py::class_<BoundDistribution> distribution(module, Distribution::name, Distribution::doc);
    Distribution::init(distribution, constructor(&make_distribution));
    Distribution::base_levels(distribution, &base_levels);
    Distribution::quantiles(distribution, &quantiles_of);
    Distribution::cdf(distribution, &cdf_of);
    Distribution::draws(distribution, &draws_of);
    Distribution::scores(distribution, &scores_of_targets);
    pickle<BoundDistribution>(distribution);

    using Scorer = stub::CalibratedScorer;
    py::class_<BoundCalibrated> scorer(module, Scorer::name, Scorer::doc);
    Scorer::init(scorer, constructor(&make_calibrated));
    Scorer::intervals(scorer, &calibrated);
    pickle<BoundCalibrated>(scorer);
    stub::intervals_of_outputs(module, &intervals_of_outputs);
}

}  // namespace hdicore::bindings
