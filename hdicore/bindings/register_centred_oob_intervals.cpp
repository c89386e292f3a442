// register_centred_oob_intervals.cpp: the Python function _centred_oob_intervals
// SPDX-License-Identifier: BSD-3-Clause
#include "bound_classes.hpp"
#include "register_queries.hpp"
#include "registration.hpp"
#include "scoring/centred.hpp"
#include "scoring/local_linear.hpp"
#include "stub.hpp"

namespace hdicore::bindings {
namespace {

void check_row_index(const LeafIndex& index, std::size_t n_rows) {
    if (index.n_outputs() != 1 || !index.row_weights() ||
        index.row_weights()->rows.size() != n_rows) {
        throw py::value_error("index must be of the " + std::to_string(n_rows) +
                              " rows of leaves, with one output and keep_row_weights");
    }
    for (std::size_t i = 0; i < n_rows; ++i) {
        if (index.row_weights()->ranks[i] == i) continue;
        throw py::value_error("index must have the targets 0, 1, ... in the order of the rows");
    }
}

// The arrays are the caller's: what serves as an index is copied before it is checked.
template <class T>
std::vector<T> copy_of(const py::array_t<T>& array) {
    return {array.data(), array.data() + array.size()};
}

void check_leaves(const LeafIndex& index, std::span<const leaf_t> leaves) {
    for (std::size_t i = 0; i < leaves.size(); ++i) {
        if (index.has_leaf(i % index.n_trees(), leaves[i])) continue;
        throw py::value_error("leaves[" + std::to_string(i / index.n_trees()) + ", " +
                              std::to_string(i % index.n_trees()) + "] is no leaf of the index");
    }
}

// How many trees did not draw each row, after checking counts and the weights of leaves.
std::vector<double> out_of_bag_trees(const LeafIndex& index, std::span<const leaf_t> leaves,
                                     std::span<const std::int32_t> counts,
                                     const double* leaf_weight) {
    const std::size_t m = index.n_trees();
    std::vector<double> n_oob(leaves.size() / m, 0);
    for (std::size_t i = 0; i < leaves.size(); ++i) {
        const auto leaf = static_cast<std::size_t>(index.arrays().leaf_offsets[i % m] + leaves[i]);
        if (counts[i] < 0) throw py::value_error("counts must not be negative");
        if (counts[i] > 0 && !(leaf_weight[leaf] > 0)) {
            throw py::value_error("leaf_weight must be positive where a tree drew a row");
        }
        n_oob[i / m] += counts[i] == 0;
    }
    for (std::size_t i = 0; i < n_oob.size(); ++i) {
        if (n_oob[i] > 0 || index.row_weights()->rows[i] == 0) continue;
        throw py::value_error("row " + std::to_string(i) +
                              " was drawn by every tree, and must have no weight in the index");
    }
    return n_oob;
}

py::array_t<double> vector_of(const py::object& object, const char* name, std::size_t size) {
    const auto array = reals(object, name);
    check_shape(array, name, {static_cast<py::ssize_t>(size)});
    for (py::ssize_t i = 0; i < array.size(); ++i) {
        if (!std::isfinite(array.data()[i]))
            throw py::value_error(std::string(name) + " must be finite");
    }
    return array;
}

// What a CentredFits refers to.
struct LocalArrays {
    py::array_t<double> fits;
    py::array_t<double> features;
    py::array_t<double> bounds;

    std::optional<CentredFits> view(double share) const {
        if (fits.size() == 0) return std::nullopt;
        return CentredFits{matrix_of(fits), matrix_of(features), share, bounds.at(0), bounds.at(1)};
    }
};

LocalArrays local_arrays(const py::object& fits, const py::object& features,
                         const py::object& bounds, std::size_t n_rows) {
    const auto n = static_cast<py::ssize_t>(n_rows);
    LocalArrays local{reals(fits, "fits"), reals(features, "features"),
                      vector_of(bounds, "bounds", 2)};
    check_ndim(local.features, "features", 2);
    const auto q = static_cast<std::size_t>(local.features.shape(1));
    check_shape(local.features, "features", {n, static_cast<py::ssize_t>(q)});
    check_shape(local.fits, "fits", {n, static_cast<py::ssize_t>(LocalFit::size(q))});
    if (!(local.bounds.at(0) <= local.bounds.at(1))) {
        throw py::value_error("bounds must ascend");
    }
    return local;
}

py::array_t<double> centred(const py::object& index, const py::object& leaves,
                            const py::object& counts, const py::object& y,
                            const py::object& centres, const py::object& leaf_weight,
                            const py::object& rows, const py::object& coverage,
                            const py::sequence& kind_names, const py::object& draw_weight,
                            double scale, const py::object& offsets, const py::object& fits,
                            const py::object& features, const py::object& bounds, double share,
                            const py::object& n_threads) {
    const LeafIndex& engine = validated(held<BoundIndex>(index, "index").engine);
    const auto ids = integers<leaf_t>(leaves, "leaves");
    check_ndim(ids, "leaves", 2);
    const Shape shape{ids.shape(0), static_cast<py::ssize_t>(engine.n_trees())};
    check_shape(ids, "leaves", shape);
    const auto n = static_cast<std::size_t>(ids.shape(0));
    check_row_index(engine, n);
    const std::vector<leaf_t> own_leaves = copy_of(ids);
    check_leaves(engine, own_leaves);
    const auto drawn = integers<std::int32_t>(counts, "counts");
    check_shape(drawn, "counts", shape);
    const std::vector<std::int32_t> own_counts = copy_of(drawn);
    const auto targets = vector_of(y, "y", n);
    const auto means = vector_of(centres, "centres", n);
    const auto of_leaves = vector_of(leaf_weight, "leaf_weight", engine.n_leaves());
    py::array_t<double> of_draws;
    if (!draw_weight.is_none()) of_draws = vector_of(draw_weight, "draw_weight", n);
    py::array_t<double> added;
    if (!offsets.is_none()) added = vector_of(offsets, "offsets", n);
    if (!std::isfinite(scale)) throw py::value_error("scale must be finite");
    LocalArrays local;
    if (!fits.is_none()) local = local_arrays(fits, features, bounds, n);
    const auto given_rows = integers<std::uint32_t>(rows, "rows");
    check_ndim(given_rows, "rows", 1);
    const std::vector<std::uint32_t> chosen = copy_of(given_rows);
    for (const std::uint32_t row : chosen) {
        if (row < n) continue;
        throw py::value_error("rows must lie below " + std::to_string(n) + ", got " +
                              std::to_string(row));
    }
    const Levels levels = levels_of(coverage, "coverage", false);
    std::vector<Kind> kinds;
    for (const py::handle name : kind_names) {
        kinds.push_back(kind_named(py::reinterpret_borrow<py::object>(name)));
    }
    const std::vector<double> n_oob =
        out_of_bag_trees(engine, own_leaves, own_counts, of_leaves.data());

    Shape result_shape{static_cast<py::ssize_t>(kinds.size()),
                       static_cast<py::ssize_t>(chosen.size()), 2};
    if (!levels.is_scalar) result_shape.push_back(static_cast<py::ssize_t>(levels.values.size()));
    py::array_t<double> result(result_shape);
    const CentredRows training{.index = engine,
                               .leaves = {own_leaves.data(), n, engine.n_trees()},
                               .counts = {own_counts.data(), n, engine.n_trees()},
                               .leaf_weight = span_of(of_leaves),
                               .y = span_of(targets),
                               .centres = span_of(means),
                               .n_oob = n_oob,
                               .draw_weight = span_of(of_draws),
                               .offsets = span_of(added),
                               .scale = scale,
                               .local = local.view(share)};
    const CentredRequest request{chosen, levels.values, kinds,
                                 flat_matrix(result, 2 * levels.values.size())};
    const unsigned threads = thread_count(n_threads);
    Interruption interruption(pending_signals());
    {
        const py::gil_scoped_release no_gil;
        centred_oob_intervals(training, request, threads, interruption);
    }
    return result;
}

}  // namespace

void register_centred_oob_intervals(py::module_& module) {
    stub::centred_oob_intervals(module, &centred);
}

}  // namespace hdicore::bindings
