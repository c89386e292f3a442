// scorer.cpp: the Python class Scorer
// SPDX-License-Identifier: BSD-3-Clause
#include "hdicore/scorer.hpp"

#include "arrays.hpp"
#include "bound.hpp"
#include "queries.hpp"

namespace hdicore::bindings {

void register_scorer(py::module_& module) {
    py::class_<BoundScorer, std::shared_ptr<BoundScorer>> cls(
        module, "Scorer",
        R"(A forest and its leaf index: from rows to their conditional distributions.

Rows are scored in blocks over threads; memory beside the results does not grow
with their number, and neither the number of threads nor `block_rows` changes a
bit of the results.

Parameters
----------
forest : Forest
index : LeafIndex
    Built from ``forest.leaves(X_train)`` with ``n_leaves=forest.n_leaves``.

Raises
------
ValueError
    If their trees differ.)");
    cls.def(py::init([](const py::object& forest, const py::object& index) {
                return std::make_shared<BoundScorer>(held<Forest>(forest, "forest"),
                                                     held<BoundIndex>(index, "index"));
            }),
            py::arg("forest"), py::arg("index"))
        .def_readonly("forest", &BoundScorer::forest)
        .def_readonly("index", &BoundScorer::index)
        .def("__reduce__", [](const py::object& self) {
            return py::make_tuple(py::type::of(self),
                                  py::make_tuple(self.attr("forest"), self.attr("index")));
        });
    register_queries(cls, "X");
}

}  // namespace hdicore::bindings
