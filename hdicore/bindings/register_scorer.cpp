// register_scorer.cpp: the Python class Scorer
// SPDX-License-Identifier: BSD-3-Clause
#include "bound_classes.hpp"
#include "register_queries.hpp"
#include "registration.hpp"
#include "scoring/scorer.hpp"
#include "stub.hpp"

namespace hdicore::bindings {
namespace {

BoundScorer make_scorer(const py::object& forest, const py::object& index) {
    const auto& bound_forest = held<BoundForest>(forest, "forest");
    const auto& bound_index = held<BoundIndex>(index, "index");
    check_same_trees(bound_forest.current(), bound_index.current());
    return {forest, index, bound_forest.engine, bound_index};
}

}  // namespace

void register_scorer(py::module_& module) {
    using Stub = stub::Scorer;
    py::class_<BoundScorer> cls(module, Stub::name, Stub::doc);
    Stub::init(cls, constructor(&make_scorer));
    Stub::forest(cls, [](const BoundScorer& self) { return self.forest; });
    Stub::index(cls, [](const BoundScorer& self) { return self.index; });
    register_queries<Stub>(cls);
    cls.def("__reduce__", [](const py::object& self) {
        return py::make_tuple(py::type::of(self),
                              py::make_tuple(self.attr("forest"), self.attr("index")));
    });
    module.def("_set_block_rows", [](std::size_t n_rows) { block_rows = n_rows; });
    module.def("_set_unchecked_rows", [](std::int64_t n_rows) { unchecked_rows = n_rows; });
}

}  // namespace hdicore::bindings
