// register_moving_quantiles.cpp: the Python function moving_quantiles
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include "arrays.hpp"
#include "pmf/moving_quantiles.hpp"
#include "registration.hpp"
#include "stub.hpp"

namespace hdicore::bindings {
namespace {

py::tuple moving(const py::object& start, const py::object& scores, const py::object& size,
                 double target, double miss, double rate) {
    const auto before = reals(start, "start");
    const auto own = reals(scores, "scores");
    check_ndim(before, "start", 1);
    check_ndim(own, "scores", 1);
    const auto is_nan = [](double score) { return std::isnan(score); };
    if (std::ranges::any_of(span_of(before), is_nan) || std::ranges::any_of(span_of(own), is_nan)) {
        throw py::value_error("start and scores must not hold NaN");
    }
    const auto window = whole_number(size, "size", 1, std::int64_t{1} << 31);
    py::array_t<double> quantiles(own.shape(0));
    const std::span<double> results(quantiles.mutable_data(), span_of(own).size());
    Interruption interruption(pending_signals());
    const double last = [&] {
        const py::gil_scoped_release no_gil;
        return moving_quantiles(span_of(before), span_of(own), static_cast<std::size_t>(window),
                                target, miss, rate, results, interruption);
    }();
    return py::make_tuple(quantiles, last);
}

}  // namespace

void register_moving_quantiles(py::module_& module) {
    stub::moving_quantiles(module, &moving);
}

}  // namespace hdicore::bindings
