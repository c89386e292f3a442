// arrays.hpp: the only place where numpy arrays are checked and become spans, and back
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/lazily_checked.hpp"
#include "base/matrix.hpp"
#include "base/types.hpp"
#include "forest/forest.hpp"

namespace hdicore::bindings {

namespace py = pybind11;

using Shape = std::vector<py::ssize_t>;

inline std::string shape_text(std::span<const py::ssize_t> shape) {
    std::string text = "(";
    for (std::size_t i = 0; i < shape.size(); ++i) {
        text += std::to_string(shape[i]) + (i + 1 < shape.size() ? ", "
                                            : shape.size() == 1  ? ","
                                                                 : "");
    }
    return text + ")";
}

inline std::span<const py::ssize_t> shape_of(const py::array& array) {
    return {array.shape(), static_cast<std::size_t>(array.ndim())};
}

// What numpy makes of an object; numpy's own error if it cannot.
inline py::array as_array(py::handle object) {
    return py::array(py::reinterpret_borrow<py::object>(object));
}

// Equal, not identical: unpickling makes new dtype objects.
template <class T>
bool holds(const py::array& array) {
    return array.dtype().equal(py::dtype::of<T>());
}

// Any object as an array of numbers; `kinds` are the numpy dtype kinds that are understood.
inline py::array numbers(py::handle object, const char* name, const std::string& kinds) {
    py::array array = as_array(object);
    if (kinds.find(array.dtype().kind()) == std::string::npos) {
        throw py::value_error(std::string(name) + " must be an array of numbers, got dtype " +
                              std::string(py::str(array.dtype())));
    }
    return array;
}

// C-ordered and aligned, which engines that pass arrays between processes do not promise. Copies
// only if it must.
template <class T>
py::array_t<T> as_c_array(const py::array& array) {
    constexpr int flags =
        py::array::c_style | py::array::forcecast | py::detail::npy_api::NPY_ARRAY_ALIGNED_;
    const py::array_t<T, flags> converted(array);
    return py::reinterpret_borrow<py::array_t<T>>(converted);
}

inline void check_ndim(const py::array& array, const char* name, py::ssize_t ndim) {
    if (array.ndim() != ndim) {
        throw py::value_error(std::string(name) + " must have " + std::to_string(ndim) +
                              " dimensions, got shape " + shape_text(shape_of(array)));
    }
}

inline void check_shape(const py::array& array, const char* name, const Shape& shape) {
    if (shape_text(shape_of(array)) != shape_text(shape)) {
        throw py::value_error(std::string(name) + " must have shape " + shape_text(shape) +
                              ", got " + shape_text(shape_of(array)));
    }
}

// Real numbers as float64.
inline py::array_t<double> reals(py::handle object, const char* name) {
    return as_c_array<double>(numbers(object, name, "biuf"));
}

// Refuses elements of a C-ordered array that are no whole numbers of the range of T.
template <class T, class From>
void check_whole(const py::array_t<From>& array, const char* name) {
    const From* data = array.data();
    for (py::ssize_t i = 0; i < array.size(); ++i) {
        bool whole;
        if constexpr (std::is_floating_point_v<From>) {
            constexpr From low = static_cast<From>(std::numeric_limits<T>::min());
            constexpr From high = 2 * static_cast<From>(std::numeric_limits<T>::max() / 2 + 1);
            whole = data[i] >= low && data[i] < high && data[i] == std::floor(data[i]);
        } else {
            whole = std::in_range<T>(data[i]);
        }
        if (whole) continue;
        throw py::value_error(std::string(name) + " must hold whole numbers in [" +
                              std::to_string(std::numeric_limits<T>::min()) + ", " +
                              std::to_string(std::numeric_limits<T>::max()) + "], got " +
                              std::string(py::str(py::cast(data[i]))));
    }
}

// Whole numbers as T; floats pass if they are whole, as some libraries report leaves so.
template <class T>
py::array_t<T> integers(py::handle object, const char* name) {
    const py::array array = numbers(object, name, "biuf");
    if (holds<T>(array) || array.dtype().kind() == 'b') return as_c_array<T>(array);
    const auto checked = [&](const auto& wide) {
        check_whole<T>(wide, name);
        return as_c_array<T>(wide);
    };
    if (array.dtype().kind() == 'f') return checked(as_c_array<double>(array));
    if (array.dtype().kind() == 'u') return checked(as_c_array<std::uint64_t>(array));
    return checked(as_c_array<std::int64_t>(array));
}

inline py::array_t<bool> truths(py::handle object, const char* name) {
    const py::array array = as_array(object);
    if (array.dtype().kind() != 'b') {
        throw py::value_error(std::string(name) + " must be an array of booleans, got dtype " +
                              std::string(py::str(array.dtype())));
    }
    return as_c_array<bool>(array);
}

template <class T>
std::span<const T> span_of(const py::array_t<T>& array) {
    return {array.data(), static_cast<std::size_t>(array.size())};
}

template <class T>
std::span<T> mutable_span_of(py::array_t<T>& array) {
    return {array.mutable_data(), static_cast<std::size_t>(array.size())};
}

template <class T>
Matrix<const T> matrix_of(const py::array_t<T>& array) {
    return {array.data(), static_cast<std::size_t>(array.shape(0)),
            static_cast<std::size_t>(array.shape(1))};
}

// An array to fill as a matrix of so many columns.
template <class T>
Matrix<T> flat_matrix(py::array_t<T>& array, std::size_t cols) {
    const auto size = static_cast<std::size_t>(array.size());
    return {array.mutable_data(), cols == 0 ? 0 : size / cols, cols};
}

// Rows to route: float32 and float64 as they are, other numbers as float64. `keep` owns the memory.
inline RowMatrix row_matrix(py::handle object, py::array& keep) {
    keep = numbers(object, "X", "biuf");
    check_ndim(keep, "X", 2);
    if (holds<float>(keep)) {
        const auto rows = as_c_array<float>(keep);
        keep = rows;
        return {matrix_of(rows)};
    }
    const auto rows = as_c_array<double>(keep);
    keep = rows;
    return {matrix_of(rows)};
}

// An array to fill: the caller's, if it fits exactly, or a new one.
template <class T>
py::array_t<T> output_array(const py::object& out, const Shape& shape, const char* name = "out") {
    if (out.is_none()) return py::array_t<T>(shape);
    if (!py::isinstance<py::array_t<T, py::array::c_style>>(out)) {
        throw py::value_error(std::string(name) + " must be a C-ordered numpy array of dtype " +
                              std::string(py::str(py::dtype::of<T>())));
    }
    auto array = py::reinterpret_borrow<py::array_t<T>>(out);
    check_shape(array, name, shape);
    constexpr int usable =
        py::detail::npy_api::NPY_ARRAY_ALIGNED_ | py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
    if ((array.flags() & usable) != usable) {
        throw py::value_error(std::string(name) + " must be aligned and writeable");
    }
    return array;
}

// One level or a list of them: coverages, or levels of quantiles.
struct Levels {
    std::vector<double> values;
    bool is_scalar;
};

inline Levels levels_of(py::handle object, const char* name, bool zero_allowed) {
    const py::array array = as_array(object);
    const bool are_numbers = std::string("iuf").find(array.dtype().kind()) != std::string::npos;
    if (!are_numbers || array.ndim() > 1 || array.size() == 0) {
        throw py::value_error(std::string(name) + " must be a number or a list of numbers, got " +
                              std::string(py::repr(object)));
    }
    const auto values = as_c_array<double>(array);
    Levels levels{{values.data(), values.data() + values.size()}, array.ndim() == 0};
    for (const double x : levels.values) {
        if (x <= 1 && (x > 0 || (zero_allowed && x == 0))) continue;
        const py::str range = zero_allowed ? "from 0 to 1" : "above 0 and at most 1";
        const bool is_percentage = x >= 2 && x <= 100;
        const py::str hint =
            is_percentage ? py::str(" (did you mean {:g}?)").format(x / 100) : py::str("");
        throw py::value_error(py::str("{} must be {}, got {:g}{}").format(name, range, x, hint));
    }
    return levels;
}

// One price or a list of them: widths that the whole distribution is worth.
inline Levels prices_of(py::handle object, const char* name) {
    const py::array array = as_array(object);
    const bool are_numbers = std::string("iuf").find(array.dtype().kind()) != std::string::npos;
    if (!are_numbers || array.ndim() > 1 || array.size() == 0) {
        throw py::value_error(std::string(name) + " must be a number or a list of numbers, got " +
                              std::string(py::repr(object)));
    }
    const auto values = as_c_array<double>(array);
    Levels prices{{values.data(), values.data() + values.size()}, array.ndim() == 0};
    for (const double x : prices.values) {
        if (x > 0 && std::isfinite(x)) continue;
        throw py::value_error(py::str("{} must be above 0 and finite, got {:g}").format(name, x));
    }
    return prices;
}

// One finite number.
inline double number_of(py::handle object, const char* name) {
    const py::array array = as_array(object);
    const bool is_number = std::string("iuf").find(array.dtype().kind()) != std::string::npos;
    if (!is_number || array.ndim() > 0) {
        throw py::value_error(std::string(name) + " must be a number, got " +
                              std::string(py::repr(object)));
    }
    const double x = *as_c_array<double>(array).data();
    if (!std::isfinite(x)) {
        throw py::value_error(py::str("{} must be finite, got {:g}").format(name, x));
    }
    return x;
}

// Asks Python for signals while the engine works without its lock; handlers run on the main thread
// alone, so only that is worth asking.
inline std::function<void()> pending_signals() {
    return [on_main_thread = std::optional<bool>()]() mutable {
        if (on_main_thread == false) return;
        const py::gil_scoped_acquire gil;
        if (!on_main_thread) {
            const auto threading = py::module_::import("threading");
            on_main_thread = threading.attr("current_thread")().is(threading.attr("main_thread")());
        }
        if (*on_main_thread && PyErr_CheckSignals() != 0) throw py::error_already_set();
    };
}

// A whole number in [min, max].
inline std::int64_t whole_number(const py::object& object, const char* name, std::int64_t min,
                                 std::int64_t max) {
    const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()));
    int overflow = 0;
    const std::int64_t value =
        index ? PyLong_AsLongLongAndOverflow(index.ptr(), &overflow) : min - 1;
    PyErr_Clear();
    if (!index || overflow != 0 || value < min || value > max) {
        throw py::value_error(std::string(name) + " must be a whole number in [" +
                              std::to_string(min) + ", " + std::to_string(max) + "], got " +
                              std::string(py::repr(object)));
    }
    return value;
}

// 0 means all that this process may use.
inline unsigned thread_count(const py::object& n_threads) {
    return static_cast<unsigned>(whole_number(n_threads, "n_threads", 0, 1 << 16));
}

// The meaning of one of several words.
template <class Meaning>
Meaning one_of(const py::object& object, const char* name,
               const std::vector<std::pair<const char*, Meaning>>& words) {
    std::string known;
    const std::size_t n = words.size();
    for (std::size_t i = 0; i < n; ++i) {
        if (py::isinstance<py::str>(object) && object.cast<std::string>() == words[i].first) {
            return words[i].second;
        }
        known += (i == 0 ? "'" : i + 1 < n ? ", '" : " or '") + std::string(words[i].first) + "'";
    }
    throw py::value_error(std::string(name) + " must be " + known + ", got " +
                          std::string(py::repr(object)));
}

// Refuses two arrays, C-ordered both, that share memory: one is filled while the other is read.
inline void check_disjoint(const py::array& filled, const char* filled_name, const py::array& read,
                           const char* read_name) {
    const auto begins = [](const py::array& array) {
        return reinterpret_cast<std::uintptr_t>(array.data());
    };
    const auto ends = [&](const py::array& array) {
        return begins(array) + static_cast<std::uintptr_t>(array.nbytes());
    };
    if (begins(filled) >= ends(read) || begins(read) >= ends(filled)) return;
    throw py::value_error(std::string(filled_name) + " must not share memory with " + read_name);
}

// A numpy array as an immutable array of the engine: a copy, or the same memory kept alive (if the
// array is C-ordered and aligned), which nobody may write to from then on.
template <class T, class Element = T>
Array<Element> adopt(const py::array& array, const char* name, bool copy, py::ssize_t ndim = 1) {
    check_ndim(array, name, ndim);
    if (!holds<T>(array)) {
        throw py::value_error(std::string(name) + " must have dtype " +
                              std::string(py::str(py::dtype::of<T>())) + ", got " +
                              std::string(py::str(array.dtype())));
    }
    const auto held = as_c_array<T>(array);
    const auto* data = reinterpret_cast<const Element*>(held.data());
    const std::size_t size = static_cast<std::size_t>(held.size()) * sizeof(T) / sizeof(Element);
    if (copy) return Array<Element>(std::vector<Element>(data, data + size));
    const auto release = [](const void* object) {
        const py::gil_scoped_acquire gil;
        delete static_cast<const py::array_t<T>*>(object);
    };
    return {{data, size}, std::shared_ptr<const void>(new py::array_t<T>(held), release)};
}

// A read-only numpy view of memory that `owner` keeps alive.
template <class T>
py::array_t<T> view_of(const T* data, const Shape& shape, const py::handle& owner) {
    py::array_t<T> view(shape, data, owner);
    py::detail::array_proxy(view.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
    return view;
}

template <class T>
py::array_t<T> view_of(const Array<T>& array, const py::handle& owner) {
    return view_of(array.data(), {static_cast<py::ssize_t>(array.size())}, owner);
}

// The text that errors begin with; empty for None.
inline std::string source_text(const py::object& object) {
    if (object.is_none()) return {};
    if (!py::isinstance<py::str>(object)) {
        throw py::type_error("source must be a text or None, got " + std::string(py::repr(object)));
    }
    return object.cast<std::string>();
}

inline Checks checks_of(bool lazy) {
    return lazy ? Checks::lazily : Checks::now;
}

// The entry of a dict of arrays, as arrays() hands them out.
inline py::array entry(const py::dict& arrays, const char* name) {
    if (!arrays.contains(name)) {
        throw py::value_error("arrays must contain '" + std::string(name) + "'");
    }
    return numbers(arrays[name], name, "iuf");
}

// Throws if there are other entries.
inline void check_entries(const py::dict& arrays, std::initializer_list<const char*> names) {
    for (const auto& [key, array] : arrays) {
        const auto is_key = [key = key](const char* name) { return key.equal(py::str(name)); };
        if (std::any_of(names.begin(), names.end(), is_key)) continue;
        throw py::value_error("arrays must hold what arrays() returned, got " +
                              std::string(py::repr(key)));
    }
}

}  // namespace hdicore::bindings
