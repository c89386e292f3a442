// base/spare.hpp: scratch memory that outlives a call, so that calls for few rows need not make it
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace hdicore {

// Keeps one piece of memory between calls. A call that finds none, as another one has it, makes its
// own. Safe to share between threads.
class Spare {
  public:
    // What is kept, or null.
    std::shared_ptr<void> take() noexcept {
        const std::lock_guard lock(mutex_);
        return std::exchange(kept_, nullptr);
    }
    // Keeps the memory, in place of what is kept.
    void put(std::shared_ptr<void> memory) noexcept {
        const std::lock_guard lock(mutex_);
        kept_.swap(memory);
    }

  private:
    std::mutex mutex_;
    std::shared_ptr<void> kept_;
};

}  // namespace hdicore
