// merge/distribution.cpp: accumulates leaf entries in a dense array and reads it back in rank order
// SPDX-License-Identifier: BSD-3-Clause
#include "merge/distribution.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>
#include <variant>

namespace hdicore {
namespace {

inline void prefetch([[maybe_unused]] const void* address) noexcept {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#endif
}

std::size_t most_atoms_of(const LeafIndex& index) {
    std::size_t most = 0;
    for (std::size_t o = 0; o < index.n_outputs(); ++o) {
        most = std::max(most, index.atoms(o).size());
    }
    return most;
}

constexpr auto whole_tree = static_cast<double>(mass_t{1} << narrow_shift);

}  // namespace

double Atoms::mean() const noexcept {
    const auto whole = static_cast<double>(total());
    double sum = 0;
    for (std::size_t k = 0; k < size(); ++k) {
        sum += static_cast<double>(cumulative[k + 1] - cumulative[k]) / whole * values[k];
    }
    return sum;
}

mass_t Atoms::needed_of_pool(double level) const noexcept {
    if (level >= 1) return total();
    const mass_t tolerance = 2 * static_cast<mass_t>(n_trees);
    return std::max<mass_t>(1, std::llround(level * static_cast<double>(total())) - tolerance);
}

double Atoms::cdf(double y, bool inclusive) const noexcept {
    const auto behind = inclusive ? std::upper_bound(values.begin(), values.end(), y)
                                  : std::lower_bound(values.begin(), values.end(), y);
    const auto n_below = behind - values.begin();
    return static_cast<double>(cumulative[static_cast<std::size_t>(n_below)]) /
           static_cast<double>(total());
}

double Atoms::draw(double u) const noexcept {
    const auto units = static_cast<mass_t>(u * static_cast<double>(total()));
    const auto above = std::upper_bound(cumulative.begin() + 1, cumulative.end() - 1, units);
    return values[static_cast<std::size_t>(above - cumulative.begin()) - 1];
}

Distribution::Distribution(const LeafIndex& index, Instructions instructions)
    : index_(index),
      instructions_(instructions),
      // Pages of zeros that are not used cost nothing.
      mass_(static_cast<mass_t*>(std::calloc(most_atoms_of(index), sizeof(mass_t)))),
      touched_(most_atoms_of(index)) {
    if (!mass_) throw std::bad_alloc();
    const std::size_t most_atoms = most_atoms_of(index);
    // At most all atoms are touched: no allocation, and so no exception, while gathering.
    ranks_ = std::make_unique_for_overwrite<rank_t[]>(most_atoms + BucketRuns::most + 1 +
                                                      RankSet::slack);
    values_ = std::make_unique_for_overwrite<double[]>(most_atoms + BucketRuns::most + 1);
    cumulative_ = std::make_unique_for_overwrite<mass_t[]>(most_atoms + BucketRuns::most + 2);
    cumulative_[0] = 0;
    entries_.resize(index.n_trees());
    leaves_.resize(index.n_trees());
    if (index.bucket_counts()) {
        count_rows_.resize(index.n_trees());
        grains_.resize(index.n_trees());
        parts_ = std::make_unique_for_overwrite<Leaf[]>(index.n_trees() * BucketRuns::most);
    }
    const std::size_t most_pending = 2 * Picked::enough + index.largest_leaf() + 16;
    pending_ranks_ = std::make_unique_for_overwrite<rank_t[]>(most_pending);
    pending_units_ = std::make_unique_for_overwrite<std::uint32_t[]>(most_pending);
    if (index.row_weights()) {
        leaf_ranks_.resize(index.largest_leaf() + 1);
        leaf_weights_.resize(index.largest_leaf() + 1);
        leaf_units_.resize(index.largest_leaf() + 1);
    }
}

void Distribution::use_copies() {
    copies_.assign(most_atoms_of(index_), 0);
}

template <class Use>
void Distribution::with_arrays(const Use& use) const noexcept {
    std::visit(
        [&]<class Ranks, class Units>(const Ranks& ranks, const Units& units) {
            if constexpr (std::is_same_v<Units, std::monostate>) {
                use(ranks.view(), index_.alike_units());
            } else {
                use(ranks.view(), units.view());
            }
        },
        index_.arrays().ranks, index_.arrays().units);
}

void Distribution::prefetch(std::size_t output, const LeafEntries* leaves,
                            std::size_t step) const noexcept {
    const bool alike = index_.arrays().units.index() == 0;
    const offset_t* tree_begin = index_.arrays().tree_begin.data() + output * index_.n_trees();
    with_arrays([&](auto ranks, auto units) {
        for (std::size_t t = 0; t < index_.n_trees(); ++t) {
            const offset_t begin = tree_begin[t] + leaves[t * step].begin;
            hdicore::prefetch(ranks.data() + begin);
            if (!alike) hdicore::prefetch(units.data() + begin);
        }
    });
}

template <class Use>
void Distribution::find_leaves(std::size_t output, const LeafEntries* leaves, std::size_t step,
                               const Use& use) noexcept {
    const bool alike = index_.arrays().units.index() == 0;
    const offset_t* tree_begin = index_.arrays().tree_begin.data() + output * index_.n_trees();
    Leaf* found = leaves_.data();
    for (std::size_t t = 0; t < index_.n_trees(); ++t) {
        const LeafEntries& entries = leaves[t * step];
        const std::uint32_t n = entries.end - entries.begin;
        if (n == 0) continue;
        const std::size_t begin = static_cast<std::size_t>(tree_begin[t]) + entries.begin;
        *found = {begin, alike ? index_.alike_begin(n) : begin, n};
        use(*found++, t);
    }
    n_leaves_ = static_cast<std::size_t>(found - leaves_.data());
    n_trees_ = n_leaves_;
    has_gap_ = false;
}

void Distribution::gather(std::size_t output, const leaf_t* leaves) noexcept {
    for (std::size_t t = 0; t < index_.n_trees(); ++t) {
        if (leaves[t] == no_leaf) {
            entries_[t] = {0, 0, no_leaf};
        } else {
            const std::uint32_t* begin = index_.leaf_begin(output, t) + leaves[t];
            entries_[t] = {begin[0], begin[1], leaves[t]};
        }
    }
    gather(output, entries_.data(), 1);
}

void Distribution::gather(std::size_t output, const LeafEntries* leaves,
                          std::size_t step) noexcept {
    find_leaves(output, leaves, step, [](const Leaf&, std::size_t) {});
    with_arrays([&](auto ranks, auto units) { add_leaves(ranks, units); });
    collect(output);
}

template <class Rank, class Unit>
void Distribution::add_leaves(std::span<const Rank> ranks, std::span<const Unit> units) noexcept {
    first_ = std::numeric_limits<rank_t>::max();
    last_ = 0;
    const std::span<const Leaf> leaves(leaves_.data(), n_leaves_);
    for (const Leaf& leaf : leaves) {
        first_ = std::min<rank_t>(first_, ranks[leaf.begin]);
        last_ = std::max<rank_t>(last_, ranks[leaf.begin + leaf.n - 1]);
    }
    if constexpr (sizeof(Unit) > sizeof(std::uint32_t)) {
        for (const Leaf& leaf : leaves) {
            for (std::uint32_t e = 0; e < leaf.n; ++e) {
                add(ranks[leaf.begin + e], static_cast<mass_t>(units[leaf.units + e]));
            }
        }
    } else {
        add_entries(leaves, ranks, units);
    }
}

// Entries are first copied behind each other and then added in one long loop: a loop for each short
// leaf would end in a mispredicted branch.
template <class Rank>
void Distribution::add_entries(std::span<const Leaf> leaves, std::span<const Rank> ranks,
                               std::span<const std::uint32_t> units) noexcept {
    for (std::size_t read = 0; read < leaves.size();) {
        Picked picked{pending_ranks_.get(), pending_units_.get()};
        read += pick_all(leaves.subspan(read), ranks, units, instructions_, picked);
        add_pending(picked.n);
    }
}

void Distribution::add_pending(std::size_t n) noexcept {
    const rank_t* ranks = pending_ranks_.get();
    const std::uint32_t* units = pending_units_.get();
    for (std::size_t e = 0; e < n; ++e) add(ranks[e], static_cast<mass_t>(units[e]));
}

bool Distribution::gather_tails(std::size_t output, const LeafEntries* leaves, std::size_t step,
                                double least) noexcept {
    bool told_apart = false;
    with_arrays(
        [&]<class Rank, class Unit>(std::span<const Rank> ranks, std::span<const Unit> units) {
            if constexpr (sizeof(Unit) == sizeof(std::uint32_t)) {
                TailGuess guess(1 - least);
                find_leaves(output, leaves, step, [&](const Leaf& leaf, std::size_t) {
                    guess.add(ranks.data() + leaf.begin, leaf.n);
                });
                told_apart = n_leaves_ > 0 &&
                             add_tails(output, ranks.data(), units.data(), guess.tails(), least);
            }
        });
    return told_apart;
}

template <class Rank>
bool Distribution::add_tails(std::size_t output, const Rank* ranks, const std::uint32_t* units,
                             Tails tails, double least) noexcept {
    if (tails.low >= tails.high) return false;
    const std::span<const Leaf> leaves(leaves_.data(), n_leaves_);
    for (std::size_t read = 0; read < leaves.size();) {
        Picked picked{pending_ranks_.get(), pending_units_.get()};
        read += pick_tails(leaves.subspan(read), ranks, units, instructions_, tails, picked);
        add_pending(picked.n);
    }
    const mass_t total = static_cast<mass_t>(n_trees_) << index_.shift();
    const mass_t outside = total - needed_units(least, n_trees_, index_.shift());
    n_atoms_ = 0;
    append_atoms(output, tails.first, tails.low);
    append_lump(total - tails.high_mass);
    append_atoms(output, tails.high, tails.last);
    note_largest(values_[0], values_[n_atoms_ - 1]);
    // Starts up to the first atom behind `outside`, and ends likewise, may bound the interval.
    return tails.low_mass > outside && tails.high_mass > outside;
}

const BucketMasses& Distribution::survey(std::size_t output, const LeafEntries* leaves,
                                         std::size_t step) noexcept {
    const BucketCounts& counts = *index_.bucket_counts();
    first_ = std::numeric_limits<rank_t>::max();
    last_ = 0;
    std::size_t n = 0;
    const std::size_t first = output * index_.n_leaves();
    find_leaves(output, leaves, step, [&](const Leaf& leaf, std::size_t t) {
        grains_[n] = whole_tree / static_cast<double>(leaf.n);
        const std::size_t row = first + static_cast<std::size_t>(index_.arrays().leaf_offsets[t] +
                                                                 leaves[t * step].leaf);
        count_rows_[n++] = row;
        first_ = std::min(first_, counts.ends[row].first);
        last_ = std::max(last_, counts.ends[row].last);
    });
    if (n > 0) note_largest(index_.atoms(output)[first_], index_.atoms(output)[last_]);
    std::visit(
        [&](const auto& below) {
            bucket_masses_.assign(counts.edges[output], below.data(),
                                  std::span(count_rows_.data(), n), std::span(grains_.data(), n),
                                  first_, last_, instructions_);
        },
        counts.below);
    return bucket_masses_;
}

void Distribution::gather_buckets(std::size_t output, const BucketRuns& found) noexcept {
    std::visit(
        [&](const auto& ranks, const auto& below) {
            add_buckets(output, ranks.view(), index_.alike_units(), below.data(), found);
        },
        index_.arrays().ranks, index_.bucket_counts()->below);
}

template <class Rank, class Count>
void Distribution::add_buckets(std::size_t output, std::span<const Rank> ranks,
                               std::span<const std::uint32_t> units, const Count* below,
                               const BucketRuns& found) noexcept {
    const BucketEdges& edges = bucket_masses_.edges();
    std::array<mass_t, BucketRuns::most> mass_below;
    Leaf* part = parts_.get();
    for (std::size_t r = 0; r < found.n; ++r) {
        const auto [first, end] = found.runs[r];
        mass_t mass = 0;
        for (std::size_t l = 0; l < n_leaves_; ++l) {
            const Leaf& leaf = leaves_[l];
            const Count* counts = below + count_rows_[l] * n_buckets;
            const std::uint32_t from = counts[first];
            const std::uint32_t to = end == n_buckets ? leaf.n : counts[end];
            // As share() does: a quotient that is no whole number is further than the addend from
            // the next one.
            mass += static_cast<mass_t>(from * grains_[l] + 0x1p-15);
            *part++ = {leaf.begin + from, leaf.units + from, to - from};
            hdicore::prefetch(ranks.data() + leaf.begin + from);
        }
        mass_below[r] = mass;
    }
    add_entries(std::span<const Leaf>(parts_.get(), static_cast<std::size_t>(part - parts_.get())),
                ranks, units);

    n_atoms_ = 0;
    for (std::size_t r = 0; r < found.n; ++r) {
        const auto [first, end] = found.runs[r];
        append_lump(mass_below[r]);
        if (edges.begin[first] == edges.begin[end]) continue;  // fewer atoms than buckets
        append_atoms(output, edges.begin[first], edges.begin[end] - 1);
    }
    append_lump(static_cast<mass_t>(n_trees_) << index_.shift());
}

void Distribution::gather_without(std::size_t output, const leaf_t* leaves, rank_t rank,
                                  count_t weight) noexcept {
    first_ = std::numeric_limits<rank_t>::max();
    last_ = 0;
    n_trees_ = 0;
    has_gap_ = false;
    const RowWeights& kept = *index_.row_weights();
    for (std::size_t t = 0; t < index_.n_trees(); ++t) {
        if (leaves[t] == no_leaf) continue;
        const auto [begin, end] = index_.entries(output, t, leaves[t]);
        std::size_t n = 0;
        for (std::size_t e = begin; e < end; ++e) {
            const count_t all = kept.entries[e];
            const rank_t entry_rank = index_.rank(e);
            leaf_weights_[n] = all - (entry_rank == rank ? std::min(weight, all) : 0);
            leaf_ranks_[n] = entry_rank;
            n += leaf_weights_[n] > 0;
        }
        if (n == 0) continue;
        first_ = std::min(first_, leaf_ranks_[0]);
        last_ = std::max(last_, leaf_ranks_[n - 1]);
        ++n_trees_;
        share_out({leaf_weights_.data(), n}, index_.shift(), kept.pool, leaf_units_.data());
        for (std::size_t k = 0; k < n; ++k) add(leaf_ranks_[k], leaf_units_[k]);
    }
    collect(output);
}

template <class Combine>
void Distribution::combine_copies(std::size_t output, const RowLeaves& row,
                                  const Combine& combine) noexcept {
    for (std::size_t t = 0; t < index_.n_trees(); ++t) {
        const leaf_t leaf = row.leaves[t * row.step];
        if (leaf == no_leaf) continue;
        const auto [begin, end] = index_.entries(output, t, leaf);
        for (std::size_t e = begin; e < end;) {
            const rank_t rank = index_.rank(e);
            std::int64_t n = rank == row.left_out ? -1 : 0;
            for (; e < end && index_.rank(e) == rank; ++e) {
                n += static_cast<std::int64_t>(index_.copies(e));
            }
            copies_[rank] = combine(copies_[rank], n);
        }
    }
}

void Distribution::find_observation(std::size_t output, const RowLeaves& row) noexcept {
    const bool pooled = index_.arrays().pooled;
    if (pooled || index_.has_ties()) {
        combine_copies(output, row, [pooled](std::int64_t found, std::int64_t n) {
            return pooled ? found + n : std::max(found, n);
        });
    }
    observation_ = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < n_atoms_; ++k) {
        const auto mass = static_cast<double>(cumulative_[k + 1] - cumulative_[k]);
        std::int64_t& n = copies_[ranks_[k]];
        observation_ = std::min(observation_, n > 1 ? mass / static_cast<double>(n) : mass);
        n = 0;
    }
}

void Distribution::count_rows(std::size_t output, const RowLeaves& row,
                              std::int64_t* counts) noexcept {
    combine_copies(output, row, std::plus());
    for (std::size_t k = 0; k < n_atoms_; ++k) {
        counts[k] = std::exchange(copies_[ranks_[k]], 0);
    }
}

void Distribution::collect(std::size_t output) noexcept {
    n_atoms_ = 0;
    if (n_trees_ == 0) return;
    append_atoms(output, first_, last_);
}

void Distribution::append_atoms(std::size_t output, rank_t first, rank_t last) noexcept {
    const double* atoms = index_.atoms(output).data();
    rank_t* ranks = ranks_.get() + n_atoms_;
    double* values = values_.get() + n_atoms_;
    mass_t* cumulative = cumulative_.get() + n_atoms_;
    mass_t* mass = mass_.get();
    const std::size_t n = touched_.take(first, last, instructions_, ranks);
    mass_t sum = cumulative[0];
    for (std::size_t k = 0; k < n; ++k) {
        const rank_t rank = ranks[k];
        values[k] = atoms[rank];
        cumulative[k + 1] = sum += mass[rank];
        mass[rank] = 0;
    }
    n_atoms_ += n;
}

void Distribution::append_lump(mass_t upto) noexcept {
    if (upto == cumulative_[n_atoms_]) return;
    values_[n_atoms_++] = std::numeric_limits<double>::quiet_NaN();
    cumulative_[n_atoms_] = upto;
    has_gap_ = true;
}

void Distribution::note_largest(double lowest, double highest) noexcept {
    largest_ = std::max(std::fabs(lowest), std::fabs(highest));
}

}  // namespace hdicore
