// register_leaf_index.cpp: the Python class LeafIndex
// SPDX-License-Identifier: BSD-3-Clause
#include "arrays.hpp"
#include "bound_classes.hpp"
#include "build_leaf_index.hpp"
#include "c_api/c_index.hpp"
#include "hdicore/c_api.h"
#include "index/leaf_index.hpp"
#include "register_queries.hpp"
#include "registration.hpp"
#include "stub.hpp"

namespace hdicore::bindings {
namespace {

// An entry that may be of a narrow or a wide type.
template <class Narrow, class Wide, class Held>
void adopt_either(const py::dict& arrays, const char* name, bool copy, Held& held) {
    const py::array array = entry(arrays, name);
    if (holds<Narrow>(array)) {
        held = adopt<Narrow>(array, name, copy);
    } else {
        held = adopt<Wide>(array, name, copy);
    }
}

BoundIndex from_arrays(const py::dict& arrays, bool scalar_output, bool copy,
                       const py::object& source, bool lazy) {
    std::string name = source_text(source);
    check_entries(arrays, {"leaf_offsets", "atom_offsets", "atoms", "events", "tree_begin",
                           "leaf_begin", "ranks", "units", "copies", "seen", "pooled"});
    LeafIndexArrays held;
    held.leaf_offsets = adopt<offset_t>(entry(arrays, "leaf_offsets"), "leaf_offsets", copy);
    held.atom_offsets = adopt<offset_t>(entry(arrays, "atom_offsets"), "atom_offsets", copy);
    held.atoms = adopt<double>(entry(arrays, "atoms"), "atoms", copy);
    if (arrays.contains("events")) {
        held.events = adopt<std::uint8_t>(entry(arrays, "events"), "events", copy);
        if (held.events.size() == 0) throw py::value_error("events is damaged: it is empty");
    }
    held.tree_begin = adopt<offset_t>(entry(arrays, "tree_begin"), "tree_begin", copy);
    held.leaf_begin = adopt<std::uint32_t>(entry(arrays, "leaf_begin"), "leaf_begin", copy);
    adopt_either<std::uint16_t, rank_t>(arrays, "ranks", copy, held.ranks);
    if (arrays.contains("units")) {
        adopt_either<std::uint64_t, std::uint32_t>(arrays, "units", copy, held.units);
    }
    if (arrays.contains("copies")) {
        adopt_either<std::uint8_t, std::uint32_t>(arrays, "copies", copy, held.copies);
    }
    if (arrays.contains("seen")) {
        held.leaf_mask = adopt<std::uint64_t>(entry(arrays, "seen"), "seen", copy);
    }
    held.pooled = arrays.contains("pooled");
    if (scalar_output && held.atom_offsets.size() != 2) {
        throw py::value_error("scalar_output must be False for an index of several outputs");
    }
    Interruption interruption(pending_signals());
    const py::gil_scoped_release no_gil;
    return {
        engine_of(LeafIndex(std::move(held), std::move(name), checks_of(lazy), 1, interruption)),
        scalar_output};
}

BoundIndex from_state(const py::tuple& state) {
    return from_arrays(state[0].cast<py::dict>(), state[1].cast<bool>(), true, py::none(), false);
}

py::dict to_arrays(const py::object& self) {
    const LeafIndexArrays& held = validated(self.cast<const BoundIndex&>().engine).arrays();
    py::dict arrays;
    arrays["leaf_offsets"] = view_of(held.leaf_offsets, self);
    arrays["atom_offsets"] = view_of(held.atom_offsets, self);
    arrays["atoms"] = view_of(held.atoms, self);
    arrays["tree_begin"] = view_of(held.tree_begin, self);
    arrays["leaf_begin"] = view_of(held.leaf_begin, self);
    std::visit([&](const auto& ranks) { arrays["ranks"] = view_of(ranks, self); }, held.ranks);
    std::visit(
        [&]<class Units>(const Units& units) {
            if constexpr (!std::is_same_v<Units, std::monostate>) {
                arrays["units"] = view_of(units, self);
            }
        },
        held.units);
    std::visit(
        [&]<class Copies>(const Copies& copies) {
            if constexpr (!std::is_same_v<Copies, std::monostate>) {
                arrays["copies"] = view_of(copies, self);
            }
        },
        held.copies);
    if (held.censored()) arrays["events"] = view_of(held.events, self);
    if (held.leaf_mask.size() > 0) arrays["seen"] = view_of(held.leaf_mask, self);
    if (held.pooled) arrays["pooled"] = py::array_t<std::uint8_t>(0);
    return arrays;
}

py::array_t<std::int64_t> leaves_per_tree(const BoundIndex& index) {
    py::array_t<std::int64_t> result(static_cast<py::ssize_t>(index.current().n_trees()));
    for (std::size_t t = 0; t < index.current().n_trees(); ++t) {
        result.mutable_data()[t] = static_cast<std::int64_t>(index.current().n_leaves(t));
    }
    return result;
}

py::array_t<double> atoms(const py::object& self, const py::object& output) {
    const LeafIndex& index = self.cast<const BoundIndex&>().current();
    const auto last = static_cast<std::int64_t>(index.n_outputs()) - 1;
    const auto which = static_cast<std::size_t>(whole_number(output, "output", 0, last));
    const std::span<const double> atoms = index.atoms(which);
    return view_of(atoms.data(), {static_cast<py::ssize_t>(atoms.size())}, self);
}

// The index for C, which keeps it alive on its own.
py::capsule c_index(const BoundIndex& index) {
    const auto release = [](PyObject* capsule) {
        hdicore_get_api()->index_release(
            static_cast<hdicore_index*>(PyCapsule_GetPointer(capsule, "hdicore.index")));
    };
    return py::capsule(
        new hdicore_index{std::shared_ptr<const LeafIndex>(index.engine, &validated(index.engine))},
        "hdicore.index", release);
}

py::tuple spread_and_mass(const BoundIndex& self, const py::object& leaves,
                          const py::object& intervals, const py::object& n_threads) {
    Query query(self, leaves, py::none(), n_threads);
    const auto ends = reals(intervals, "intervals");
    check_shape(ends, "intervals", query.shape({2}));
    auto spread = query.output(py::none(), {});
    auto mass = query.output(py::none(), {});
    const std::span spreads = mutable_span_of(spread);
    query.find_spread({{ends.data(), spreads.size(), 2}, spreads, mutable_span_of(mass)});
    return py::make_tuple(spread, mass);
}

}  // namespace

void register_leaf_index(py::module_& module) {
    using Stub = stub::LeafIndex;
    py::class_<BoundIndex> cls(module, Stub::name, Stub::doc);
    Stub::init(cls, constructor(&from_numbers));
    Stub::from_leaves(cls, &from_leaves);
    Stub::from_blocks(cls, &from_blocks);
    Stub::from_arrays(cls, &from_arrays);
    Stub::arrays(cls, &to_arrays);
    Stub::atoms(cls, &atoms);
    Stub::n_trees(cls, [](const BoundIndex& i) { return i.current().n_trees(); });
    Stub::n_outputs(cls, [](const BoundIndex& i) { return i.current().n_outputs(); });
    Stub::n_leaves(cls, &leaves_per_tree);
    Stub::n_entries(cls, [](const BoundIndex& i) { return i.current().n_entries(); });
    Stub::shift(cls, [](const BoundIndex& i) { return i.current().shift(); });
    Stub::nbytes(cls, [](const BoundIndex& i) { return i.current().nbytes(); });
    Stub::scalar_output(cls, [](const BoundIndex& i) { return i.scalar_output; });
    Stub::pooled(cls, [](const BoundIndex& i) { return i.current().arrays().pooled; });
    Stub::censored(cls, [](const BoundIndex& i) { return i.current().arrays().censored(); });
    register_queries<Stub>(cls);
    Stub::spread_and_mass(cls, &spread_and_mass);
    cls.def("__hdicore_index__", &c_index, "Capsule \"hdicore.index\" of this index, for C.")
        .def("__getstate__",
             [](const py::object& self) {
                 return py::make_tuple(to_arrays(self), self.attr("scalar_output"));
             })
        .def("__setstate__", constructor(&from_state), py::detail::is_new_style_constructor())
        .def("__reduce__", &reduced);
}

}  // namespace hdicore::bindings
