// base/refusal.hpp: how input that cannot be used is refused
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>

namespace hdicore {

// `why` is the whole sentence that a user reads.
[[noreturn]] inline void refuse(const std::string& why) {
    throw std::invalid_argument(why);
}

// A number as a sentence has it.
inline std::string text(double x) {
    char digits[32];
    std::snprintf(digits, sizeof(digits), "%g", x);
    return digits;
}

}  // namespace hdicore
