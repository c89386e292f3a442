// base/types.hpp: glossary of every number and array role in the engine
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/interruption.hpp"

namespace hdicore {

// Sizes of arrays are multiplied as std::size_t, and model files are mapped as they are.
static_assert(sizeof(std::size_t) == 8, "hdicore needs a 64-bit processor");
static_assert(std::endian::native == std::endian::little, "hdicore needs little-endian numbers");

using feature_key = std::uint32_t;  // a float32 feature, as a number that orders as it does
using leaf_t = std::int32_t;        // a leaf of one tree, counted 0 .. n_leaves - 1
using rank_t = std::uint32_t;   // an atom: position of a target among the distinct ones, ascending
using mass_t = std::int64_t;    // weight in units; a tree that contributes has 2^shift of them
using count_t = std::uint64_t;  // weight of training rows before it is shared out, a whole number
using offset_t = std::int64_t;  // start of a half-open range in a flat array

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// In place of a leaf: the tree does not contribute to this row.
inline constexpr leaf_t no_leaf = -1;

// Follows code that returns for every value of an enum.
[[noreturn]] inline void unreachable() noexcept {
    std::abort();
}

// Asks the system to hold memory that is read at random in large pages, where it can: finding a
// page then misses less. Contents stay as they are. The system copies them, in a second for half a
// gigabyte.
void use_large_pages(const void* memory, std::size_t n_bytes, Interruption& interruption);

// Asks for a cache line before it is read.
inline void prefetch_line([[maybe_unused]] const void* address) noexcept {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#endif
}

// A flat, immutable array that either owns its memory or keeps its owner (a mapped file) alive.
template <class T>
class Array {
  public:
    Array() = default;
    explicit Array(std::vector<T> values, Interruption& interruption = Interruption::never()) {
        auto owned = std::make_shared<const std::vector<T>>(std::move(values));
        view_ = {owned->data(), owned->size()};
        use_large_pages(view_.data(), view_.size_bytes(), interruption);
        owner_ = std::move(owned);
    }
    Array(std::span<const T> view, std::shared_ptr<const void> owner)
        : view_(view), owner_(std::move(owner)) {}

    const T* data() const noexcept { return view_.data(); }
    std::size_t size() const noexcept { return view_.size(); }
    std::size_t nbytes() const noexcept { return view_.size_bytes(); }
    const T& operator[](std::size_t i) const noexcept { return view_[i]; }
    std::span<const T> view() const noexcept { return view_; }

  private:
    std::span<const T> view_;
    std::shared_ptr<const void> owner_;
};

}  // namespace hdicore
