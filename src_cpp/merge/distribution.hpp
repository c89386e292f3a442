// merge/distribution.hpp: weighted ranks of many leaves -> one conditional distribution
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "index/leaf_index.hpp"
#include "merge/rank_set.hpp"
#include "merge/tails.hpp"
#include "pmf/buckets.hpp"

namespace hdicore {

// A discrete distribution: atoms with positive mass, ascending, no two equal.
struct Atoms {
    std::span<const double> values;      // (n_atoms,)
    std::span<const mass_t> cumulative;  // (n_atoms + 1,) cumulative[k] is the mass of the first k
    std::size_t n_trees;                 // trees that speak; each hands out 2^shift units
    int shift;
    bool has_gap = false;       // runs of atoms are lumped together, in one atom of value NaN each
    double largest_if_gap = 0;  // what largest() cannot see then
    double observation = 0;     // mass of one observation, if it was found

    std::size_t size() const noexcept { return values.size(); }
    mass_t total() const noexcept { return cumulative.back(); }
    // Largest absolute value of an atom, the lumped ones too.
    double largest() const noexcept {
        return has_gap ? largest_if_gap
                       : std::max(std::fabs(values.front()), std::fabs(values.back()));
    }

    // As needed_units; of masses that were pooled, of which trees have less than 2^shift, likewise.
    mass_t needed(double level) const noexcept {
        const mass_t whole = static_cast<mass_t>(n_trees) << shift;
        return total() == whole ? needed_units(level, n_trees, shift) : needed_of_pool(level);
    }
    mass_t needed_of_pool(double level) const noexcept;

    // Mean, O(n_atoms). Its error is below 2^-shift times the range of the values.
    double mean() const noexcept;

    // P(Y <= y), or P(Y < y), O(log n_atoms).
    double cdf(double y, bool inclusive = true) const noexcept;

    // Smallest atom whose cumulative mass exceeds the share u in [0, 1), O(log n_atoms): a draw,
    // if u is uniform.
    double draw(double u) const noexcept;
};

// The leaves of a row, that of tree t is leaves[t * step]; and, if a training row was left out of
// them, the rank of its target.
struct RowLeaves {
    static constexpr rank_t none = ~rank_t{0};

    const leaf_t* leaves;
    std::size_t step;
    rank_t left_out = none;
};

// A leaf of one tree.
struct LeafEntries {
    std::uint32_t begin;  // of its entries, counted from where the tree's begin
    std::uint32_t end;
    leaf_t leaf;
};

// Scratch memory of one thread that turns the leaves of a row into Atoms.
class Distribution {
  public:
    explicit Distribution(const LeafIndex& index,
                          Instructions instructions = widest_instructions());

    // Merges the leaves (n_trees,) of a row. Leaves that are no_leaf or hold no rows stay silent.
    // O(entries of the leaves + atoms / 64), and no further than between the outermost entries.
    void gather(std::size_t output, const leaf_t* leaves) noexcept;
    // The same; that of tree t is leaves[t * step].
    void gather(std::size_t output, const LeafEntries* leaves, std::size_t step) noexcept;

    // The same for whoever asks for no interval or one-sided bound below the share `least` > 1/2:
    // only tails at both ends are merged, more than the share 1 - least each, and all between is
    // lumped together. False if the tails could not be told apart from the rest: then atoms() are
    // of no use until the next gathering. O(n_trees + entries of the tails + atoms / 64).
    bool gather_tails(std::size_t output, const LeafEntries* leaves, std::size_t step,
                      double least) noexcept;

    // Merges in two steps only what lies in some buckets, for an index that has bucket counts. The
    // first returns what the buckets weigh; the second, if any tree spoke, merges the entries in
    // runs of buckets, one at least, and lumps together what lies before, between and behind them.
    // What is read from atoms() must lie in the runs. O(n_trees * n_buckets), and O(n_trees * runs
    // + entries + atoms / 64).
    const BucketMasses& survey(std::size_t output, const LeafEntries* leaves,
                               std::size_t step) noexcept;
    void gather_buckets(std::size_t output, const BucketRuns& found) noexcept;

    // The same as gather with a training row left out of each of its leaves; the others share its
    // weight. Needs an index that kept its row weights; rank and weight are those of the row.
    void gather_without(std::size_t output, const leaf_t* leaves, rank_t rank,
                        count_t weight) noexcept;

    // Empty if no tree spoke. Valid until the next gathering.
    Atoms atoms() const noexcept {
        return {{values_.get(), n_atoms_},
                {cumulative_.get(), n_atoms_ + 1},
                n_trees_,
                index_.shift(),
                has_gap_,
                largest_,
                observation_};
    }

    // Allocates what the next two need.
    void use_copies();

    // After a gathering without a gap, finds Atoms::observation: of the atoms' masses, each divided
    // by the training rows behind it, the least. An atom has as many rows as the leaf with most of
    // them, as leaves of several trees share rows; pooled leaves count all. O(atoms), and with ties
    // O(entries of the leaves).
    void find_observation(std::size_t output, const RowLeaves& row) noexcept;

    // After a gathering without a gap: how often training rows with the target of each atom count
    // in the leaves, summed over trees, (n_atoms,). O(entries of the leaves).
    void count_rows(std::size_t output, const RowLeaves& row, std::int64_t* counts) noexcept;

    // Ranks of the atoms, after a gathering without a gap.
    std::span<const rank_t> ranks() const noexcept { return {ranks_.get(), n_atoms_}; }

    // Fetches the leaves of a row that is to be gathered next.
    void prefetch(std::size_t output, const LeafEntries* leaves, std::size_t step) const noexcept;

  private:
    // Calls use(ranks, units) with the arrays that leaves refer to.
    template <class Use>
    void with_arrays(const Use& use) const noexcept;
    // Fills leaves_, and calls use(leaf, tree) for each.
    template <class Use>
    void find_leaves(std::size_t output, const LeafEntries* leaves, std::size_t step,
                     const Use& use) noexcept;
    template <class Rank, class Unit>
    void add_leaves(std::span<const Rank> ranks, std::span<const Unit> units) noexcept;
    template <class Rank>
    bool add_tails(std::size_t output, const Rank* ranks, const std::uint32_t* units, Tails tails,
                   double least) noexcept;
    template <class Rank>
    void add_entries(std::span<const Leaf> leaves, std::span<const Rank> ranks,
                     std::span<const std::uint32_t> units) noexcept;
    template <class Rank, class Count>
    void add_buckets(std::size_t output, std::span<const Rank> ranks,
                     std::span<const std::uint32_t> units, const Count* below,
                     const BucketRuns& found) noexcept;
    void add_pending(std::size_t n) noexcept;
    void add(rank_t rank, mass_t units) noexcept {
        mass_[rank] += units;
        touched_.insert(rank);
    }
    // Combines the rows behind each target of the leaves over trees, in copies_.
    template <class Combine>
    void combine_copies(std::size_t output, const RowLeaves& row, const Combine& combine) noexcept;
    void collect(std::size_t output) noexcept;
    // Append the touched atoms of ranks first to last, and an atom for all others that bring the
    // mass to `upto`.
    void append_atoms(std::size_t output, rank_t first, rank_t last) noexcept;
    void append_lump(mass_t upto) noexcept;
    void note_largest(double lowest, double highest) noexcept;

    struct Free {
        void operator()(mass_t* memory) const noexcept { std::free(memory); }
    };

    const LeafIndex& index_;
    Instructions instructions_;
    std::unique_ptr<mass_t[], Free> mass_;  // (n_atoms,) all zero between gatherings
    RankSet touched_;                       // those with mass
    rank_t first_ = 0;                      // outermost ranks of the leaves
    rank_t last_ = 0;
    std::size_t n_trees_ = 0;
    bool has_gap_ = false;
    double largest_ = 0;
    double observation_ = 0;
    std::vector<std::int64_t> copies_;  // (n_atoms,) all zero between uses
    // (largest_leaf,) entries of a leaf without a training row
    std::vector<rank_t> leaf_ranks_;
    std::vector<count_t> leaf_weights_;
    std::vector<mass_t> leaf_units_;
    BucketMasses bucket_masses_;
    std::vector<std::size_t> count_rows_;  // (n_trees,) of each of n_leaves_, in the bucket counts
    std::vector<double> grains_;           // (n_trees,) units of an entry of each of n_leaves_
    std::vector<LeafEntries> entries_;     // (n_trees,)
    std::vector<Leaf> leaves_;             // (n_trees,) those of n_leaves_ trees that speak
    std::size_t n_leaves_ = 0;
    std::unique_ptr<Leaf[]> parts_;  // parts of leaves that lie in runs of buckets
    // Entries on their way to mass_.
    std::unique_ptr<rank_t[]> pending_ranks_;
    std::unique_ptr<std::uint32_t[]> pending_units_;
    // The atoms gathered; room for all there are, of which only those written are ever touched.
    std::size_t n_atoms_ = 0;
    std::unique_ptr<rank_t[]> ranks_;
    std::unique_ptr<double[]> values_;
    std::unique_ptr<mass_t[]> cumulative_;
};

}  // namespace hdicore
