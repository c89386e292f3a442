// index/target_order.cpp: sorts the rows by each output, and those with one target by the others
// SPDX-License-Identifier: BSD-3-Clause
#include "index/target_order.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "base/refusal.hpp"

namespace hdicore {
namespace {

// A stable sort that can be interrupted.
template <class Less>
void sort_rows_by(std::span<std::uint32_t> rows, const Less& less, Interruption& interruption) {
    std::uint32_t n_compared = 0;
    std::ranges::stable_sort(rows, [&](std::uint32_t a, std::uint32_t b) {
        if (++n_compared % 65536 == 0) interruption.check();
        return less(a, b);
    });
}

}  // namespace

TargetOrder::TargetOrder(std::size_t n_rows) {
    order.rows.resize(n_rows);
    order.ranks.reserve(n_rows);
    atoms.reserve(n_rows);
}

void TargetOrder::assign(const TrainingRows& in, std::size_t output, Interruption& interruption) {
    const auto y = [&](std::uint32_t row) { return in.y(row, output); };
    std::iota(order.rows.begin(), order.rows.end(), 0u);
    for (const std::uint32_t row : order.rows) {
        if (!std::isfinite(y(row))) refuse("y[" + std::to_string(row) + "] is not finite");
    }
    sort_rows_by(
        order.rows, [&](std::uint32_t a, std::uint32_t b) { return y(a) < y(b); }, interruption);
    for (const std::uint32_t row : order.rows) {
        // + 0.0 makes one atom of -0.0 and 0.0 whichever comes first.
        if (atoms.empty() || atoms.back() != y(row)) atoms.push_back(y(row) + 0.0);
        order.ranks.push_back(static_cast<rank_t>(atoms.size() - 1));
    }
}

VectorOrder::VectorOrder(std::span<TargetOrder> outputs, Interruption& interruption)
    : order(std::move(outputs[0].order)) {
    const std::size_t n = outputs.size();
    if (n == 1) return;
    std::vector<rank_t> row_ranks(n * order.rows.size());  // those of row i begin at i * n
    for (std::size_t o = 0; o < n; ++o) {
        interruption.check();
        const RowOrder& own = o == 0 ? order : outputs[o].order;
        for (std::size_t p = 0; p < own.rows.size(); ++p) {
            row_ranks[own.rows[p] * n + o] = own.ranks[p];
        }
    }
    sort_rows(row_ranks, n, interruption);
    vector_ranks.reserve(row_ranks.size());
    for (std::size_t p = 0; p < order.rows.size(); ++p) {
        const auto own = std::span(row_ranks).subspan(order.rows[p] * n, n);
        if (p == 0 || !std::ranges::equal(own, std::span(vector_ranks).last(n))) {
            vector_ranks.insert(vector_ranks.end(), own.begin(), own.end());
        }
        order.ranks[p] = static_cast<rank_t>(vector_ranks.size() / n - 1);
    }
}

// They are sorted by the first output.
void VectorOrder::sort_rows(std::span<const rank_t> row_ranks, std::size_t n_outputs,
                            Interruption& interruption) {
    const auto ranks_of = [&](std::uint32_t row) {
        return row_ranks.subspan(row * n_outputs, n_outputs);
    };
    const auto less = [&](std::uint32_t a, std::uint32_t b) {
        return std::ranges::lexicographical_compare(ranks_of(a), ranks_of(b));
    };
    for (std::size_t first = 0, end; first < order.rows.size(); first = end) {
        end = first + 1;
        while (end < order.rows.size() && order.ranks[end] == order.ranks[first]) ++end;
        sort_rows_by(std::span(order.rows).subspan(first, end - first), less, interruption);
    }
}

}  // namespace hdicore
