// register_fit_record.cpp: the Python function _find_mismatch
// SPDX-License-Identifier: BSD-3-Clause
#include "arrays.hpp"
#include "forest/fit_record.hpp"
#include "registration.hpp"
#include "stub.hpp"
#include "tree_arrays.hpp"

namespace hdicore::bindings {
namespace {

constexpr std::pair<const char*, Criterion> criteria[] = {
    {"squared_error", Criterion::squared_error},
    {"friedman_mse", Criterion::squared_error},
    {"poisson", Criterion::poisson},
    {"absolute_error", Criterion::absolute_error},
};

FitRecord fit_record(const py::handle& tree, py::ssize_t n_outputs, std::vector<py::array>& keep) {
    const auto value = reals(tree_array(tree, "value"), "value");
    check_ndim(value, "value", 2);
    const py::ssize_t n_nodes = value.shape(0);
    check_shape(value, "value", {n_nodes, n_outputs});
    keep.push_back(value);
    const auto column = [&]<class T>(const char* name, const py::object& array, Column<T>& values) {
        values = column_of<T>(array, name, keep);
        check_shape(keep.back(), name, {n_nodes});
    };
    FitRecord record{};
    record.value = matrix_of(value);
    column("children_left", tree_array(tree, "children_left"), record.children_left);
    column("children_right", tree_array(tree, "children_right"), record.children_right);
    column("n_node_samples", tree_array(tree, "n_node_samples"), record.n_rows);
    column("weighted_n_node_samples", tree_array(tree, "weighted_n_node_samples"), record.weight);
    column("impurity", tree_array(tree, "impurity"), record.impurity);
    const py::object signs = tree_array(tree, "signs");
    if (!signs.is_none()) column("signs", signs, record.signs.emplace());
    record.criterion = one_of(tree_array(tree, "criterion"), "criterion", criteria);
    return record;
}

// The first tree and its difference, or None.
template <class Count>
py::object mismatch(std::span<const FitRecord> trees, const FitRows<Count>& rows,
                    unsigned n_threads) {
    Interruption interruption(pending_signals());
    const auto [tree, difference] = [&] {
        const py::gil_scoped_release no_gil;
        return find_mismatch(trees, rows, n_threads, interruption);
    }();
    if (difference == Difference::none) return py::none();
    return py::make_tuple(tree, difference == Difference::weights ? "weights" : "targets");
}

py::object first_mismatch(const py::sequence& trees, const py::object& leaves,
                          const py::object& targets, const py::object& counts,
                          const py::object& sample_weight, bool in_float32,
                          const py::object& n_threads) {
    const auto y = reals(targets, "targets");
    check_ndim(y, "targets", 2);
    std::vector<py::array> keep;
    std::vector<FitRecord> records;
    for (const py::handle& tree : trees) records.push_back(fit_record(tree, y.shape(0), keep));
    const auto of_rows = integers<leaf_t>(leaves, "leaves");
    const Shape shape{static_cast<py::ssize_t>(records.size()), y.shape(1)};
    check_shape(of_rows, "leaves", shape);
    py::array_t<double> weights;
    if (!sample_weight.is_none()) {
        weights = reals(sample_weight, "sample_weight");
        check_shape(weights, "sample_weight", {y.shape(1)});
    }
    const unsigned threads = thread_count(n_threads);
    const auto compare = [&]<class Count>(Matrix<const Count> drawn) {
        const FitRows<Count> rows{matrix_of(of_rows), drawn, span_of(weights), in_float32,
                                  matrix_of(y)};
        return mismatch(records, rows, threads);
    };
    if (counts.is_none()) return compare(Matrix<const std::uint8_t>());
    const py::array drawn = numbers(counts, "counts", "biuf");
    check_shape(drawn, "counts", shape);
    if (holds<std::uint8_t>(drawn)) return compare(matrix_of(as_c_array<std::uint8_t>(drawn)));
    const auto wide = integers<std::uint32_t>(drawn, "counts");
    return compare(matrix_of(wide));
}

}  // namespace

void register_fit_record(py::module_& module) {
    stub::find_mismatch(module, &first_mismatch);
}

}  // namespace hdicore::bindings
