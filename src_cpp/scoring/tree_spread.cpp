// scoring/tree_spread.cpp: sums over the entries of each leaf, and over the leaves of each row
// SPDX-License-Identifier: BSD-3-Clause
#include "scoring/tree_spread.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/refusal.hpp"

namespace hdicore {
namespace {

// The atoms [first, end) of an interval.
struct RankRange {
    rank_t first;
    rank_t end;

    RankRange(std::span<const double> atoms, double lower, double upper) noexcept
        : first(static_cast<rank_t>(std::ranges::lower_bound(atoms, lower) - atoms.begin())),
          end(static_cast<rank_t>(std::ranges::upper_bound(atoms, upper) - atoms.begin())) {}

    bool contains(rank_t rank) const noexcept { return rank >= first && rank < end; }
};

// What the entries of a leaf amount to.
struct LeafSum {
    double mean;
    mass_t units;
    mass_t units_within;
};

// Rows weigh alike: the entries within are neighbours, whose units follow from their numbers as
// UniformUnits has them.
template <class Rank>
LeafSum sum_entries(const Rank* ranks, std::monostate, std::uint32_t n, const double* atoms,
                    const RankRange& within) noexcept {
    double sum = 0;
    std::uint32_t n_below = 0, n_within = 0;
    for (std::uint32_t e = 0; e < n; ++e) {
        sum += atoms[ranks[e]];
        n_below += ranks[e] < within.first;
        n_within += within.contains(ranks[e]);
    }
    const auto upto = [&](mass_t k) { return (k << narrow_shift) / n; };
    return {sum / n, mass_t{1} << narrow_shift, upto(mass_t{n_below} + n_within) - upto(n_below)};
}

template <class Rank, class Unit>
LeafSum sum_entries(const Rank* ranks, const Unit* units, std::uint32_t n, const double* atoms,
                    const RankRange& within) noexcept {
    double sum = 0;
    mass_t all = 0, units_within = 0;
    for (std::uint32_t e = 0; e < n; ++e) {
        const auto own = static_cast<mass_t>(units[e]);
        sum += static_cast<double>(own) * atoms[ranks[e]];
        all += own;
        units_within += within.contains(ranks[e]) ? own : 0;
    }
    return {sum / static_cast<double>(all), all, units_within};
}

// Leaves of trees that are fully grown have one target, if often several rows with it: the lengths
// of loops over these could not be predicted.
template <class Rank, class Units>
LeafSum sum_leaf(const Rank* ranks, Units units, std::uint32_t n, const double* atoms,
                 const RankRange& within) noexcept {
    if (ranks[0] != ranks[n - 1]) return sum_entries(ranks, units, n, atoms, within);
    mass_t whole = mass_t{1} << narrow_shift;
    if constexpr (std::is_pointer_v<Units>) whole = static_cast<mass_t>(units[0]);
    return {atoms[ranks[0]], whole, within.contains(ranks[0]) ? whole : 0};
}

// What the leaves of a row amount to, tree after tree.
class RowSum {
  public:
    RowSum(std::span<const double> atoms, double lower, double upper) noexcept
        : within_(atoms, lower, upper), has_ends_(!std::isnan(lower) && !std::isnan(upper)) {}

    const RankRange& within() const noexcept { return within_; }

    void add(const LeafSum& leaf) noexcept {
        if (n_ == 0) origin_ = leaf.mean;
        const double distance = leaf.mean - origin_;
        ++n_;
        sum_ += distance;
        squares_ += distance * distance;
        units_ += leaf.units;
        units_within_ += leaf.units_within;
    }

    // The origin is one of the means: at most n squares of the deviation are subtracted.
    double spread() const noexcept {
        if (n_ == 0) return nan;
        const double mean = sum_ / n_;
        return std::sqrt(std::max(squares_ / n_ - mean * mean, 0.0));
    }

    double mass() const noexcept {
        if (n_ == 0 || !has_ends_) return nan;
        return static_cast<double>(units_within_) / static_cast<double>(units_);
    }

  private:
    RankRange within_;
    bool has_ends_;
    std::uint32_t n_ = 0;  // leaves
    double origin_ = 0;    // mean of the first
    double sum_ = 0;       // of distances from there
    double squares_ = 0;
    mass_t units_ = 0;
    mass_t units_within_ = 0;
};

// Scratch memory of one thread.
class SpreadWorker {
  public:
    SpreadWorker(const LeafIndex& index, const LeafSource& source, const SpreadRequest& request,
                 Interruption& interruption, std::size_t max_rows)
        : index_(index), source_(source), request_(request), interruption_(interruption) {
        source.reserve(max_rows, block_);
        sums_.reserve(max_rows);
    }

    void find(std::size_t begin, std::size_t end) {
        source_.leaves(begin, end, block_, interruption_);
        for (std::size_t o = 0; o < index_.n_outputs(); ++o) {
            const auto place = [&](std::size_t p) {
                return (begin + block_.order[p]) * index_.n_outputs() + o;
            };
            sums_.clear();
            for (std::size_t p = 0; p < end - begin; ++p) {
                const std::span<const double> ends = request_.intervals.row(place(p));
                sums_.emplace_back(index_.atoms(o), ends[0], ends[1]);
            }
            for (std::size_t t = 0; t < index_.n_trees(); ++t) {
                index_.with_entries(index_.tree_begin(o, t), [&](const auto* ranks, auto units) {
                    add(o, t, ranks, units);
                });
            }
            for (std::size_t p = 0; p < end - begin; ++p) {
                request_.spread[place(p)] = sums_[p].spread();
                request_.mass[place(p)] = sums_[p].mass();
            }
        }
    }

  private:
    // Adds the leaves of one tree, whose entries these are.
    template <class Rank, class Units>
    void add(std::size_t output, std::size_t tree, const Rank* ranks, Units units) {
        const double* atoms = index_.atoms(output).data();
        const std::uint32_t* leaf_begin = index_.leaf_begin(output, tree);
        const leaf_t* leaves = block_.leaves.data() + tree * block_.stride();
        const std::size_t at_once = rows_between_checks();
        for (std::size_t p = 0; p < block_.n_places(); ++p) {
            const leaf_t leaf = leaves[p];
            if (leaf == no_leaf) continue;
            if (!index_.is_validated()) index_.check_leaf(output, tree, leaf);
            const std::uint32_t begin = leaf_begin[leaf];
            const std::uint32_t n = leaf_begin[leaf + 1] - begin;
            if (n == 0) continue;
            for (std::size_t k = block_.begins[p]; k < block_.begins[p + 1]; ++k) {
                if ((k & (at_once - 1)) == 0) interruption_.check();
                sums_[k].add(sum_leaf(ranks + begin, units_behind(units, begin), n, atoms,
                                      sums_[k].within()));
            }
        }
    }

    // Rows whose leaves in one tree have about a million entries; a power of two.
    std::size_t rows_between_checks() const noexcept {
        const double rows = 0x1p20 / (index_.entries_per_leaf() + 1);
        return std::bit_floor(static_cast<std::size_t>(rows) | 1);
    }

    const LeafIndex& index_;
    const LeafSource& source_;
    const SpreadRequest& request_;
    Interruption& interruption_;
    RowBlock block_;
    std::vector<RowSum> sums_;  // (n_rows,) of a block, in its order
};

}  // namespace

void find_spread(const LeafIndex& index, const LeafSource& source, const SpreadRequest& request,
                 const Execution& execution) {
    if (index.arrays().censored()) refuse("leaves of censored targets have no mean to spread");
    const auto make_worker = [&](std::size_t max_rows) {
        const auto worker = std::make_shared<SpreadWorker>(index, source, request,
                                                           execution.interruption, max_rows);
        return [worker](std::size_t begin, std::size_t end) { worker->find(begin, end); };
    };
    const std::size_t at_once = std::clamp<std::size_t>((std::size_t{1} << 22) / index.n_trees(),
                                                        RowTiles::tile_rows, 4096);
    for_each_block(source.n_rows(), index.n_trees(), at_once, execution, make_worker);
}

}  // namespace hdicore
