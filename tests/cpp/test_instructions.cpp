// test_instructions.cpp: the choice does not change while the program runs
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <string_view>

#include "check.hpp"
#include "hdicore/instructions.hpp"

using namespace hdicore;

int main() {
    const char* asked = std::getenv("HDICORE_INSTRUCTIONS");
    const Instructions widest = widest_instructions();
    if (asked != nullptr && std::string_view(asked) == "portable") {
        CHECK(widest == Instructions::portable);
    }
    CHECK(widest_instructions() == widest);
    return check::finish();
}
