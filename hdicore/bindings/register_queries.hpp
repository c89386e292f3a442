// register_queries.hpp: the methods that LeafIndex (given leaves) and Scorer (given rows) share
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "query.hpp"

namespace hdicore::bindings {

inline Shape axis_of(const Levels& levels) {
    return levels.is_scalar ? Shape{} : Shape{static_cast<py::ssize_t>(levels.values.size())};
}

inline Kind kind_named(const py::object& name) {
    std::vector<std::pair<const char*, Kind>> names;
    for (const KindOfInterval& each : kinds()) names.emplace_back(each.name, each.kind);
    return one_of(name, "kind", names);
}

inline Interpolation interpolation_named(const py::object& name) {
    static const std::vector<std::pair<const char*, Interpolation>> interpolations = {
        {"inverted_cdf", Interpolation::inverted_cdf},
        {"averaged_inverted_cdf", Interpolation::averaged_inverted_cdf},
        {"linear", Interpolation::linear},
        {"lower", Interpolation::lower},
        {"higher", Interpolation::higher},
        {"midpoint", Interpolation::midpoint},
        {"nearest", Interpolation::nearest},
        {"closest_observation", Interpolation::closest_observation},
        {"interpolated_inverted_cdf", Interpolation::interpolated_inverted_cdf},
        {"hazen", Interpolation::hazen},
        {"weibull", Interpolation::weibull},
        {"median_unbiased", Interpolation::median_unbiased},
        {"normal_unbiased", Interpolation::normal_unbiased},
    };
    return one_of(name, "interpolation", interpolations);
}

// Moves a vector into a numpy array that owns it.
template <class T>
py::array_t<T> array_from(std::vector<T> values) {
    auto* moved = new std::vector<T>(std::move(values));
    const py::capsule owner(moved, [](void* p) { delete static_cast<std::vector<T>*>(p); });
    return py::array_t<T>(static_cast<py::ssize_t>(moved->size()), moved->data(), owner);
}

// The arrays of a CSR matrix: indptr, indices, data.
template <class T>
py::tuple csr(CsrMatrix<T> matrix) {
    return py::make_tuple(array_from(std::move(matrix.indptr)),
                          array_from(std::move(matrix.indices)),
                          array_from(std::move(matrix.data)));
}

// The methods. `rows` are what Self takes: leaves or X.

template <class Self>
py::object mean(const Self& self, const py::object& rows, const py::object& leave_out,
                const py::object& n_threads, const py::object& out) {
    Query query(self, rows, leave_out, n_threads);
    auto result = query.output(out, {});
    query.score({.mean = {mutable_span_of(result)}});
    return result;
}

// One kind for all levels, or a list of one for each.
inline std::vector<Kind> kinds_of(const py::object& kind, std::size_t n_levels) {
    if (py::isinstance<py::str>(kind) || !py::isinstance<py::sequence>(kind)) {
        return std::vector<Kind>(n_levels, kind_named(kind));
    }
    std::vector<Kind> kinds;
    for (const py::handle name : kind) {
        kinds.push_back(kind_named(py::reinterpret_borrow<py::object>(name)));
    }
    if (kinds.size() != n_levels) {
        throw py::value_error("kind must be one name, or one for each of " +
                              std::to_string(n_levels) + " coverages, got " +
                              std::to_string(kinds.size()));
    }
    return kinds;
}

template <class Self>
py::object intervals(const Self& self, const py::object& rows, const py::object& coverage,
                     const py::object& kind, const py::object& mean, const py::object& leave_out,
                     const py::object& n_threads, const py::object& out,
                     const py::object& centres) {
    Query query(self, rows, leave_out, n_threads);
    const Levels levels = levels_of(coverage, "coverage", false);
    const std::vector<Kind> kinds = kinds_of(kind, levels.values.size());
    Shape ends{2};
    if (!levels.is_scalar) ends.push_back(axis_of(levels)[0]);
    auto result = query.output(out, ends);
    Request request{.intervals = {.coverages = levels.values,
                                  .results = flat_matrix(result, 2 * levels.values.size()),
                                  .kinds = kinds}};
    py::array_t<double> of_leaves(0);
    if (!centres.is_none()) {
        of_leaves = query.of_leaves(centres, "centres");
        check_disjoint(result, "out", of_leaves, "centres");
        request.intervals.centres = span_of(of_leaves);
    }
    if (!mean.is_none()) {
        auto means = query.output(mean, {}, "mean");
        check_disjoint(means, "mean", result, "out");
        check_disjoint(means, "mean", of_leaves, "centres");
        request.mean.results = mutable_span_of(means);
    }
    query.score(request);
    return result;
}

template <class Self>
py::tuple priced_intervals(const Self& self, const py::object& rows, const py::object& given,
                           const py::object& min_coverage, const py::object& mass,
                           const py::object& leave_out, const py::object& n_threads,
                           const py::object& out) {
    Query query(self, rows, leave_out, n_threads);
    const Levels prices = prices_of(given, "prices");
    const Levels coverage = levels_of(min_coverage, "min_coverage", true);
    if (!coverage.is_scalar)
        throw py::value_error("min_coverage must be one number for all prices");
    const std::size_t k = prices.values.size();
    Shape ends{2};
    if (!prices.is_scalar) ends.push_back(axis_of(prices)[0]);
    auto result = query.output(out, ends);
    auto units = query.template output<mass_t>(py::none(), axis_of(prices));
    PricedRequest priced{prices.values, coverage.values[0], flat_matrix(result, 2 * k),
                         flat_matrix(units, k)};
    if (!mass.is_none()) {
        auto shares = query.output(mass, axis_of(prices), "mass");
        check_disjoint(shares, "mass", result, "out");
        priced.shares = flat_matrix(shares, k);
    }
    query.score({.priced = priced});
    return py::make_tuple(result, units);
}

// What (low, high, n_bins, bandwidth) says.
inline RegionGrid grid_of(const py::object& given) {
    if (!py::isinstance<py::sequence>(given) || py::isinstance<py::str>(given) ||
        py::len(given) != 4) {
        throw py::value_error("grid must be (low, high, n_bins, bandwidth), got " +
                              std::string(py::repr(given)));
    }
    const auto entry = [&](std::size_t k) { return py::object(given[py::int_(k)]); };
    const auto n_bins = whole_number(entry(2), "n_bins of grid", 1, max_bins);
    return {number_of(entry(0), "low end of grid"), number_of(entry(1), "high end of grid"),
            static_cast<std::size_t>(n_bins), number_of(entry(3), "bandwidth of grid")};
}

template <class Self>
py::tuple regions(const Self& self, const py::object& rows, const py::object& coverage,
                  const py::object& max_pieces, const py::object& gap, const py::object& grid,
                  const py::object& leave_out, const py::object& n_threads) {
    Query query(self, rows, leave_out, n_threads);
    const Levels level = levels_of(coverage, "coverage", false);
    if (!level.is_scalar) throw py::value_error("coverage must be one number");
    const auto k = static_cast<std::size_t>(
        whole_number(max_pieces, "max_pieces", 1, static_cast<std::int64_t>(max_region_pieces)));
    const double price = number_of(gap, "gap");
    if (price < 0) throw py::value_error(py::str("gap must be at least 0, got {:g}").format(price));
    std::optional<RegionGrid> bins;
    if (!grid.is_none()) bins.emplace(grid_of(grid));

    auto bounds = query.output(py::none(), {});
    const auto n = static_cast<std::size_t>(bounds.size());
    std::vector<double> pieces(2 * k * n);
    std::vector<std::int64_t> n_pieces(n);
    query.score({.regions = {level.values[0],
                             {k, price, bins ? &*bins : nullptr},
                             {pieces.data(), n, 2 * k},
                             n_pieces,
                             mutable_span_of(bounds)}});

    py::array_t<std::int64_t> offsets(static_cast<py::ssize_t>(n + 1));
    const std::span starts = mutable_span_of(offsets);
    starts[0] = 0;
    std::partial_sum(n_pieces.begin(), n_pieces.end(), starts.begin() + 1);
    py::array_t<double> ends({static_cast<py::ssize_t>(starts[n]), py::ssize_t{2}});
    double* to = ends.mutable_data();
    for (std::size_t at = 0; at < n; ++at) {
        to = std::copy_n(pieces.data() + 2 * k * at, 2 * n_pieces[at], to);
    }
    return py::make_tuple(offsets, ends, bounds);
}

template <class Self>
py::object quantiles(const Self& self, const py::object& rows, const py::object& levels_given,
                     const py::object& interpolation, const py::object& leave_out,
                     const py::object& n_threads, const py::object& out) {
    Query query(self, rows, leave_out, n_threads);
    const Levels levels = levels_of(levels_given, "quantiles", true);
    auto result = query.output(out, axis_of(levels));
    query.score({.quantiles = {levels.values, interpolation_named(interpolation),
                               flat_matrix(result, levels.values.size())}});
    return result;
}

template <class Self>
py::object cdf(const Self& self, const py::object& rows, const py::object& y, bool inclusive,
               const py::object& leave_out, const py::object& n_threads, const py::object& out) {
    Query query(self, rows, leave_out, n_threads);
    std::size_t n_points = 0;
    const auto points = query.points(y, "y", n_points);
    for (py::ssize_t i = 0; i < points.size(); ++i) {
        if (std::isnan(points.data()[i])) throw py::value_error("y must not hold NaN");
    }
    auto result = query.output(out, query.rest_of(points));
    check_disjoint(result, "out", points, "y");
    const Matrix<double> results = flat_matrix(result, n_points);
    query.score({.cdf = {{points.data(), results.rows(), n_points}, inclusive, results}});
    return result;
}

template <class Self>
py::object draws(const Self& self, const py::object& rows, const py::object& uniforms,
                 const py::object& leave_out, const py::object& n_threads, const py::object& out) {
    Query query(self, rows, leave_out, n_threads);
    std::size_t n_draws = 0;
    const auto given = query.points(uniforms, "uniforms", n_draws);
    auto result = query.output(out, query.rest_of(given));
    if (result.data() != given.data()) check_disjoint(result, "out", given, "uniforms");
    for (py::ssize_t i = 0; i < given.size(); ++i) {
        const double u = given.data()[i];
        if (!(u >= 0 && u < 1)) throw py::value_error("uniforms must lie in [0, 1)");
        result.mutable_data()[i] = u;
    }
    query.score({.draws = {flat_matrix(result, n_draws)}});
    return result;
}

template <class Self>
py::object weights(const Self& self, const py::object& rows, const py::object& leave_out,
                   const py::object& n_threads) {
    return csr(Query(self, rows, leave_out, n_threads).weights());
}

template <class Self>
py::object proximities(const Self& self, const py::object& rows, const py::object& leave_out,
                       const py::object& n_threads) {
    return csr(Query(self, rows, leave_out, n_threads).proximities());
}

template <class Self>
py::object n_samples(const Self& self, const py::object& rows, const py::object& n_threads) {
    return Query(self, rows, py::none(), n_threads).count_samples();
}

template <class Stub, class Self>
void register_queries(py::class_<Self>& cls) {
    Stub::mean(cls, &mean<Self>);
    Stub::intervals(cls, &intervals<Self>);
    Stub::priced_intervals(cls, &priced_intervals<Self>);
    Stub::regions(cls, &regions<Self>);
    Stub::quantiles(cls, &quantiles<Self>);
    Stub::cdf(cls, &cdf<Self>);
    Stub::draws(cls, &draws<Self>);
    Stub::weights(cls, &weights<Self>);
    Stub::proximities(cls, &proximities<Self>);
    Stub::n_samples(cls, &n_samples<Self>);
}

}  // namespace hdicore::bindings
