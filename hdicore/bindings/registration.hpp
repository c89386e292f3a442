// registration.hpp: who registers the functions and classes of hdicore._core, and what all use
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace hdicore::bindings {

void register_kinds(pybind11::module_& module);
void register_forest(pybind11::module_& module);
void register_leaf_index(pybind11::module_& module);
void register_scorer(pybind11::module_& module);
void register_calibrated(pybind11::module_& module);
void register_read_calibration(pybind11::module_& module);
void register_weighted_hdi(pybind11::module_& module);
void register_out_of_bag(pybind11::module_& module);
void register_fit_record(pybind11::module_& module);
void register_moving_quantiles(pybind11::module_& module);

// What an argument holds. Throws TypeError if it is something else.
template <class Held>
const Held& held(const pybind11::object& object, const char* name) {
    if (!pybind11::isinstance<Held>(object)) {
        throw pybind11::type_error(
            std::string(name) + " must be a " +
            std::string(pybind11::str(pybind11::type::of<Held>().attr("__name__"))) + ", got " +
            std::string(pybind11::str(pybind11::type::of(object).attr("__name__"))));
    }
    return object.cast<const Held&>();
}

// What __reduce__ returns for an object with __getstate__ and __setstate__, for all protocols.
inline pybind11::tuple reduced(const pybind11::object& self) {
    const auto make = pybind11::module_::import("copyreg").attr("__newobj__");
    return pybind11::make_tuple(make, pybind11::make_tuple(pybind11::type::of(self)),
                                self.attr("__getstate__")());
}

}  // namespace hdicore::bindings
