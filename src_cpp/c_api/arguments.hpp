// c_api/arguments.hpp: checks of what comes from C, and exceptions as a status and a message
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <span>
#include <stdexcept>
#include <string>

#include "base/matrix.hpp"
#include "base/refusal.hpp"
#include "hdicore/c_api.h"
#include "pmf/interval.hpp"

namespace hdicore::arguments {

inline int explain(int status, const char* message, hdicore_error* error) noexcept {
    if (error != nullptr) {
        const std::size_t room = sizeof(error->message) - 1;
        const std::size_t n = std::min(std::char_traits<char>::length(message), room);
        std::copy_n(message, n, error->message);
        error->message[n] = '\0';
    }
    return status;
}

template <class Work>
int guarded(hdicore_error* error, const Work& work) noexcept {
    try {
        work();
        return hdicore_ok;
    } catch (const std::invalid_argument& failure) {
        return explain(hdicore_invalid, failure.what(), error);
    } catch (const std::bad_alloc&) {
        return explain(hdicore_no_memory, "there is not enough memory", error);
    } catch (const std::exception& failure) {
        return explain(hdicore_failed, failure.what(), error);
    } catch (...) {
        return explain(hdicore_failed, "something was thrown", error);
    }
}

inline std::size_t size(std::int64_t n, const char* name) {
    if (n < 0) refuse(std::string(name) + " must not be negative, got " + std::to_string(n));
    // More than any memory holds; a product of two such numbers is still seen to be too large.
    constexpr std::int64_t max_size = std::int64_t{1} << 40;
    if (n > max_size)
        refuse(std::string(name) + " must be at most 2**40, got " + std::to_string(n));
    return static_cast<std::size_t>(n);
}

// a * b elements of an array, which memory could hold.
inline std::size_t product(std::size_t a, std::size_t b, const char* name) {
    constexpr std::size_t max_size = std::size_t{1} << 48;
    if (b > 0 && a > max_size / b)
        refuse(std::string(name) + " would have more than 2**48 elements");
    return a * b;
}

// n elements that may only be missing if there are none.
template <class T>
std::span<T> elements(T* data, std::size_t n, const char* name) {
    if (data == nullptr && n > 0) refuse(std::string(name) + " must not be null");
    return {data, n};
}

// The same as a matrix.
template <class T>
Matrix<T> matrix(T* data, std::size_t rows, std::size_t cols, const char* name) {
    return {elements(data, product(rows, cols, name), name).data(), rows, cols};
}

inline std::span<const double> checked_levels(const double* data, std::int64_t n, const char* name,
                                              bool zero_allowed) {
    const auto found = elements(data, size(n, "n_levels"), name);
    for (const double x : found) {
        if (x <= 1 && (x > 0 || (zero_allowed && x == 0))) continue;
        refuse(std::string(name) + " must lie in " + (zero_allowed ? "[0, 1]" : "(0, 1]") +
               ", got " + std::to_string(x));
    }
    return found;
}

inline unsigned thread_count(int n_threads) {
    return static_cast<unsigned>(size(n_threads, "n_threads"));
}

template <class Enum>
Enum one_of(int number, int last, const char* name) {
    if (number < 0 || number > last) {
        refuse(std::string(name) + " must be one of the numbers 0 to " + std::to_string(last) +
               ", got " + std::to_string(number));
    }
    return static_cast<Enum>(number);
}

inline Kind kind_of(int number) {
    std::string known;
    for (const KindOfInterval& each : kinds()) {
        if (static_cast<int>(each.kind) == number) return each.kind;
        known += (known.empty() ? "" : ", ") + std::to_string(static_cast<int>(each.kind));
    }
    refuse("kind must be one of the numbers " + known + ", got " + std::to_string(number));
}

}  // namespace hdicore::arguments
