// scorer.cpp: the Python class Scorer
// SPDX-License-Identifier: BSD-3-Clause
#include "scoring/scorer.hpp"

#include "bound.hpp"
#include "queries.hpp"

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
    py::class_<BoundScorer> cls(
        module, "Scorer",
        R"(A forest and its leaf index: from rows to their conditional distributions.

Rows are scored in blocks over threads; memory beside the results does not grow
with their number, and the number of threads does not change a bit of the results.

Parameters
----------
forest : Forest
    What routes rows to leaves.
index : LeafIndex
    Built from ``forest.leaves(X_train)`` with ``n_leaves=forest.n_leaves``.

Raises
------
ValueError
    If their trees differ.)");
    cls.def("__init__", constructor(&make_scorer), py::detail::is_new_style_constructor(),
            py::arg("forest"), py::arg("index"))
        .def_readonly("forest", &BoundScorer::forest, "What routes rows to leaves.")
        .def_readonly("index", &BoundScorer::index, "Which training targets lie in each leaf.")
        .def("__reduce__", [](const py::object& self) {
            return py::make_tuple(py::type::of(self),
                                  py::make_tuple(self.attr("forest"), self.attr("index")));
        });
    register_queries(cls, "X");
    module.def("_set_block_rows", [](std::size_t n_rows) { block_rows = n_rows; });
    module.def("_set_unchecked_rows", [](std::int64_t n_rows) { unchecked_rows = n_rows; });
}

}  // namespace hdicore::bindings
