// register_out_of_bag.cpp: the Python class OutOfBagScorer
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include "bound_classes.hpp"
#include "register_queries.hpp"
#include "registration.hpp"
#include "scoring/out_of_bag.hpp"
#include "stub.hpp"

namespace hdicore::bindings {

struct BoundOutOfBag {
    std::vector<py::array> keep;  // the memory of leaves and counts
    std::shared_ptr<const OutOfBagScorer> engine;
};

}  // namespace hdicore::bindings

namespace pybind11::detail {

template <>
class type_caster<hdicore::bindings::BoundOutOfBag>
    : public hdicore::bindings::InitialisedCaster<hdicore::bindings::BoundOutOfBag> {};

}  // namespace pybind11::detail

namespace hdicore::bindings {
namespace {

py::array_t<double> optional_reals(const py::object& object, const char* name, py::ssize_t size) {
    if (object.is_none()) return {};
    const auto array = reals(object, name);
    check_shape(array, name, {size});
    return array;
}

// A matrix (n, n_trees) as the engine reads it, (n_trees, n).
py::array transposed(const py::object& object, const char* name, const Shape& shape) {
    const py::array array = numbers(object, name, "biuf");
    check_shape(array, name, shape);
    return array.attr("T");
}

BoundOutOfBag make_out_of_bag(const py::object& index, const py::object& leaves,
                              const py::object& counts, const py::object& y,
                              const py::object& sample_weight, const py::object& draw_weight,
                              const py::object& n_threads) {
    const auto& bound = held<BoundIndex>(index, "index");
    const std::shared_ptr<const LeafIndex> engine(bound.engine, &validated(bound.engine));
    const auto targets = reals(y, "y");
    check_ndim(targets, "y", 1);
    const py::ssize_t n = targets.size();
    const Shape shape{n, static_cast<py::ssize_t>(engine->n_trees())};
    const auto of_rows = integers<leaf_t>(transposed(leaves, "leaves", shape), "leaves");
    py::array drawn = transposed(counts, "counts", shape);
    drawn = holds<std::uint8_t>(drawn) ? py::array(integers<std::uint8_t>(drawn, "counts"))
                                       : py::array(integers<std::uint32_t>(drawn, "counts"));
    const auto of_samples = optional_reals(sample_weight, "sample_weight", n);
    const auto of_draws = optional_reals(draw_weight, "draw_weight", n);
    const unsigned threads = thread_count(n_threads);
    OutOfBagRows rows{
        matrix_of(of_rows), {}, span_of(targets), span_of(of_draws), span_of(of_samples)};
    if (holds<std::uint8_t>(drawn)) {
        rows.draws = matrix_of(py::reinterpret_borrow<py::array_t<std::uint8_t>>(drawn));
    } else {
        rows.draws = matrix_of(py::reinterpret_borrow<py::array_t<std::uint32_t>>(drawn));
    }
    Interruption interruption(pending_signals());
    const auto make = [&] {
        const py::gil_scoped_release no_gil;
        return std::make_shared<const OutOfBagScorer>(rows, engine, threads, interruption);
    };
    return {{of_rows, drawn}, make()};
}

py::array_t<double> oob_intervals(const BoundOutOfBag& self, const py::object& rows,
                                  const py::object& coverage, const py::object& kind,
                                  const py::object& family, const py::object& scale,
                                  const py::object& offsets, const py::object& n_threads) {
    const auto given = integers<std::uint32_t>(rows, "rows");
    check_ndim(given, "rows", 1);
    // A copy, as it must not change between its check and its use.
    const std::vector<std::uint32_t> chosen(given.data(), given.data() + given.size());
    const Levels levels = levels_of(coverage, "coverage", false);
    const std::vector<Kind> kinds = kinds_of(kind, levels.values.size());
    const bool is_list = !py::isinstance<py::str>(family) && py::isinstance<py::sequence>(family);
    std::vector<Family> families;
    for (const py::handle name : is_list ? family : py::make_tuple(family)) {
        families.push_back(one_of<Family>(py::reinterpret_borrow<py::object>(name), "family",
                                          {{"raw", Family::raw}, {"centred", Family::centred}}));
    }
    const auto added =
        optional_reals(offsets, "offsets", static_cast<py::ssize_t>(self.engine->n_rows()));
    const std::vector<double> own_offsets(added.data(), added.data() + added.size());
    if (!std::ranges::all_of(own_offsets, [](double x) { return std::isfinite(x); })) {
        throw py::value_error("offsets must be finite");
    }
    Shape shape{given.size(), 2};
    if (is_list) shape.insert(shape.begin(), static_cast<py::ssize_t>(families.size()));
    if (!levels.is_scalar) shape.push_back(axis_of(levels)[0]);
    py::array_t<double> result(shape);
    const OutOfBagRequest request{.rows = chosen,
                                  .coverages = levels.values,
                                  .kinds = kinds,
                                  .families = families,
                                  .scale = number_of(scale, "scale"),
                                  .offsets = own_offsets,
                                  .results = flat_matrix(result, 2 * levels.values.size())};
    const unsigned threads = thread_count(n_threads);
    Interruption interruption(pending_signals());
    {
        const py::gil_scoped_release no_gil;
        self.engine->intervals(request, threads, interruption);
    }
    return result;
}

// A property: one of the means.
auto view_of_means(std::vector<double> OutOfBagMeans::* values) {
    return [values](const py::object& self) {
        const auto& found = self.cast<const BoundOutOfBag&>().engine->means().*values;
        return view_of(found.data(), {static_cast<py::ssize_t>(found.size())}, self);
    };
}

}  // namespace

void register_out_of_bag(py::module_& module) {
    using Stub = stub::OutOfBagScorer;
    py::class_<BoundOutOfBag> cls(module, Stub::name, Stub::doc);
    Stub::init(cls, constructor(&make_out_of_bag));
    Stub::centres(cls, view_of_means(&OutOfBagMeans::centres));
    Stub::n_oob(cls, view_of_means(&OutOfBagMeans::n_oob));
    Stub::leaf_means(cls, view_of_means(&OutOfBagMeans::leaf_means));
    Stub::leaf_weight(cls, view_of_means(&OutOfBagMeans::leaf_weight));
    Stub::has_raw(cls, [](const BoundOutOfBag& self) { return self.engine->has_raw(); });
    Stub::intervals(cls, &oob_intervals);
    cls.def("__reduce__", [](const BoundOutOfBag&) -> py::tuple {
        throw py::type_error("OutOfBagScorer cannot be pickled; make it again from its arguments");
    });
}

}  // namespace hdicore::bindings
