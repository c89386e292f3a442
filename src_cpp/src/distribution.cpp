// distribution.cpp: accumulates leaf entries in a dense array and reads it back in rank order
// SPDX-License-Identifier: BSD-3-Clause
#include "hdicore/distribution.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <variant>

namespace hdicore {
namespace {

inline void prefetch([[maybe_unused]] const void* address) noexcept {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#endif
}

mass_t needed_of(double level, std::size_t n_trees, int shift) noexcept {
    const double whole = shift == narrow_shift ? 0x1p31 : 0x1p40;
    const mass_t units = std::llround(level * whole) - 2;
    return std::max<mass_t>(1, static_cast<mass_t>(n_trees) * units);
}

}  // namespace

mass_t Atoms::needed(double level) const noexcept {
    return level >= 1 ? total() : needed_of(level, n_trees, shift);
}

double Atoms::mean() const noexcept {
    const auto whole = static_cast<double>(total());
    double sum = 0;
    for (std::size_t k = 0; k < size(); ++k) {
        sum += static_cast<double>(cumulative[k + 1] - cumulative[k]) / whole * values[k];
    }
    return sum;
}

double Atoms::cdf(double y) const noexcept {
    const auto n_below = std::upper_bound(values.begin(), values.end(), y) - values.begin();
    return static_cast<double>(cumulative[static_cast<std::size_t>(n_below)]) /
           static_cast<double>(total());
}

double Atoms::draw(double u) const noexcept {
    const auto units = static_cast<mass_t>(u * static_cast<double>(total()));
    const auto above = std::upper_bound(cumulative.begin() + 1, cumulative.end() - 1, units);
    return values[static_cast<std::size_t>(above - cumulative.begin()) - 1];
}

Distribution::Distribution(const LeafIndex& index, Instructions instructions)
    : index_(index), instructions_(instructions) {
    std::size_t most_atoms = 0;
    for (std::size_t o = 0; o < index.n_outputs(); ++o) {
        most_atoms = std::max(most_atoms, index.atoms(o).size());
    }
    mass_.assign(most_atoms, 0);
    touched_.assign((most_atoms + 63) / 64, 0);
    // At most all atoms are touched: no allocation, and so no exception, while gathering.
    ranks_ = std::make_unique_for_overwrite<rank_t[]>(most_atoms + 4);
    values_ = std::make_unique_for_overwrite<double[]>(most_atoms + 1);
    cumulative_ = std::make_unique_for_overwrite<mass_t[]>(most_atoms + 2);
    cumulative_[0] = 0;
    entries_.resize(index.n_trees());
    leaves_.resize(index.n_trees());
    const std::size_t most_pending = 2 * Picked::enough + index.largest_leaf() + 16;
    pending_ranks_ = std::make_unique_for_overwrite<rank_t[]>(most_pending);
    pending_units_ = std::make_unique_for_overwrite<std::uint32_t[]>(most_pending);
}

template <class Use>
void Distribution::with_arrays(const Use& use) const noexcept {
    std::visit(
        [&]<class Ranks, class Units>(const Ranks& ranks, const Units& units) {
            if constexpr (std::is_same_v<Units, std::monostate>) {
                use(ranks.data(), index_.alike_units());
            } else {
                use(ranks.data(), units.view());
            }
        },
        index_.arrays().ranks, index_.arrays().units);
}

void Distribution::prefetch(std::size_t output, const LeafEntries* leaves,
                            std::size_t step) const noexcept {
    const bool alike = index_.arrays().units.index() == 0;
    const offset_t* tree_begin = index_.arrays().tree_begin.data() + output * index_.n_trees();
    with_arrays([&](const auto* ranks, auto units) {
        for (std::size_t t = 0; t < index_.n_trees(); ++t) {
            const offset_t begin = tree_begin[t] + leaves[t * step].begin;
            hdicore::prefetch(ranks + begin);
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
        use(*found++);
    }
    n_leaves_ = static_cast<std::size_t>(found - leaves_.data());
    n_trees_ = n_leaves_;
    has_gap_ = false;
}

void Distribution::gather(std::size_t output, const leaf_t* leaves) noexcept {
    for (std::size_t t = 0; t < index_.n_trees(); ++t) {
        if (leaves[t] == no_leaf) {
            entries_[t] = {0, 0};
        } else {
            const std::uint32_t* begin = index_.leaf_begin(output, t) + leaves[t];
            entries_[t] = {begin[0], begin[1]};
        }
    }
    gather(output, entries_.data(), 1);
}

void Distribution::gather(std::size_t output, const LeafEntries* leaves,
                          std::size_t step) noexcept {
    find_leaves(output, leaves, step, [](const Leaf&) {});
    with_arrays([&](const auto* ranks, auto units) { add_leaves(ranks, units); });
    collect(output);
}

// Entries of all leaves are first copied behind each other, 16 at a time, and then added in one
// long loop: a loop for each short leaf would end in a mispredicted branch.
template <class Rank, class Unit>
void Distribution::add_leaves(const Rank* ranks, std::span<const Unit> units) noexcept {
    constexpr std::size_t step = 16;
    const std::size_t n_entries = index_.n_entries();
    first_ = std::numeric_limits<rank_t>::max();
    last_ = 0;
    std::size_t n = 0;
    for (std::size_t l = 0; l < n_leaves_; ++l) {
        const Leaf& leaf = leaves_[l];
        first_ = std::min<rank_t>(first_, ranks[leaf.begin]);
        last_ = std::max<rank_t>(last_, ranks[leaf.begin + leaf.n - 1]);
        if constexpr (sizeof(Unit) > sizeof(std::uint32_t)) {
            for (std::uint32_t e = 0; e < leaf.n; ++e) {
                add(ranks[leaf.begin + e], static_cast<mass_t>(units[leaf.units + e]));
            }
        } else {
            for (std::uint32_t e = 0; e < leaf.n; e += step) {
                const Rank* from = ranks + leaf.begin + e;
                const Unit* units_from = units.data() + leaf.units + e;
                // What lies behind the leaf is copied along, and then written over, unless the
                // arrays end there.
                const bool room =
                    leaf.begin + e + step <= n_entries && leaf.units + e + step <= units.size();
                if (room) {
                    for (std::size_t k = 0; k < step; ++k) pending_ranks_[n + e + k] = from[k];
                    std::copy_n(units_from, step, pending_units_.get() + n + e);
                } else {
                    const std::size_t rest = std::min<std::size_t>(step, leaf.n - e);
                    std::copy_n(from, rest, pending_ranks_.get() + n + e);
                    std::copy_n(units_from, rest, pending_units_.get() + n + e);
                }
            }
            n += leaf.n;
            if (n >= Picked::enough) {
                add_pending(n);
                n = 0;
            }
        }
    }
    add_pending(n);
}

void Distribution::add_pending(std::size_t n) noexcept {
    mass_t* mass = mass_.data();
    std::uint64_t* touched = touched_.data();
    const rank_t* ranks = pending_ranks_.get();
    const std::uint32_t* units = pending_units_.get();
    for (std::size_t e = 0; e < n; ++e) {
        const rank_t rank = ranks[e];
        mass[rank] += static_cast<mass_t>(units[e]);
        touched[rank / 64] |= std::uint64_t{1} << (rank % 64);
    }
}

bool Distribution::gather_tails(std::size_t output, const LeafEntries* leaves, std::size_t step,
                                double least) noexcept {
    bool told_apart = false;
    with_arrays([&]<class Rank, class Unit>(const Rank* ranks, std::span<const Unit> units) {
        if constexpr (sizeof(Unit) == sizeof(std::uint32_t)) {
            TailGuess guess(1 - least);
            find_leaves(output, leaves, step,
                        [&](const Leaf& leaf) { guess.add(ranks + leaf.begin, leaf.n); });
            told_apart =
                n_leaves_ > 0 && add_tails(output, ranks, units.data(), guess.tails(), least);
        }
    });
    return told_apart;
}

template <class Rank>
bool Distribution::add_tails(std::size_t output, const Rank* ranks, const std::uint32_t* units,
                             Tails tails, double least) noexcept {
    // Collecting clears whole words of the bitmap.
    if (tails.low / 64 >= tails.high / 64) return false;
    const std::span<const Leaf> leaves(leaves_.data(), n_leaves_);
    for (std::size_t read = 0; read < leaves.size();) {
        Picked picked{pending_ranks_.get(), pending_units_.get()};
        read += pick_tails(leaves.subspan(read), ranks, units, instructions_, tails, picked);
        add_pending(picked.n);
    }
    const mass_t total = static_cast<mass_t>(n_trees_) << index_.shift();
    const mass_t outside = total - needed_of(least, n_trees_, index_.shift());
    collect_tails(output, tails);
    // Starts up to the first atom behind `outside`, and ends likewise, may bound the interval.
    return tails.low_mass > outside && tails.high_mass > outside;
}

void Distribution::gather_without(std::size_t output, const leaf_t* leaves, rank_t rank,
                                  count_t weight) noexcept {
    first_ = std::numeric_limits<rank_t>::max();
    last_ = 0;
    n_trees_ = 0;
    has_gap_ = false;
    const count_t* weights = index_.row_weights()->entries.data();
    for (std::size_t t = 0; t < index_.n_trees(); ++t) {
        if (leaves[t] == no_leaf) continue;
        const auto [begin, end] = index_.entries(output, t, leaves[t]);
        const auto weight_at = [&](std::size_t e) {
            return weights[e] - (index_.rank(e) == rank ? std::min(weight, weights[e]) : 0);
        };
        count_t whole = 0;
        for (std::size_t e = begin; e < end; ++e) whole += weight_at(e);
        if (whole == 0) continue;
        first_ = std::min(first_, index_.rank(begin));
        last_ = std::max(last_, index_.rank(end - 1));
        ++n_trees_;
        count_t part = 0;
        mass_t given = 0;
        for (std::size_t e = begin; e < end; ++e) {
            part += weight_at(e);
            const mass_t upto = share(part, whole, index_.shift());
            add(index_.rank(e), upto - given);
            given = upto;
        }
    }
    collect(output);
}

void Distribution::collect(std::size_t output) noexcept {
    n_atoms_ = 0;
    if (n_trees_ == 0) return;
    n_atoms_ = collect_words(index_.atoms(output).data(), first_, last_, 0);
    mass_t sum = 0;
    for (std::size_t k = 1; k <= n_atoms_; ++k) cumulative_[k] = sum += cumulative_[k];
}

void Distribution::collect_tails(std::size_t output, const Tails& tails) noexcept {
    const double* atoms = index_.atoms(output).data();
    const std::size_t gap = collect_words(atoms, tails.first, tails.low, 0);
    mass_t sum = 0;
    for (std::size_t k = 1; k <= gap; ++k) cumulative_[k] = sum += cumulative_[k];
    values_[gap] = std::numeric_limits<double>::quiet_NaN();
    n_atoms_ = collect_words(atoms, tails.high, tails.last, gap + 1);
    sum = static_cast<mass_t>(n_trees_) << index_.shift();
    for (std::size_t k = n_atoms_; k > gap + 1; --k) {
        const mass_t mass = cumulative_[k];
        cumulative_[k] = sum;
        sum -= mass;
    }
    cumulative_[gap + 1] = sum;
    has_gap_ = true;
}

// Moves the touched atoms of the words of ranks first to last behind the n there are: their masses
// go to cumulative_, to be summed up. Returns how many there are then.
std::size_t Distribution::collect_words(const double* atoms, rank_t first, rank_t last,
                                        std::size_t n) noexcept {
    // First all ranks, four of a word at a time whether it has them or not: a loop for each word
    // would end in a mispredicted branch.
    rank_t* ranks = ranks_.get();
    std::size_t end = n;
    for (std::size_t word = first / 64; word <= last / 64; ++word) {
        std::uint64_t bits = touched_[word];
        if (bits == 0) continue;
        touched_[word] = 0;
        const auto base = static_cast<rank_t>(word * 64);
        const std::size_t next = end + static_cast<std::size_t>(std::popcount(bits));
        for (std::size_t at = end; at < next; at += 4) {
            for (std::size_t k = 0; k < 4; ++k, bits &= bits - 1) {
                ranks[at + k] = base + static_cast<rank_t>(std::countr_zero(bits));
            }
        }
        end = next;
    }
    mass_t* mass = mass_.data();
    for (std::size_t k = n; k < end; ++k) {
        const rank_t rank = ranks[k];
        ranks[n] = rank;
        values_[n] = atoms[rank];
        cumulative_[n + 1] = mass[rank];
        n += mass[rank] != 0;  // none is left of an atom that was all left out
        mass[rank] = 0;
    }
    return n;
}

}  // namespace hdicore
