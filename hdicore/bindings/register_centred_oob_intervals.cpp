// register_centred_oob_intervals.cpp: the Python function _centred_oob_intervals
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include "bound_classes.hpp"
#include "register_queries.hpp"
#include "registration.hpp"
#include "scoring/centred.hpp"
#include "stub.hpp"

namespace hdicore::bindings {
namespace {

void check_row_index(const LeafIndex& index, std::size_t n_rows) {
    if (index.n_outputs() != 1 || index.atoms(0).size() != n_rows ||
        (index.row_weights() && index.row_weights()->rows.size() != n_rows)) {
        throw py::value_error("index must be of the " + std::to_string(n_rows) +
                              " rows of y, with one output and a target for each row");
    }
}

// The arrays are the caller's: what serves as an index is copied before it is checked.
template <class T>
std::vector<T> copy_of(const py::array_t<T>& array) {
    return {array.data(), array.data() + array.size()};
}

// A permutation, as the index has the rows; ascending in y if targets themselves are asked for.
std::vector<std::uint32_t> checked_atoms(const py::object& object, const LeafIndex& index,
                                         std::span<const double> y, bool as_targets) {
    const auto given = integers<std::uint32_t>(object, "rows_of_atoms");
    check_shape(given, "rows_of_atoms", {static_cast<py::ssize_t>(y.size())});
    std::vector<std::uint32_t> rows = copy_of(given);
    std::vector<bool> seen(y.size(), false);
    for (std::size_t k = 0; k < rows.size(); ++k) {
        if (rows[k] >= rows.size() || seen[rows[k]] ||
            (index.row_weights() && index.row_weights()->ranks[rows[k]] != k)) {
            throw py::value_error("rows_of_atoms must name the row of each atom, each row once");
        }
        seen[rows[k]] = true;
        if (as_targets && k > 0 && y[rows[k - 1]] > y[rows[k]]) {
            throw py::value_error("rows_of_atoms must ascend in y where families hold 'raw'");
        }
    }
    return rows;
}

// Checks leaves and counts of the rows asked for, and the weights of these leaves.
void check_leaves(const LeafIndex& index, std::span<const leaf_t> leaves,
                  std::span<const std::int32_t> counts, std::span<const double> leaf_weight) {
    const std::size_t m = index.n_trees();
    for (std::size_t i = 0; i < leaves.size(); ++i) {
        if (!index.has_leaf(i % m, leaves[i])) {
            throw py::value_error("leaves[" + std::to_string(i / m) + ", " + std::to_string(i % m) +
                                  "] is no leaf of the index");
        }
        const auto leaf = static_cast<std::size_t>(index.arrays().leaf_offsets[i % m] + leaves[i]);
        if (counts[i] < 0) throw py::value_error("counts must not be negative");
        if (counts[i] > 0 && !(leaf_weight[leaf] > 0)) {
            throw py::value_error("leaf_weight must be positive where a tree drew a row");
        }
    }
}

// Checks that rows have a centre, unless they have no weight.
void check_trees(const LeafIndex& index, std::span<const double> n_oob) {
    for (std::size_t i = 0; i < n_oob.size(); ++i) {
        if (n_oob[i] > 0 || (index.row_weights() && index.row_weights()->rows[i] == 0)) continue;
        throw py::value_error("row " + std::to_string(i) +
                              " was drawn by every tree, and must have no weight in the index");
    }
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

py::array_t<double> centred(const py::object& index, const py::object& rows_of_atoms,
                            const py::object& drawn, const py::object& y, const py::object& centres,
                            const py::object& n_oob, const py::object& leaf_weight,
                            const py::object& rows, const py::object& leaves,
                            const py::object& counts, const py::object& coverage,
                            const py::object& kind, const py::sequence& family_names,
                            const py::object& draw_weight, double scale, const py::object& offsets,
                            const py::object& n_threads) {
    const LeafIndex& engine = validated(held<BoundIndex>(index, "index").engine);
    const auto m = static_cast<py::ssize_t>(engine.n_trees());
    const auto given_y = reals(y, "y");
    check_ndim(given_y, "y", 1);
    const auto n = static_cast<std::size_t>(given_y.size());
    const auto targets = vector_of(given_y, "y", n);
    check_row_index(engine, n);
    std::vector<Family> families;
    for (const py::handle name : family_names) {
        families.push_back(one_of<Family>(py::reinterpret_borrow<py::object>(name), "family",
                                          {{"raw", Family::raw}, {"centred", Family::centred}}));
    }
    const std::vector<std::uint32_t> atoms = checked_atoms(
        rows_of_atoms, engine, span_of(targets), std::ranges::count(families, Family::raw) > 0);
    const auto bits = integers<std::uint8_t>(drawn, "drawn");
    check_shape(bits, "drawn", {m, static_cast<py::ssize_t>((n + 7) / 8)});
    const auto means = vector_of(centres, "centres", n);
    const auto trees = vector_of(n_oob, "n_oob", n);
    check_trees(engine, span_of(trees));
    const auto of_leaves = vector_of(leaf_weight, "leaf_weight", engine.n_leaves());
    py::array_t<double> of_draws;
    if (!draw_weight.is_none()) of_draws = vector_of(draw_weight, "draw_weight", n);
    py::array_t<double> added;
    if (!offsets.is_none()) added = vector_of(offsets, "offsets", n);
    if (!std::isfinite(scale)) throw py::value_error("scale must be finite");
    const auto given_rows = integers<std::uint32_t>(rows, "rows");
    check_ndim(given_rows, "rows", 1);
    const std::vector<std::uint32_t> chosen = copy_of(given_rows);
    for (const std::uint32_t row : chosen) {
        if (row < n) continue;
        throw py::value_error("rows must lie below " + std::to_string(n) + ", got " +
                              std::to_string(row));
    }
    const Shape shape{given_rows.size(), m};
    const auto ids = integers<leaf_t>(leaves, "leaves");
    check_shape(ids, "leaves", shape);
    const std::vector<leaf_t> own_leaves = copy_of(ids);
    const auto times = integers<std::int32_t>(counts, "counts");
    check_shape(times, "counts", shape);
    const std::vector<std::int32_t> own_counts = copy_of(times);
    check_leaves(engine, own_leaves, own_counts, span_of(of_leaves));
    const Levels levels = levels_of(coverage, "coverage", false);
    const std::vector<Kind> kinds = kinds_of(kind, levels.values.size());

    Shape result_shape{static_cast<py::ssize_t>(families.size()),
                       static_cast<py::ssize_t>(chosen.size()), 2};
    if (!levels.is_scalar) result_shape.push_back(static_cast<py::ssize_t>(levels.values.size()));
    py::array_t<double> result(result_shape);
    const CentredRows training{.index = engine,
                               .rows_of_atoms = atoms,
                               .drawn = matrix_of(bits),
                               .leaf_weight = span_of(of_leaves),
                               .y = span_of(targets),
                               .centres = span_of(means),
                               .n_oob = span_of(trees),
                               .draw_weight = span_of(of_draws),
                               .offsets = span_of(added),
                               .scale = scale};
    const CentredRequest request{.rows = chosen,
                                 .leaves = {own_leaves.data(), chosen.size(), engine.n_trees()},
                                 .counts = {own_counts.data(), chosen.size(), engine.n_trees()},
                                 .coverages = levels.values,
                                 .kinds = kinds,
                                 .families = families,
                                 .results = flat_matrix(result, 2 * levels.values.size())};
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
