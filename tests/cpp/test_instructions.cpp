// test_instructions.cpp: the environment may ask for less
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <string_view>

#include "check.hpp"
#include "hdicore/instructions.hpp"

using namespace hdicore;

int main() {
    const char* asked = std::getenv("HDICORE_INSTRUCTIONS");
    if (asked != nullptr && std::string_view(asked) == "portable") {
        CHECK(widest_instructions() == Instructions::portable);
    } else {
#if defined(__AVX512VL__) && defined(__AVX512BW__)
        CHECK(widest_instructions() == Instructions::avx512);
#endif
    }
    return check::finish();
}
