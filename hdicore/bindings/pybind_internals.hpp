// pybind_internals.hpp: the two places that rest on what pybind11 does not promise to keep
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <utility>

static_assert(PYBIND11_VERSION_MAJOR == 3,
              "pybind_internals.hpp uses value_and_holder, init_instance and type_caster_base as "
              "pybind11 3 has them: compare them with those of this version before it is allowed");

namespace hdicore::bindings {

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

// An object that __new__ made without __init__ holds nothing. pybind11 would lend it fresh memory;
// this refuses it.
template <class T>
class InitialisedCaster : public pybind11::detail::type_caster_base<T> {
  public:
    bool load(pybind11::handle source, bool convert) {
        const auto* type = pybind11::detail::get_type_info(typeid(T));
        if (PyObject_TypeCheck(source.ptr(), type->type)) {
            auto* object = reinterpret_cast<pybind11::detail::instance*>(source.ptr());
            if (!object->get_value_and_holder(type).holder_constructed()) {
                throw pybind11::type_error(
                    std::string(pybind11::str(pybind11::type::handle_of(source).attr("__name__"))) +
                    ".__init__ was not called");
            }
        }
        return pybind11::detail::type_caster_base<T>::load(source, convert);
    }
};

}  // namespace hdicore::bindings
