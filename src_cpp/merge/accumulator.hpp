// merge/accumulator.hpp: entries of many leaves -> sums by atom, read back in ascending order
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "index/leaf_index.hpp"
#include "kernels/kernels.hpp"
#include "merge/rank_set.hpp"
#include "pmf/pmf.hpp"

namespace hdicore {

// The leaves of one row, without those that hold no training row: one slice for each tree that
// contributes.
using RowSlices = std::span<const EntrySlice>;

// Outermost ranks of some entries.
struct RankBounds {
    rank_t first;
    rank_t last;
};

// Neighbouring entries of a leaf whose rows weigh alike.
struct EqualEntries {
    std::size_t begin;    // ranks[begin : begin + n]
    std::uint32_t n;      // may be 0
    std::uint32_t first;  // number of the first of them in the leaf
    std::uint64_t step;   // EqualUnits::step of the leaf
};

// Ranks [begin, end) whose masses are complete, and the mass of all ranks below them.
struct RankRange {
    rank_t begin;
    rank_t end;
    mass_t below;
};

// Scratch memory of one thread. Entries are added, then all of them are read back, which leaves
// the accumulator empty for the next row. Its memory is that of an earlier accumulator of the
// index, or allocated at construction.
class Accumulator {
  public:
    // Gaps that a distribution may have: one before each run of buckets, and one behind the last.
    static constexpr std::size_t max_gaps = BucketRuns::max_runs + 1;

    Accumulator(const LeafIndex& index, const Kernels& kernels);
    ~Accumulator();
    Accumulator(const Accumulator&) = delete;
    Accumulator& operator=(const Accumulator&) = delete;

    // Adds all entries of the slices, some of which may be empty. If `dense`, so are their atoms
    // where they are read. O(entries).
    void add(RowSlices slices, bool dense) noexcept;
    // Whether it is faster to look at each of n_atoms than to keep a list of those with mass.
    static bool is_dense(std::size_t n_entries, std::size_t n_atoms) noexcept {
        constexpr std::size_t few = 256;  // are looked at before their masses are in the cache
        return n_atoms > few && 4 * n_entries >= n_atoms;
    }
    // The same for entries of an index without units.
    void add_equal(std::span<const EqualEntries> parts, bool dense) noexcept;
    // Adds the entries of the tails. Units must have narrow_shift. O(slices + entries added).
    void add_tails(RowSlices slices, Tails& tails) noexcept;
    void add(rank_t rank, mass_t units) noexcept {
        mass_[rank] += units;
        touched_.insert(rank);
    }

    // The distribution of all that was added, from n_trees trees. Valid until the next reading.
    // O(atoms + (last - first) / 64).
    // If atoms are dense, O(last - first).
    Pmf read(std::size_t output, std::size_t n_trees, RankBounds bounds) noexcept;
    // The same of a row to which no tree contributes.
    Pmf read_empty() noexcept;

    // The distribution of the event's time, in place of the one read last, of a censored index.
    // O(atoms).
    Pmf to_survival(const Pmf& merged) noexcept;

    // The distribution in the ranges, which ascend and hold all that was added; all else is gaps.
    PartialPmf read_partial(std::size_t output, std::size_t n_trees,
                            std::span<const RankRange> ranges, double max_abs) noexcept;

    // Ranks of the atoms read last, if there was no gap.
    std::span<const rank_t> ranks() const noexcept { return {ranks_, n_atoms_}; }
    // The values read last.
    std::span<const double> values() const noexcept { return {values_, n_atoms_}; }

    // Whether no table has the units of some of the slices, each a whole leaf.
    bool has_large(RowSlices slices) const noexcept;
    // Whether so few atoms get a mass that sorting them is faster than looking for their bits.
    bool is_sparse(RowSlices slices) const noexcept;

    // Outermost ranks of slices, of which none is empty.
    RankBounds bounds(RowSlices slices) const noexcept;

    // Fetches the entries of slices that are to be added soon.
    void prefetch(RowSlices slices) const noexcept;

    const LeafIndex& index() const noexcept { return index_; }
    const Kernels& kernels() const noexcept { return kernels_; }

  private:
    // Calls use(ranks, units) with the arrays that slices refer to.
    template <class Use>
    void with_arrays(const Use& use) const noexcept;
    void add_buffer(std::size_t n) noexcept;
    void add_large(RowSlices slices) noexcept;
    // Moves the ranks in [first, last] that have mass to `ranks`, ascending; returns their number.
    std::size_t take(rank_t first, rank_t last, rank_t* ranks) noexcept;
    void append_atoms(std::size_t output, rank_t first, rank_t last) noexcept;
    void end_reading() noexcept;
    void append_gap(mass_t upto) noexcept;

    // The memory of an accumulator: zero where it is to be, between rows.
    struct Memory;

    const LeafIndex& index_;
    const Kernels& kernels_;
    std::shared_ptr<Memory> memory_;
    mass_t* mass_;  // (n_atoms,) zero but for what was added
    // Entries on their way to mass_.
    rank_t* buffer_ranks_;
    std::uint32_t* buffer_units_;
    RankSet& touched_;     // ranks that have mass, unless
    bool dense_ = false;   // atoms are, or
    bool sparse_ = false;  // are, whose ranks are
    std::vector<rank_t>& few_;
    // The atoms read last. Only the part that is written is ever touched.
    std::size_t n_atoms_ = 0;
    rank_t* ranks_;
    double* values_;
    mass_t* cumulative_;
};

// The complete distribution of a row. O(entries + atoms / 64), and no further than between the
// outermost entries.
inline Pmf merge_whole(Accumulator& accumulator, std::size_t output, RowSlices slices) noexcept {
    if (slices.empty()) return accumulator.read_empty();
    const RankBounds bounds = accumulator.bounds(slices);
    // To count them would cost more than it gains.
    const double n_entries =
        accumulator.index().entries_per_leaf() * static_cast<double>(slices.size());
    accumulator.add(slices, Accumulator::is_dense(static_cast<std::size_t>(n_entries),
                                                  bounds.last - bounds.first));
    return accumulator.read(output, slices.size(), bounds);
}

}  // namespace hdicore
