// capsules.cpp: the C table as a capsule, and C functions for Cython as Cython modules publish
// theirs SPDX-License-Identifier: BSD-3-Clause
#include "bound.hpp"
#include "hdicore/c_api.h"

namespace hdicore::bindings {
namespace {

// Shortest interval of a weighted sample (n,), into interval (2,); weights may be null: all alike.
// Returns 0, or -1 where weighted_hdi would raise. Needs no GIL.
int weighted_hdi_c(const double* values, const double* weights, pybind11::ssize_t n,
                   double coverage, double* interval) noexcept {
    const int status =
        hdicore_get_api()->weighted_hdi(values, weights, n, &coverage, 1, interval, nullptr);
    return status == hdicore_ok ? 0 : -1;
}

// Quantile of the same at a level in [0, 1], by a number of hdicore_interpolation.
int weighted_quantile_c(const double* values, const double* weights, pybind11::ssize_t n,
                        double level, int interpolation, double* quantile) noexcept {
    const int status = hdicore_get_api()->weighted_quantiles(values, weights, n, &level, 1,
                                                             interpolation, quantile, nullptr);
    return status == hdicore_ok ? 0 : -1;
}

}  // namespace

void register_capsules(pybind11::module_& module) {
    module.attr("c_api") = pybind11::capsule(hdicore_get_api(), "hdicore._core.c_api");
    pybind11::dict functions;
    // The name is the signature, spelled as Cython spells it: it compares them at import.
    functions["weighted_hdi_c"] =
        pybind11::capsule(reinterpret_cast<const void*>(&weighted_hdi_c),
                          "int (double const *, double const *, Py_ssize_t, double, double *)");
    functions["weighted_quantile_c"] = pybind11::capsule(
        reinterpret_cast<const void*>(&weighted_quantile_c),
        "int (double const *, double const *, Py_ssize_t, double, int, double *)");
    module.attr("__pyx_capi__") = functions;
}

}  // namespace hdicore::bindings
