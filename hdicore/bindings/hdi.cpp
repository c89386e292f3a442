// hdi.cpp: the Python function weighted_hdi
// SPDX-License-Identifier: BSD-3-Clause
#include "arrays.hpp"
#include "bound.hpp"
#include "pmf/weighted_sample.hpp"

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
    const SampleMatrix samples{n_samples, n_values, sample.data(),
                               weights.is_none() ? nullptr : given.data(), given.ndim() == 1};
    double* ends = result.mutable_data();
    Interruption interruption(pending_signals());
    {
        const py::gil_scoped_release no_gil;
        weighted_hdis(samples, levels.values, threads, ends, interruption);
    }
    return result;
}

}  // namespace

void register_hdi(py::module_& module) {
    module.def("weighted_hdi", &weighted_hdi, py::arg("values"), py::arg("weights") = py::none(),
               py::arg("coverage") = 0.9, py::kw_only(), py::arg("n_threads") = 0,
               R"(Shortest interval that holds a share of a weighted sample.

Parameters
----------
values : (s,) or (n, s) float
    A sample, or n of them, in any order; finite.
weights : (s,) or (n, s) float, optional
    Finite and not negative; they need not sum to 1. By default all weigh alike.
coverage : float or list of k floats, default=0.9
    Shares in (0, 1].
n_threads : int, default=0
    0 means all that this process may use.

Returns
-------
(2,), (2, k), (n, 2) or (n, 2, k) float64
    Closed intervals whose ends are values of the sample.

Raises
------
ValueError
    If a value or weight is not finite, a weight is negative, or all are zero.

Notes
-----
Among intervals of equal width the one with most weight is taken, then with its
midpoint nearest the lower weighted median, then the leftmost. O(s log s) for
sorting and O(s) per level: Algorithm 1 of Zhu, Lu, Chen (IJCAI 2019).

Examples
--------
>>> from hdicore import weighted_hdi
>>> weighted_hdi([0.0, 1.0, 1.5, 2.0, 9.0], coverage=0.6)
array([1., 2.]))");
}

}  // namespace hdicore::bindings
