// base/interruption.hpp: lets the caller of long work stop it
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace hdicore {

// Ends the work of other threads after the calling thread was told to stop.
class Interrupted : public std::exception {
  public:
    const char* what() const noexcept override { return "interrupted"; }
};

// One for each call. The threads of the call check it between small pieces of work.
class Interruption {
  public:
    static constexpr std::chrono::milliseconds interval{100};

    // Never interrupts.
    Interruption() = default;
    // `ask` throws if work is to stop. It is called on the thread that makes this object, at most
    // once an interval, first after one interval.
    explicit Interruption(std::function<void()> ask)
        : ask_(std::move(ask)),
          caller_(std::this_thread::get_id()),
          next_(Clock::now() + interval) {}

    // Throws what `ask` throws, and from then on Interrupted on every thread. Reads a clock on the
    // calling thread and a flag on the others.
    void check() {
        if (stopped_.load(std::memory_order_relaxed)) throw Interrupted();
        if (std::this_thread::get_id() == caller_ && Clock::now() >= next_) ask();
    }

    // Shared by all calls that nothing interrupts.
    static Interruption& never() noexcept {
        static Interruption none;
        return none;
    }

  private:
    using Clock = std::chrono::steady_clock;

    void ask() {
        try {
            ask_();
        } catch (...) {
            stopped_.store(true, std::memory_order_relaxed);
            throw;
        }
        next_ = Clock::now() + interval;
    }

    std::function<void()> ask_;
    std::thread::id caller_;  // none: no thread
    Clock::time_point next_;
    std::atomic<bool> stopped_{false};
};

// Calls use(begin, end) for pieces of [0, n), and checks before each.
template <class Use>
void in_pieces(std::size_t n, Interruption& interruption, const Use& use) {
    constexpr std::size_t piece = std::size_t{1} << 16;
    for (std::size_t begin = 0; begin < n; begin += piece) {
        interruption.check();
        use(begin, std::min(n, begin + piece));
    }
}

// Makes a vector `size` elements long, of which it has no more: memory is slow when first written.
template <class T>
void grow_in_pieces(std::vector<T>& values, std::size_t size, Interruption& interruption) {
    const std::size_t before = values.size();
    values.reserve(size);
    in_pieces(size - before, interruption,
              [&](std::size_t, std::size_t end) { values.resize(before + end); });
}

}  // namespace hdicore
