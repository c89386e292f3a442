// bound_classes.hpp: what objects of Python's classes hold, and who registers these
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <utility>

#include "base/deferred.hpp"
#include "forest/forest.hpp"
#include "index/leaf_index.hpp"

namespace hdicore::bindings {

// Trees or an index; if they come from a file, checked as needed.
template <class Value>
using Engine = std::shared_ptr<const Deferred<Value>>;

template <class Value>
Engine<Value> engine_of(Value value) {
    return std::make_shared<const Deferred<Value>>(std::move(value));
}

struct BoundForest {
    Engine<Forest> engine;

    // For what is checked at once, such as sizes.
    const Forest& current() const noexcept { return engine->current(); }
};

// An index that remembers whether y had one dimension: its results then have no axis for outputs.
struct BoundIndex {
    Engine<LeafIndex> engine;
    bool scalar_output;

    const LeafIndex& current() const noexcept { return engine->current(); }
};

struct BoundScorer {
    pybind11::object forest;
    pybind11::object index;
    Engine<Forest> forest_engine;
    BoundIndex bound_index;
};

// A constructor for Python from a function that makes the value. If memory ends while the object is
// registered, py::init would end the process, as it does that behind its own handler.
template <class Bound, class... Arguments>
auto constructor(Bound (*make)(Arguments...)) {
    return [make](pybind11::detail::value_and_holder& self, Arguments... arguments) {
        self.value_ptr() = new Bound(make(std::forward<Arguments>(arguments)...));
        try {
            self.type->init_instance(self.inst, nullptr);
        } catch (...) {
            delete self.value_ptr<Bound>();
            self.value_ptr() = nullptr;
            throw;
        }
    };
}

// What an argument holds. Throws TypeError if it is something else.
template <class Held>
const Held& held(const pybind11::object& object, const char* name) {
    if (!pybind11::isinstance<Held>(object)) {
        throw pybind11::type_error(
            std::string(name) + " must be a " +
            std::string(pybind11::str(pybind11::type::of<Held>().attr("__name__"))) + ", got " +
            std::string(pybind11::str(pybind11::type::of(object).attr("__name__"))));
    }
    return object.cast<const Held&>();
}

// What __reduce__ returns for an object with __getstate__ and __setstate__, for all protocols.
inline pybind11::tuple reduced(const pybind11::object& self) {
    const auto make = pybind11::module_::import("copyreg").attr("__newobj__");
    return pybind11::make_tuple(make, pybind11::make_tuple(pybind11::type::of(self)),
                                self.attr("__getstate__")());
}

void register_forest(pybind11::module_& module);
void register_leaf_index(pybind11::module_& module);
void register_scorer(pybind11::module_& module);
void register_weighted_hdi(pybind11::module_& module);
void register_centred_oob_intervals(pybind11::module_& module);

}  // namespace hdicore::bindings

// An object that __new__ made without __init__ holds nothing. pybind11 would lend it fresh memory;
// these refuse it.
namespace pybind11::detail {

template <class T>
class initialised_caster : public type_caster_base<T> {
  public:
    bool load(handle source, bool convert) {
        const auto* type = get_type_info(typeid(T));
        if (PyObject_TypeCheck(source.ptr(), type->type)) {
            auto* object = reinterpret_cast<instance*>(source.ptr());
            if (!object->get_value_and_holder(type).holder_constructed()) {
                throw type_error(std::string(str(type::handle_of(source).attr("__name__"))) +
                                 ".__init__ was not called");
            }
        }
        return type_caster_base<T>::load(source, convert);
    }
};

template <>
class type_caster<hdicore::bindings::BoundForest>
    : public initialised_caster<hdicore::bindings::BoundForest> {};
template <>
class type_caster<hdicore::bindings::BoundIndex>
    : public initialised_caster<hdicore::bindings::BoundIndex> {};
template <>
class type_caster<hdicore::bindings::BoundScorer>
    : public initialised_caster<hdicore::bindings::BoundScorer> {};

}  // namespace pybind11::detail
