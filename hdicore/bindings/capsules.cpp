// capsules.cpp: C functions for Cython, published in __pyx_capi__ as Cython modules publish theirs
// SPDX-License-Identifier: BSD-3-Clause
#include <span>

#include "bound.hpp"
#include "hdicore/hdi.hpp"

namespace hdicore::bindings {
namespace {

// Shortest interval of a weighted sample (n,), into interval (2,); weights may be null: all alike.
// Returns 0, or -1 where weighted_hdi would raise. Needs no GIL.
int weighted_hdi_c(const double* values, const double* weights, pybind11::ssize_t n,
                   double coverage, double* interval) noexcept {
    if (values == nullptr || interval == nullptr || n < 1) return -1;
    if (!(coverage > 0 && coverage <= 1)) return -1;
    try {
        const auto size = static_cast<std::size_t>(n);
        std::span<const double> given;
        if (weights != nullptr) given = {weights, size};
        WeightedSample sample;
        sample.assign({values, size}, given);
        const Atoms atoms = sample.atoms();
        const Interval hdi = shortest_interval(atoms, atoms.needed(coverage));
        interval[0] = hdi.lower;
        interval[1] = hdi.upper;
        return 0;
    } catch (...) {
        return -1;
    }
}

}  // namespace

void register_capsules(pybind11::module_& module) {
    pybind11::dict functions;
    // The name is the signature, spelled as Cython spells it: it compares them at import.
    functions["weighted_hdi_c"] =
        pybind11::capsule(reinterpret_cast<const void*>(&weighted_hdi_c),
                          "int (double const *, double const *, Py_ssize_t, double, double *)");
    module.attr("__pyx_capi__") = functions;
}

}  // namespace hdicore::bindings
