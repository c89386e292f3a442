// hdicore/distribution.hpp: weighted ranks of many leaves -> one conditional distribution
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hdicore/leaf_index.hpp"
#include "hdicore/tails.hpp"
#include "hdicore/types.hpp"

namespace hdicore {

// A discrete distribution: atoms with positive mass, ascending, no two equal.
struct Atoms {
    std::span<const double> values;      // (n_atoms,)
    std::span<const mass_t> cumulative;  // (n_atoms + 1,) cumulative[k] is the mass of the first k
    std::size_t n_trees;                 // trees that speak; each hands out 2^shift units
    int shift;
    bool has_gap = false;  // all between the tails is lumped together, in one atom of value NaN

    std::size_t size() const noexcept { return values.size(); }
    mass_t total() const noexcept { return cumulative.back(); }

    // Units that count as holding the share `level` in [0, 1]: n_trees * (round(level * 2^shift) -
    // 2), all for level 1. The two units absorb the rounding of shares and level, so that an exact
    // mass equal to the level is recognised; what is accepted holds more than level - 3.5 *
    // 2^-shift.
    mass_t needed(double level) const noexcept;

    // Mean, O(n_atoms). Its error is below 2^-shift times the range of the values.
    double mean() const noexcept;

    // P(Y <= y), O(log n_atoms).
    double cdf(double y) const noexcept;

    // Smallest atom whose cumulative mass exceeds the share u in [0, 1), O(log n_atoms): a draw,
    // if u is uniform.
    double draw(double u) const noexcept;
};

// Entries of one leaf of one tree, counted from where the tree's begin.
struct LeafEntries {
    std::uint32_t begin;
    std::uint32_t end;
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
                has_gap_};
    }
    // Ranks of the atoms, after a gathering without a gap.
    std::span<const rank_t> ranks() const noexcept { return {ranks_.get(), n_atoms_}; }

    // Fetches the leaves of a row that is to be gathered next.
    void prefetch(std::size_t output, const LeafEntries* leaves, std::size_t step) const noexcept;

  private:
    // Calls use(ranks, units) with the arrays that leaves refer to.
    template <class Use>
    void with_arrays(const Use& use) const noexcept;
    // Fills leaves_, and calls use(leaf) for each.
    template <class Use>
    void find_leaves(std::size_t output, const LeafEntries* leaves, std::size_t step,
                     const Use& use) noexcept;
    template <class Rank, class Unit>
    void add_leaves(const Rank* ranks, std::span<const Unit> units) noexcept;
    template <class Rank>
    bool add_tails(std::size_t output, const Rank* ranks, const std::uint32_t* units, Tails tails,
                   double least) noexcept;
    void add_pending(std::size_t n) noexcept;
    void add(rank_t rank, mass_t units) noexcept {
        mass_[rank] += units;
        touched_[rank / 64] |= std::uint64_t{1} << (rank % 64);
    }
    void collect(std::size_t output) noexcept;
    void collect_tails(std::size_t output, const Tails& tails) noexcept;
    std::size_t collect_words(const double* atoms, rank_t first, rank_t last,
                              std::size_t n) noexcept;

    const LeafIndex& index_;
    Instructions instructions_;
    std::vector<mass_t> mass_;            // (n_atoms,) all zero between gatherings
    std::vector<std::uint64_t> touched_;  // a bit per atom, all zero between gatherings
    rank_t first_ = 0;                    // outermost ranks touched
    rank_t last_ = 0;
    std::size_t n_trees_ = 0;
    bool has_gap_ = false;
    std::vector<LeafEntries> entries_;  // (n_trees,)
    std::vector<Leaf> leaves_;          // (n_trees,) those of n_leaves_ trees that speak
    std::size_t n_leaves_ = 0;
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
