// test_instructions.cpp: the environment may ask for less
// SPDX-License-Identifier: BSD-3-Clause
#include <stdlib.h>

#include "check.hpp"
#include "kernels/instructions.hpp"

using namespace hdicore;

int main() {
    setenv("HDICORE_INSTRUCTIONS", "portable", 1);
    CHECK(widest_instructions() == Instructions::portable);
    // Read once: a program does not change its instructions on the way.
    unsetenv("HDICORE_INSTRUCTIONS");
    CHECK(widest_instructions() == Instructions::portable);
    return check::finish();
}
