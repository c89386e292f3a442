// scoring/row_weights.hpp: the weights and counts of training rows, as a sparse matrix
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "index/leaf_index.hpp"
#include "scoring/leaf_source.hpp"
#include "scoring/row_blocks.hpp"

namespace hdicore {

// A CSR matrix, (n_rows, n_atoms), over the atoms of output 0.
template <class T>
struct CsrMatrix {
    std::vector<std::int64_t> indptr;   // (n_rows + 1,)
    std::vector<std::int32_t> indices;  // (nnz,) ascending within a row
    std::vector<T> data;                // (nnz,)
};

// Weights of the atoms: each row sums to 1, or is empty where no tree contributes. leave_out as in
// score, which throws at the same input.
CsrMatrix<double> atom_weights(const LeafIndex& index, const LeafSource& source,
                               std::span<const std::uint32_t> leave_out,
                               const Execution& execution);

// How often training rows with the target of each atom count in the leaves of a row, summed over
// trees. leave_out as in score.
CsrMatrix<std::int64_t> proximities(const LeafIndex& index, const LeafSource& source,
                                    std::span<const std::uint32_t> leave_out,
                                    const Execution& execution);

// How often training rows count in the leaves of each row, summed over trees, (n_rows,).
void count_samples(const LeafIndex& index, const LeafSource& source, const Execution& execution,
                   std::span<std::int64_t> counts);

}  // namespace hdicore
