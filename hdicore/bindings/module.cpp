// module.cpp: table of contents of hdicore._core, in the order data flows
// SPDX-License-Identifier: BSD-3-Clause
#include <pybind11/pybind11.h>

#include "base/processors.hpp"
#include "hdicore/c_api.h"
#include "kernels/kernels.hpp"
#include "registration.hpp"
#include "stub.hpp"

namespace {

pybind11::dict instructions() {
    const auto all = hdicore::available_kernels();
    pybind11::tuple names(all.size());
    for (std::size_t k = 0; k < all.size(); ++k) names[k] = all[k]->name;
    pybind11::dict found;
    found["used"] = hdicore::default_kernels().name;
    found["available"] = names;
    return found;
}

}  // namespace

extern "C" PYBIND11_EXPORT PyObject* PyInit__core();

// Everything is immutable after construction, so no lock is needed without the GIL either.
PYBIND11_MODULE(_table, module, pybind11::mod_gil_not_used()) {
    hdicore::default_kernels();  // an ImportError if there is none of the name asked for
    module.doc() = "Compiled core of hdicore: rows -> leaves -> weighted atoms -> interval.";
    // Docstrings begin with signatures of their own.
    pybind11::options options;
    options.disable_function_signatures();
    hdicore::bindings::stub::available_threads(module, &hdicore::available_threads);
    hdicore::bindings::stub::instructions(module, &instructions);
    hdicore::bindings::register_kinds(module);
    hdicore::bindings::register_forest(module);
    hdicore::bindings::register_leaf_index(module);
    hdicore::bindings::register_scorer(module);
    hdicore::bindings::register_calibrated(module);
    hdicore::bindings::register_read_calibration(module);
    hdicore::bindings::register_weighted_hdi(module);
    hdicore::bindings::register_out_of_bag(module);
    hdicore::bindings::register_fit_record(module);
    hdicore::bindings::register_moving_quantiles(module);
    module.attr("c_api") = pybind11::capsule(hdicore_get_api(), "hdicore._core.c_api");
}

// pybind11 waits for ever for the lock of the main interpreter if a sub-interpreter comes first.
PyObject* PyInit__core() {
    if (PyInterpreterState_Get() == PyInterpreterState_Main()) return PyInit__table();
    PyErr_SetString(
        PyExc_ImportError,
        "hdicore cannot be imported in a sub-interpreter; import it in the main one, or "
        "use processes");
    return nullptr;
}
