// register_fit_record.cpp: the Python function find_mismatch
// SPDX-License-Identifier: BSD-3-Clause
#include "arrays.hpp"
#include "forest/fit_record.hpp"
#include "registration.hpp"
#include "stub.hpp"
#include "tree_arrays.hpp"

namespace hdicore::bindings {
namespace {

FitRecord fit_record(const py::handle& tree, py::ssize_t n_outputs, std::vector<py::array>& keep) {
    const auto array = [&](const char* name) {
        const auto values = reals(tree_array(tree, name), name);
        keep.push_back(values);
        return values;
    };
    const auto weight = array("weight"), value = array("value");
    check_ndim(weight, "weight", 1);
    check_shape(value, "value", {weight.size(), n_outputs});
    FitRecord record{
        span_of(weight), matrix_of(value), {}, tree_array(tree, "medians").cast<bool>()};
    if (tree_array(tree, "bounds").is_none()) return record;
    const auto bounds = array("bounds");
    check_shape(bounds, "bounds", {2, weight.size()});
    record.bounds = matrix_of(bounds);
    return record;
}

// The first tree that differs and how, or None.
template <class Count>
py::object mismatch(std::span<const FitRecord> trees, const FitRows<Count>& rows,
                    unsigned n_threads) {
    Interruption interruption(pending_signals());
    const auto found = [&] {
        const py::gil_scoped_release no_gil;
        return compare(trees, rows, n_threads, interruption);
    }();
    for (std::size_t tree = 0; tree < found.size(); ++tree) {
        if (found[tree] == Difference::none) continue;
        return py::make_tuple(tree, found[tree] == Difference::weights ? "weights" : "targets");
    }
    return py::none();
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
    const auto first = [&]<class Count>(Matrix<const Count> drawn) {
        const FitRows<Count> rows{matrix_of(of_rows), drawn, span_of(weights), in_float32,
                                  matrix_of(y)};
        return mismatch(records, rows, threads);
    };
    if (counts.is_none()) return first(Matrix<const std::uint8_t>());
    const py::array drawn = numbers(counts, "counts", "biuf");
    check_shape(drawn, "counts", shape);
    if (holds<std::uint8_t>(drawn)) return first(matrix_of(as_c_array<std::uint8_t>(drawn)));
    const auto wide = integers<std::uint32_t>(drawn, "counts");
    return first(matrix_of(wide));
}

}  // namespace

void register_fit_record(py::module_& module) {
    stub::find_mismatch(module, &first_mismatch);
}

}  // namespace hdicore::bindings
