// base/types.cpp: large pages on Linux
// SPDX-License-Identifier: BSD-3-Clause
#include "base/types.hpp"

#include <algorithm>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace hdicore {

void use_large_pages([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t n_bytes,
                     [[maybe_unused]] Interruption& interruption) {
#if defined(__linux__)
    constexpr std::uintptr_t page = std::uintptr_t{1} << 21;
    constexpr int collapse = 25;  // MADV_COLLAPSE of Linux 6.1, which older headers lack
    const auto first = (reinterpret_cast<std::uintptr_t>(memory) + page - 1) / page * page;
    const auto last = (reinterpret_cast<std::uintptr_t>(memory) + n_bytes) / page * page;
    // Below a few pages the search for one costs more than it saves. A refusal changes nothing.
    if (last < first + 2 * page) return;
    for (std::uintptr_t at = first; at < last; at += 4 * page) {
        interruption.check();
        madvise(reinterpret_cast<void*>(at), std::min(4 * page, last - at), collapse);
    }
#endif
}

}  // namespace hdicore
