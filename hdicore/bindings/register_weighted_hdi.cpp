// register_weighted_hdi.cpp: the Python function weighted_hdi
// SPDX-License-Identifier: BSD-3-Clause
#include "arrays.hpp"
#include "pmf/weighted_sample.hpp"
#include "registration.hpp"
#include "stub.hpp"

namespace hdicore::bindings {
namespace {

py::array_t<double> weighted_hdi(const py::object& values, const py::object& weights,
                                 const py::object& coverage, const py::object& n_threads) {
    const auto sample = reals(values, "values");
    if (sample.ndim() != 1 && sample.ndim() != 2) {
        throw py::value_error("values must have 1 or 2 dimensions, got shape " +
                              shape_text(shape_of(sample)));
    }
    const auto n_values = static_cast<std::size_t>(sample.shape(sample.ndim() - 1));
    const bool batched = sample.ndim() == 2;
    const std::size_t n_samples = batched ? static_cast<std::size_t>(sample.shape(0)) : 1;
    py::array_t<double> given;
    if (!weights.is_none()) {
        given = reals(weights, "weights");
        const Shape one{static_cast<py::ssize_t>(n_values)};
        check_shape(
            given, "weights",
            given.ndim() == 1 ? one : Shape(sample.shape(), sample.shape() + sample.ndim()));
    }
    const Levels levels = levels_of(coverage, "coverage", false);
    Shape shape;
    if (batched) shape.push_back(static_cast<py::ssize_t>(n_samples));
    shape.push_back(2);
    if (!levels.is_scalar) shape.push_back(static_cast<py::ssize_t>(levels.values.size()));
    py::array_t<double> result(shape);

    const unsigned threads = thread_count(n_threads);
    SampleMatrix samples{{sample.data(), n_samples, n_values}};
    if (!weights.is_none()) {
        samples.weights = {given.data(), given.ndim() == 1 ? 1 : n_samples, n_values};
    }
    const Matrix<double> ends = flat_matrix(result, 2 * levels.values.size());
    Interruption interruption(pending_signals());
    {
        const py::gil_scoped_release no_gil;
        weighted_hdis(samples, levels.values, threads, ends, interruption);
    }
    return result;
}

}  // namespace

void register_weighted_hdi(py::module_& module) {
    stub::weighted_hdi(module, &weighted_hdi);
}

}  // namespace hdicore::bindings
