// check.hpp: the few checks that the tests of the engine need
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>

namespace check {

inline int failures = 0;

inline void fail(const char* file, int line, const std::string& what) {
    std::printf("%s:%d: %s\n", file, line, what.c_str());
    ++failures;
}

// Runs `call`, which must throw std::invalid_argument with `text` in its message.
template <class Call>
void refused(const char* file, int line, const std::string& text, Call call) {
    try {
        call();
    } catch (const std::invalid_argument& error) {
        const std::string message = error.what();
        if (message.find(text) == std::string::npos) {
            fail(file, line, "\"" + message + "\" does not say \"" + text + "\"");
        }
        return;
    }
    fail(file, line, "not refused, though it should say \"" + text + "\"");
}

// True if `call` returns, false if it throws std::invalid_argument.
template <class Call>
bool accepted(Call call) {
    try {
        call();
    } catch (const std::invalid_argument&) {
        return false;
    }
    return true;
}

// The exit status of a test program.
inline int finish() {
    if (failures > 0) std::printf("%d checks failed\n", failures);
    return failures > 0;
}

}  // namespace check

#define CHECK(condition) \
    if (!(condition)) check::fail(__FILE__, __LINE__, "not true: " #condition)
#define CHECK_REFUSED(expression, text) \
    check::refused(__FILE__, __LINE__, text, [&] { (void)(expression); })
