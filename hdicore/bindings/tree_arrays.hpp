// tree_arrays.hpp: the arrays of a tree, which has them by name
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include "arrays.hpp"
#include "forest/forest.hpp"

namespace hdicore::bindings {

// One of the arrays of a tree, which has them by name, as a dict does.
inline py::object tree_array(const py::handle& tree, const char* name) {
    try {
        return tree[name];
    } catch (const py::error_already_set& error) {
        if (!error.matches(PyExc_LookupError) && !error.matches(PyExc_TypeError)) throw;
        throw py::value_error("a tree must have its arrays by name, such as '" + std::string(name) +
                              "', got " + std::string(py::repr(tree)));
    }
}

// A column of a tree's nodes: where it is if numpy has it as T, and otherwise copied.
template <class T>
Column<T> column_of(const py::handle& object, const char* name, std::vector<py::array>& keep) {
    py::array array = as_array(object);
    if (!holds<T>(array)) {
        if constexpr (std::is_same_v<T, double>) {
            array = reals(object, name);
        } else {
            array = integers<T>(object, name);
        }
    }
    check_ndim(array, name, 1);
    keep.push_back(array);
    return {static_cast<const std::byte*>(array.data()), array.strides(0)};
}

}  // namespace hdicore::bindings
