// hdicore/scorer.hpp: many rows at once; the only threaded way through the stages
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hdicore/forest.hpp"
#include "hdicore/leaf_index.hpp"
#include "hdicore/leaf_source.hpp"
#include "hdicore/reading.hpp"

namespace hdicore {

// Leaves of all rows, (n_rows, n_trees), by scikit-learn's node ids or by leaf numbers.
void route_all(const Forest& forest, const RowMatrix& rows, bool node_ids, unsigned n_threads,
               leaf_t* out);

// How much of each distribution to gather.
enum class Gathering {
    automatic,  // what is enough and probably pays
    whole,
    tails,    // wherever that is enough
    buckets,  // wherever that is enough and the index has bucket counts
};

// How to run: nothing of it changes a bit of the results.
struct Run {
    unsigned n_threads = 0;      // 0: all this process may use
    std::size_t block_rows = 0;  // 0: as the size of the trees suggests
    Gathering gathering = Gathering::automatic;
    Instructions instructions = widest_instructions();
};

// Reads `wanted` for every row of `source`. If leave_out (n_rows,) is given, it names the training
// row to be left out of the leaves of each row, and the index must have kept its row weights.
// Memory beside the results: O(n_threads * (block_rows * (n_trees + n_features) + n_atoms)), and
// one number for each block.
void score(const LeafIndex& index, const LeafSource& source, const std::uint32_t* leave_out,
           const Wanted& wanted, const Run& run);

// Weights of the atoms of output 0 as a CSR matrix, (n_rows, n_atoms); each row sums to 1.
struct Weights {
    std::vector<std::int64_t> indptr;   // (n_rows + 1,)
    std::vector<std::int32_t> indices;  // (nnz,) ascending within a row
    std::vector<double> data;           // (nnz,)
};
Weights weights(const LeafIndex& index, const LeafSource& source, const Run& run);

// A forest and the training rows in its leaves.
class Scorer {
  public:
    // Throws std::invalid_argument unless both have the same trees.
    Scorer(std::shared_ptr<const Forest> forest, std::shared_ptr<const LeafIndex> index);

    const Forest& forest() const noexcept { return *forest_; }
    const LeafIndex& index() const noexcept { return *index_; }

  private:
    std::shared_ptr<const Forest> forest_;
    std::shared_ptr<const LeafIndex> index_;
};

}  // namespace hdicore
