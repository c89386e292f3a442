// kernels/kernels.cpp: asks the processor and the environment which instruction sets to use
// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/kernels.hpp"

#include <array>
#include <cstdlib>
#include <string_view>

namespace hdicore {

std::span<const Kernels* const> available_kernels() noexcept {
#ifdef HDICORE_AVX512
    static const std::array<const Kernels*, 2> all{&portable_kernels, &avx512_kernels};
    static const std::size_t n = has_avx512() ? 2 : 1;
    return std::span(all).first(n);
#else
    static const std::array<const Kernels*, 1> all{&portable_kernels};
    return all;
#endif
}

const Kernels& default_kernels() noexcept {
    static const Kernels& chosen = [&]() -> const Kernels& {
        const char* asked = std::getenv("HDICORE_INSTRUCTIONS");
        const bool portable = asked != nullptr && std::string_view(asked) == "portable";
        return portable ? portable_kernels : *available_kernels().back();
    }();
    return chosen;
}

}  // namespace hdicore
