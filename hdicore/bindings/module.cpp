// module.cpp: table of contents of hdicore._core, in the order data flows
// SPDX-License-Identifier: BSD-3-Clause
#include <pybind11/pybind11.h>

#include "base/processors.hpp"
#include "bound.hpp"
#include "hdicore/c_api.h"

extern "C" PYBIND11_EXPORT PyObject* PyInit__core();

// Everything is immutable after construction, so no lock is needed without the GIL either.
PYBIND11_MODULE(_table, module, pybind11::mod_gil_not_used()) {
    module.doc() = "Compiled core of hdicore: rows -> leaves -> weighted atoms -> interval.";
    module.def("available_threads", &hdicore::available_threads,
               R"(Count the threads that ``n_threads=0`` stands for now.

Returns
-------
int
    As many as the processors this process may run on, but no more than the quota of its
    control group or OMP_NUM_THREADS allow.)");
    hdicore::bindings::register_forest(module);
    hdicore::bindings::register_leaf_index(module);
    hdicore::bindings::register_scorer(module);
    hdicore::bindings::register_hdi(module);
    hdicore::bindings::register_centred(module);
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
