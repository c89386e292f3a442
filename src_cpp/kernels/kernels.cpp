// kernels/kernels.cpp: asks the processor and the environment which instruction sets to use
// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/kernels.hpp"

#include <array>
#include <cstdlib>
#include <string_view>

namespace hdicore {

// Each is defined in the file of its name, and null if the compiler or the processor lacks these
// instructions.
const Kernels* avx2_kernels() noexcept;
const Kernels* avx512_kernels() noexcept;

std::span<const Kernels* const> available_kernels() noexcept {
    struct Available {
        std::array<const Kernels*, 3> all{};
        std::size_t n = 0;

        Available() {
            for (const Kernels* kernels : {&portable_kernels, avx2_kernels(), avx512_kernels()}) {
                if (kernels != nullptr) all[n++] = kernels;
            }
        }
    };
    static const Available available;
    return std::span(available.all).first(available.n);
}

const Kernels& default_kernels() noexcept {
    static const Kernels& chosen = [&]() -> const Kernels& {
        const char* asked = std::getenv("HDICORE_INSTRUCTIONS");
        for (const Kernels* kernels : available_kernels()) {
            if (asked != nullptr && std::string_view(asked) == kernels->name) return *kernels;
        }
        return *available_kernels().back();
    }();
    return chosen;
}

}  // namespace hdicore
