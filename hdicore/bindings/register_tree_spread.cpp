// register_tree_spread.cpp: the Python function _spread_and_mass
// SPDX-License-Identifier: BSD-3-Clause
#include "query.hpp"
#include "registration.hpp"
#include "scoring/tree_spread.hpp"
#include "stub.hpp"

namespace hdicore::bindings {
namespace {

py::tuple spread_and_mass(const py::object& index, const py::object& leaves,
                          const py::object& intervals, const py::object& n_threads) {
    Query query(held<BoundIndex>(index, "index"), leaves, py::none(), n_threads);
    const auto ends = reals(intervals, "intervals");
    check_shape(ends, "intervals", query.shape({2}));
    auto spread = query.output(py::none(), {});
    auto mass = query.output(py::none(), {});
    const std::span spreads = mutable_span_of(spread);
    query.find_spread({{ends.data(), spreads.size(), 2}, spreads, mutable_span_of(mass)});
    return py::make_tuple(spread, mass);
}

}  // namespace

void register_tree_spread(py::module_& module) {
    stub::spread_and_mass(module, &spread_and_mass);
}

}  // namespace hdicore::bindings
