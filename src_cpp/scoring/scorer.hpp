// scoring/scorer.hpp: many rows at once; the only threaded way through the stages
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "forest/forest.hpp"
#include "index/leaf_index.hpp"
#include "scoring/leaf_source.hpp"
#include "scoring/reading.hpp"

namespace hdicore {

// Leaves of all rows, (n_rows, n_trees), by scikit-learn's node ids or by leaf numbers.
void route_all(const Forest& forest, const RowMatrix& rows, bool node_ids, unsigned n_threads,
               leaf_t* out, Interruption& interruption = Interruption::never());

// How much of each distribution to gather.
enum class Gathering {
    automatic,  // what is enough and probably pays
    whole,
    tails,    // wherever that is enough
    buckets,  // wherever that is enough and the index has bucket counts
};

// How to run: nothing of it changes a bit of the results. An interrupted run leaves some written.
struct Run {
    unsigned n_threads = 0;      // 0: all this process may use
    std::size_t block_rows = 0;  // 0: as the size of the trees suggests
    Gathering gathering = Gathering::automatic;
    Instructions instructions = widest_instructions();
    Interruption& interruption = Interruption::never();
};

// Reads `wanted` for every row of `source`. If leave_out (n_rows,) is given, it names the training
// row to be left out of the leaves of each row, and the index must have kept its row weights.
// Memory beside the results: for each thread 4 * block_rows * (n_trees + n_features) bytes (32 MB,
// or 16 rows, at most by default), 0.3 kB a tree, and 30 bytes for each atom of an output; and one
// number for each block.
void score(const LeafIndex& index, const LeafSource& source, const std::uint32_t* leave_out,
           const Wanted& wanted, const Run& run);

// A CSR matrix, (n_rows, n_atoms), over the atoms of output 0.
template <class T>
struct Sparse {
    std::vector<std::int64_t> indptr;   // (n_rows + 1,)
    std::vector<std::int32_t> indices;  // (nnz,) ascending within a row
    std::vector<T> data;                // (nnz,)
};

// Weights of the atoms: each row sums to 1, or is empty where no tree speaks. leave_out as in
// score.
Sparse<double> weights(const LeafIndex& index, const LeafSource& source,
                       const std::uint32_t* leave_out, const Run& run);

// How often training rows with the target of each atom count in the leaves of a row, summed over
// trees. leave_out as in score.
Sparse<std::int64_t> proximities(const LeafIndex& index, const LeafSource& source,
                                 const std::uint32_t* leave_out, const Run& run);

// How often training rows count in the leaves of each row, summed over trees, (n_rows,).
void count_samples(const LeafIndex& index, const LeafSource& source, const Run& run,
                   std::int64_t* counts);

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
