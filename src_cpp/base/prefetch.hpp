// base/prefetch.hpp: memory that is read soon, on its way to the cache
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace hdicore {

inline void prefetch_line([[maybe_unused]] const void* address) noexcept {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#endif
}

}  // namespace hdicore
