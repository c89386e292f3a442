// kernels/kernels.cpp: asks the processor and the environment which instruction sets to use
// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/kernels.hpp"

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/refusal.hpp"
#include "kernels/x86.hpp"

namespace hdicore {

// Each is defined in the file of its name; null if the processor lacks these instructions.
const Kernels* avx2_kernels() noexcept;
const Kernels* avx512_kernels() noexcept;

std::span<const Kernels* const> available_kernels() {
    static const auto available = [] {
        std::vector<const Kernels*> found{&portable_kernels};
#if defined(HDICORE_X86)
        for (const Kernels* kernels : {avx2_kernels(), avx512_kernels()}) {
            if (kernels != nullptr) found.push_back(kernels);
        }
#endif
        return found;
    }();
    return available;
}

const Kernels& kernels_named(std::string_view name) {
    std::string names;
    for (const Kernels* kernels : available_kernels()) {
        if (name == kernels->name) return *kernels;
        if (!names.empty()) names += kernels == available_kernels().back() ? " or " : ", ";
        names += kernels->name;
    }
    refuse("HDICORE_INSTRUCTIONS must be " + names + " on this processor, got '" +
           std::string(name) + "'");
}

const Kernels& default_kernels() {
    static const Kernels& chosen = []() -> const Kernels& {
        const char* asked = std::getenv("HDICORE_INSTRUCTIONS");
        const bool none = asked == nullptr || *asked == '\0';
        return none ? *available_kernels().back() : kernels_named(asked);
    }();
    return chosen;
}

}  // namespace hdicore
