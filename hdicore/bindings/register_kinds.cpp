// register_kinds.cpp: the table of the kinds of interval, and types of their names
// SPDX-License-Identifier: BSD-3-Clause
#include <pybind11/pybind11.h>

#include "pmf/interval.hpp"
#include "registration.hpp"
#include "stub.hpp"

namespace py = pybind11;

namespace hdicore::bindings {
namespace {

py::dict facts_by_name() {
    py::dict found;
    for (const KindOfInterval& each : kinds()) {
        py::list ends;
        if (each.has_lower) ends.append("lower");
        if (each.has_upper) ends.append("upper");
        py::dict facts;
        facts["number"] = static_cast<int>(each.kind);
        facts["ends"] = py::tuple(ends);
        facts["holds_coverage"] = each.holds_coverage;
        found[each.name] = facts;
    }
    return found;
}

}  // namespace

void register_kinds(py::module_& module) {
    stub::kinds(module, &facts_by_name);
    py::list all, holding;
    for (const KindOfInterval& each : kinds()) {
        all.append(each.name);
        if (each.holds_coverage) holding.append(each.name);
    }
    const py::object literal = py::module_::import("typing").attr("Literal");
    module.attr("Kind") = literal[py::tuple(holding)];
    module.attr("BaseKind") = literal[py::tuple(all)];
}

}  // namespace hdicore::bindings
