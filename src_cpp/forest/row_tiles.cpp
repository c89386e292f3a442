// forest/row_tiles.cpp: casts features to float32 and orders them by tile
// SPDX-License-Identifier: BSD-3-Clause
#include "forest/row_tiles.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "base/refusal.hpp"

namespace hdicore {

template <class Real, class RowOf>
void RowTiles::encode(Matrix<const Real> rows, std::size_t n, const RowOf& row_of) {
    const std::size_t n_features = rows.cols();
    bool has_infinite = false;
    bool has_missing = false;
    for (std::size_t p = 0; p < n; ++p) {
        const Real* row = rows.data() + row_of(p) * n_features;
        feature_key* out = keys_.data() + p / tile_rows * tile_size_ + p % tile_rows;
        for (std::size_t f = 0; f < n_features; ++f) {
            const Real x = row[f];  // read once: somebody else may write there
            const bool infinite = std::fabs(x) >= too_large<Real>;
            const bool missing = x != x;
            has_infinite |= infinite;
            has_missing |= missing;
            const feature_key key = key_of(infinite ? 0 : static_cast<float>(x));
            out[f * tile_rows] = missing ? missing_key : key;
        }
    }
    has_missing_ = has_missing;
    if (!has_infinite) return;
    for (std::size_t p = 0; p < n; ++p) {
        for (std::size_t f = 0; f < n_features; ++f) {
            if (!(std::fabs(rows(row_of(p), f)) >= too_large<Real>)) continue;
            refuse("X[" + std::to_string(row_of(p)) + ", " + std::to_string(f) +
                   "] is infinite or too large for float32");
        }
    }
}

template <class RowOf>
void RowTiles::encode(const RowMatrix& rows, std::size_t n, const RowOf& row_of) {
    tile_size_ = rows.n_features() * tile_rows;
    n_rows_ = n;
    keys_.resize(n_tiles() * tile_size_);
    std::visit([&](const auto& matrix) { encode(matrix, n, row_of); }, rows.features);
}

void RowTiles::reserve(std::size_t n_features, std::size_t n) {
    keys_.reserve((n + tile_rows - 1) / tile_rows * tile_rows * n_features);
}

void RowTiles::assign(const RowMatrix& rows, std::size_t begin, std::size_t end) {
    encode(rows, end - begin, [begin](std::size_t p) { return begin + p; });
}

void RowTiles::assign(const RowMatrix& rows, std::size_t begin,
                      std::span<const std::uint32_t> order) {
    encode(rows, order.size(), [begin, order](std::size_t p) { return begin + order[p]; });
}

}  // namespace hdicore
