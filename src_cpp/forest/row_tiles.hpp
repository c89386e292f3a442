// forest/row_tiles.hpp: rows of features -> blocks of keys, made ready for walking
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <variant>
#include <vector>

#include "base/matrix.hpp"
#include "base/types.hpp"

namespace hdicore {

// The key of NaN, above those of all numbers. Walking compares keys: an integer comparison is
// shorter than one of floats.
inline constexpr feature_key missing_key = 0xff800000u;

// The key of a number: order-preserving, as negative floats have all bits turned, others only the
// sign. -0.0 has the key of 0.0.
inline feature_key key_of(float x) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(x + 0.0f);
    return bits ^ (static_cast<std::uint32_t>(static_cast<std::int32_t>(bits) >> 31) | 0x80000000u);
}

// From here on rounding to float32 leads to infinity, and the cast itself would be undefined.
template <class Real>
inline constexpr Real too_large = static_cast<Real>(0x1.ffffffp127);
template <>
inline constexpr float too_large<float> = std::numeric_limits<float>::infinity();

// Rows to route, (n_rows, n_features) float32 or float64.
struct RowMatrix {
    std::variant<Matrix<const float>, Matrix<const double>> features;

    std::size_t n_rows() const noexcept {
        return std::visit([](const auto& matrix) { return matrix.rows(); }, features);
    }
    std::size_t n_features() const noexcept {
        return std::visit([](const auto& matrix) { return matrix.cols(); }, features);
    }
    double operator()(std::size_t i, std::size_t j) const noexcept {
        return std::visit([&](const auto& X) -> double { return X(i, j); }, features);
    }
    // Rows [begin, begin + n).
    RowMatrix slice(std::size_t begin, std::size_t n) const noexcept {
        return std::visit(
            [&]<class Real>(const Matrix<Real>& X) -> RowMatrix {
                return {Matrix<Real>(X.row(begin).data(), n, X.cols())};
            },
            features);
    }
};

// A block of rows made ready for walking: 16 rows to a tile, in which each feature's values are
// neighbours. Memory is kept from block to block.
class RowTiles {
  public:
    static constexpr std::size_t tile_rows = 16;

    // Makes room for n rows, so that taking them allocates nothing.
    void reserve(std::size_t n_features, std::size_t n);

    // Takes rows [begin, end), cast to float32, the precision scikit-learn routes with. NaN is
    // kept; throws std::invalid_argument at a value that is infinite as float32.
    void assign(const RowMatrix& rows, std::size_t begin, std::size_t end);

    // Takes the same rows in another order: row begin + order[p] becomes row p.
    void assign(const RowMatrix& rows, std::size_t begin, std::span<const std::uint32_t> order);

    std::size_t n_rows() const noexcept { return n_rows_; }
    std::size_t n_tiles() const noexcept { return (n_rows_ + tile_rows - 1) / tile_rows; }
    bool has_missing() const noexcept { return has_missing_; }
    // (n_features, tile_rows) keys; rows that fill up the last tile hold anything.
    const feature_key* tile(std::size_t i) const noexcept { return keys_.data() + i * tile_size_; }

  private:
    template <class Real, class RowOf>
    void encode(Matrix<const Real> rows, std::size_t n, const RowOf& row_of);
    template <class RowOf>
    void encode(const RowMatrix& rows, std::size_t n, const RowOf& row_of);

    std::vector<feature_key> keys_;
    std::size_t n_rows_ = 0;
    std::size_t tile_size_ = 0;
    bool has_missing_ = false;
};

}  // namespace hdicore
