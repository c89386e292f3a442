// base/deferred.hpp: what a file holds, checked piece by piece until it pays to check it whole
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

#include "base/interruption.hpp"

namespace hdicore {

// A forest or an index. One that was not checked whole checks what each query reads of it, which
// takes little where few rows are scored; from many rows on it is checked whole, once, and what
// only whole ones have is made. Safe to share between threads.
template <class Value>
class Deferred {
  public:
    explicit Deferred(Value value) : first_(std::move(value)) {
        if (first_.is_checked()) known_.store(&first_, std::memory_order_release);
    }

    // For sizes and offsets, which are always checked; and for queries that are told of by of_rows.
    const Value& current() const noexcept {
        const Value* known = known_.load(std::memory_order_acquire);
        return known == nullptr ? first_ : *known;
    }

    // Checked whole. Throws std::invalid_argument if it is damaged.
    const Value& whole(unsigned n_threads, Interruption& interruption) const {
        if (const Value* known = known_.load(std::memory_order_acquire)) return *known;
        const std::lock_guard lock(mutex_);
        if (const Value* known = known_.load(std::memory_order_acquire)) return *known;
        whole_ = std::make_unique<const Value>(first_.checked(n_threads, interruption));
        known_.store(whole_.get(), std::memory_order_release);
        return *whole_;
    }

    // For a query of so many rows. `max_unchecked_rows` of all queries together are scored before
    // it is checked whole.
    const Value& of_rows(std::size_t n_rows, std::size_t max_unchecked_rows, unsigned n_threads,
                         Interruption& interruption) const {
        if (known_.load(std::memory_order_acquire) == nullptr &&
            n_rows_.fetch_add(n_rows, std::memory_order_relaxed) + n_rows > max_unchecked_rows) {
            return whole(n_threads, interruption);
        }
        return current();
    }

  private:
    Value first_;
    mutable std::mutex mutex_;
    mutable std::unique_ptr<const Value> whole_;
    mutable std::atomic<const Value*> known_{nullptr};  // checked: first_ or *whole_
    mutable std::atomic<std::size_t> n_rows_{0};
};

}  // namespace hdicore
