// base/lazily_checked.hpp: lazy validation of a mapped forest or index
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/interruption.hpp"
#include "base/refusal.hpp"

namespace hdicore {

// When the content of arrays from outside is checked: all at once, or each piece when it is read.
enum class Checks { now, lazily };

// Returns what make() does. The std::invalid_argument that it throws then begins with `source`,
// which says where the arrays come from, unless that is empty.
template <class Make>
auto name_source(const std::string& source, const Make& make) {
    try {
        return make();
    } catch (const std::invalid_argument& error) {
        if (source.empty()) throw;
        refuse(source + ": " + error.what());
    }
}

// A forest or an index. One that was not checked whole checks what each query reads of it, which
// takes little where few rows are scored; from many rows on it is checked whole, once, and what
// only whole ones have is made. Safe to share between threads.
template <class Value>
class LazilyChecked {
  public:
    explicit LazilyChecked(Value value) : first_(std::move(value)) {
        if (first_.is_validated()) known_.store(&first_, std::memory_order_release);
    }

    // For sizes and offsets, which are always checked; and for queries that are told of by
    // for_rows.
    const Value& current() const noexcept {
        const Value* known = known_.load(std::memory_order_acquire);
        return known == nullptr ? first_ : *known;
    }

    // Checked whole. Throws std::invalid_argument if it is damaged.
    const Value& validated(unsigned n_threads, Interruption& interruption) const {
        if (const Value* known = known_.load(std::memory_order_acquire)) return *known;
        const std::lock_guard lock(mutex_);
        if (const Value* known = known_.load(std::memory_order_acquire)) return *known;
        second_ = std::make_unique<const Value>(first_.validated(n_threads, interruption));
        known_.store(second_.get(), std::memory_order_release);
        return *second_;
    }

    // For a query of so many rows. `max_unchecked_rows` of all queries together are scored before
    // it is checked whole.
    const Value& for_rows(std::size_t n_rows, std::size_t max_unchecked_rows, unsigned n_threads,
                          Interruption& interruption) const {
        if (known_.load(std::memory_order_acquire) == nullptr &&
            n_rows_.fetch_add(n_rows, std::memory_order_relaxed) + n_rows > max_unchecked_rows) {
            return validated(n_threads, interruption);
        }
        return current();
    }

  private:
    Value first_;
    mutable std::mutex mutex_;
    mutable std::unique_ptr<const Value> second_;       // `first_`, checked whole
    mutable std::atomic<const Value*> known_{nullptr};  // checked: first_ or *second_
    mutable std::atomic<std::size_t> n_rows_{0};
};

}  // namespace hdicore
