// base/matrix.hpp: a matrix of which somebody else owns the memory, with its extents
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

namespace hdicore {

// C-ordered: what a span is for one dimension.
template <class T>
class Matrix {
  public:
    constexpr Matrix() = default;
    constexpr Matrix(T* data, std::size_t rows, std::size_t cols) noexcept
        : data_(data), rows_(rows), cols_(cols) {}
    constexpr operator Matrix<const T>() const noexcept
        requires(!std::is_const_v<T>)
    {
        return {data_, rows_, cols_};
    }

    constexpr T* data() const noexcept { return data_; }
    constexpr std::size_t rows() const noexcept { return rows_; }
    constexpr std::size_t cols() const noexcept { return cols_; }
    constexpr std::size_t size() const noexcept { return rows_ * cols_; }
    constexpr bool empty() const noexcept { return size() == 0; }
    constexpr std::span<T> row(std::size_t i) const noexcept { return {data_ + i * cols_, cols_}; }
    constexpr T& operator()(std::size_t i, std::size_t j) const noexcept {
        return data_[i * cols_ + j];
    }

  private:
    T* data_ = nullptr;
    std::size_t rows_ = 0;
    std::size_t cols_ = 0;
};

}  // namespace hdicore
