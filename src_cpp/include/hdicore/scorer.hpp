// hdicore/scorer.hpp: many rows at once; the only threaded way through the stages
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hdicore/forest.hpp"
#include "hdicore/leaf_index.hpp"
#include "hdicore/quantile.hpp"

namespace hdicore {

// Space for the leaves of so many rows in one tree: full tiles.
constexpr std::size_t stride_of(std::size_t n_rows) noexcept {
    return (n_rows + RowTiles::tile_rows - 1) / RowTiles::tile_rows * RowTiles::tile_rows;
}

// A block of rows and their leaves; memory is kept from block to block. Rows stand in the order of
// their leaves in the first tree, as neighbours there share most of their way and many leaves
// elsewhere, which are then in cache.
struct RowBlock {
    std::vector<std::uint32_t> order;  // (n_rows,) row begin + order[p] stands at place p
    // (n_trees, stride_of(n_rows)): those of a tree stand together; places that fill up the stride
    // have any leaf.
    std::vector<leaf_t> leaves;
    RowTiles tiles;
    std::vector<std::uint32_t> counts;  // for sorting
};

// Where the leaves of the rows to score come from.
class LeafSource {
  public:
    virtual ~LeafSource() = default;
    virtual std::size_t n_rows() const noexcept = 0;
    // Rows that are best taken at once.
    virtual std::size_t block_rows() const noexcept = 0;
    // The leaves of rows [begin, end) to `block`. Throws std::invalid_argument at rows that cannot
    // be used. Called from many threads.
    virtual void leaves(std::size_t begin, std::size_t end, RowBlock& block) const = 0;
};

// Rows walk down a forest.
class RoutedRows final : public LeafSource {
  public:
    RoutedRows(const Forest& forest, const RowMatrix& rows);
    std::size_t n_rows() const noexcept override { return rows_.n_rows; }
    std::size_t block_rows() const noexcept override;
    void leaves(std::size_t begin, std::size_t end, RowBlock& block) const override;

  private:
    const Forest& forest_;
    RowMatrix rows_;
};

// Leaves that somebody else found; no_leaf where a tree is to stay silent.
class GivenLeaves final : public LeafSource {
  public:
    // leaves is (n_rows, n_trees).
    GivenLeaves(const LeafIndex& index, const leaf_t* leaves, std::size_t n_rows)
        : index_(index), leaves_(leaves), n_rows_(n_rows) {}
    std::size_t n_rows() const noexcept override { return n_rows_; }
    std::size_t block_rows() const noexcept override { return 1024; }
    void leaves(std::size_t begin, std::size_t end, RowBlock& block) const override;

  private:
    const LeafIndex& index_;
    const leaf_t* leaves_;
    std::size_t n_rows_;
};

// Leaves of all rows, (n_rows, n_trees), by scikit-learn's node ids or by leaf numbers.
void route_all(const Forest& forest, const RowMatrix& rows, bool node_ids, unsigned n_threads,
               leaf_t* out);

// What to read from the conditional distribution of each row; what is left empty is not read. All
// is read from one gathering. Where no tree speaks for a row, its results are NaN.
struct Wanted {
    double* mean = nullptr;  // (n_rows, n_outputs)

    std::span<const double> coverages{};  // (n_levels,) in (0, 1]
    Kind kind = Kind::hdi;
    double* intervals = nullptr;  // (n_rows, n_outputs, 2, n_levels)

    std::span<const double> levels{};  // (n_levels,) in [0, 1]
    Interpolation interpolation = Interpolation::inverted_cdf;
    double* quantiles = nullptr;  // (n_rows, n_outputs, n_levels)

    std::size_t n_points = 0;
    const double* points = nullptr;  // (n_rows, n_outputs, n_points)
    double* cdf = nullptr;           // (n_rows, n_outputs, n_points)

    std::size_t n_draws = 0;
    double* draws = nullptr;  // (n_rows, n_outputs, n_draws) uniforms in [0, 1), replaced by draws
};

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
