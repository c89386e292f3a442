// register_read_calibration.cpp: the Python function read_calibration
// SPDX-License-Identifier: BSD-3-Clause
#include <pybind11/stl.h>

#include <algorithm>
#include <string_view>

#include "arrays.hpp"
#include "calibrated/stored_calibration.hpp"
#include "registration.hpp"
#include "stub.hpp"

namespace hdicore::bindings {
namespace {

constexpr std::string_view methods[] = {"oob", "split", "cv+", "jackknife+"};
constexpr std::string_view families[] = {"raw", "centred", "stacked"};

py::array_t<double> copied(std::span<const double> numbers) {
    return py::array_t<double>(static_cast<py::ssize_t>(numbers.size()), numbers.data());
}

py::object stored_levels(const StoredCalibration& found) {
    py::list levels;
    for (const CalibratedLevel& own : found.levels) {
        const auto& kind = *std::ranges::find(kinds(), own.kind, &KindOfInterval::kind);
        levels.append(py::make_tuple(own.coverage, kind.name, own.level, own.q_hat));
    }
    return levels;
}

// Feature, labels and quantiles.
py::object groups_of(const StoredCalibration& found) {
    if (!found.groups) return py::none();
    py::list labels;
    for (const auto& label : found.groups->labels) labels.append(label);
    const auto shape = std::array{found.groups->labels.size(), found.levels.size()};
    return py::make_tuple(found.groups->feature, labels,
                          copied(found.groups->q_hat).reshape(shape));
}

py::dict read_calibration(const py::object& given) {
    const auto numbers = reals(given, "numbers");
    check_ndim(numbers, "numbers", 1);
    const auto found = StoredCalibration::read(span_of(numbers));
    py::dict parts;
    parts["method"] = methods[static_cast<std::size_t>(found.method)];
    parts["family"] = families[static_cast<std::size_t>(found.family)];
    parts["range"] = py::make_tuple(found.low, found.high);
    parts["clip"] = found.clip;
    parts["lattice"] = py::none();
    if (found.lattice) {
        parts["lattice"] =
            py::make_tuple(found.lattice->base, found.lattice->step, found.lattice->slack);
    }
    parts["targets"] = copied(found.targets);
    parts["levels"] = stored_levels(found);
    parts["groups"] = groups_of(found);
    parts["distribution"] = py::none();
    if (!found.distribution_levels.empty()) {
        parts["distribution"] =
            py::make_tuple(copied(found.distribution_levels), copied(found.distribution_scores));
    }
    return parts;
}

}  // namespace

void register_read_calibration(py::module_& module) {
    stub::read_calibration(module, &read_calibration);
}

}  // namespace hdicore::bindings
