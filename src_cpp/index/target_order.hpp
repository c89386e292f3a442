// index/target_order.hpp: the training rows in ascending order of what they have as targets
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interruption.hpp"
#include "base/types.hpp"
#include "index/training_rows.hpp"

namespace hdicore {

// Rows in an order, and the number of what each has, which rises by 0 or 1.
struct RowOrder {
    std::vector<std::uint32_t> rows;  // (n_rows,)
    std::vector<rank_t> ranks;        // (n_rows,) of rows[p]

    std::size_t n_distinct() const noexcept { return std::size_t{ranks.back()} + 1; }
};

// The rows by their target in one output, whose rank is that of an atom.
struct TargetOrder {
    RowOrder order;
    std::vector<double> atoms;  // (n_atoms,)

    // Makes room, so that sorting on another thread allocates nothing but a copy of the rows.
    explicit TargetOrder(std::size_t n_rows);
    // O(n_rows log n_rows). Throws std::invalid_argument at a target that is not finite.
    void assign(const TrainingRows& rows, std::size_t output, Interruption& interruption);
};

// The rows by their target vector.
struct VectorOrder {
    RowOrder order;
    // (n_vectors * n_outputs,) as LeafIndexArrays has them
    std::vector<rank_t> vector_ranks;

    // Of the orders of all outputs, which are used up. O(n_outputs * n_rows log n_rows).
    VectorOrder(std::span<TargetOrder> outputs, Interruption& interruption);

  private:
    void sort_rows(std::span<const rank_t> row_ranks, std::size_t n_outputs,
                   Interruption& interruption);
};

}  // namespace hdicore
