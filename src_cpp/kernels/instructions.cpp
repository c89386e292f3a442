// kernels/instructions.cpp: asks the processor, and the environment
// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/instructions.hpp"

#include <cstdlib>
#include <string_view>

namespace hdicore {

Instructions widest_instructions() noexcept {
    static const Instructions widest = [] {
        const char* asked = std::getenv("HDICORE_INSTRUCTIONS");
        if (asked != nullptr && std::string_view(asked) == "portable") {
            return Instructions::portable;
        }
#ifdef HDICORE_AVX512
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512vl")) {
            return Instructions::avx512;
        }
#endif
        return Instructions::portable;
    }();
    return widest;
}

}  // namespace hdicore
