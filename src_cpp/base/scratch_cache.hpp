// base/scratch_cache.hpp: scratch memory that outlives a call, so that short calls need not make it
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace hdicore {

// Keeps one piece of memory between calls. A call that finds none, as another one has it, makes its
// own. Safe to share between threads.
class ScratchCache {
  public:
    // The memory, or null.
    std::shared_ptr<void> take() noexcept {
        const std::lock_guard lock(mutex_);
        return std::exchange(memory_, nullptr);
    }
    // Keeps this memory in place of what is there.
    void put(std::shared_ptr<void> memory) noexcept {
        const std::lock_guard lock(mutex_);
        memory_.swap(memory);
    }

  private:
    std::mutex mutex_;
    std::shared_ptr<void> memory_;
};

}  // namespace hdicore
