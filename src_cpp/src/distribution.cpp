// distribution.cpp: accumulates leaf entries in a dense array and reads it back in rank order
// SPDX-License-Identifier: BSD-3-Clause
#include "hdicore/distribution.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace hdicore {
namespace {

inline void prefetch([[maybe_unused]] const void* address) noexcept {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#endif
}

}  // namespace

mass_t Atoms::needed(double level) const noexcept {
    if (level >= 1) return total();
    const mass_t units = std::llround(std::scalbn(level, shift)) - 2;
    return std::max<mass_t>(1, static_cast<mass_t>(n_trees) * units);
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

Distribution::Distribution(const LeafIndex& index) : index_(index) {
    std::size_t most_atoms = 0;
    for (std::size_t o = 0; o < index.n_outputs(); ++o) {
        most_atoms = std::max(most_atoms, index.atoms(o).size());
    }
    mass_.assign(most_atoms, 0);
    touched_.assign((most_atoms + 63) / 64, 0);
    // At most all atoms are touched: no allocation, and so no exception, while gathering.
    ranks_.resize(most_atoms);
    values_.resize(most_atoms);
    cumulative_.resize(most_atoms + 1);
    found_.resize(index.n_trees());
}

void Distribution::widen(rank_t first, rank_t last) noexcept {
    first_ = std::min(first_, first);
    last_ = std::max(last_, last);
    ++n_trees_;
}

void Distribution::gather(std::size_t output, const leaf_t* leaves) noexcept {
    first_ = std::numeric_limits<rank_t>::max();
    last_ = 0;
    n_trees_ = 0;
    std::visit([&](const auto& units) { add_leaves(output, leaves, units.data()); },
               index_.arrays().units);
    collect(output);
}

template <class Unit>
void Distribution::add_leaves(std::size_t output, const leaf_t* leaves,
                              const Unit* units) noexcept {
    const rank_t* ranks = index_.arrays().ranks.data();
    // Finding all leaves before reading any lets their cache misses overlap.
    LeafIndex::Range* end = found_.data();
    for (std::size_t t = 0; t < index_.n_trees(); ++t) {
        if (leaves[t] == no_leaf) continue;
        *end = index_.entries(output, t, leaves[t]);
        prefetch(ranks + end->begin);
        prefetch(units + end->begin);
        end += end->begin != end->end;
    }
    n_trees_ = static_cast<std::size_t>(end - found_.data());
    mass_t* mass = mass_.data();
    std::uint64_t* touched = touched_.data();
    for (const LeafIndex::Range* leaf = found_.data(); leaf != end; ++leaf) {
        first_ = std::min(first_, ranks[leaf->begin]);
        last_ = std::max(last_, ranks[leaf->end - 1]);
        for (std::size_t e = leaf->begin; e < leaf->end; ++e) {
            const rank_t rank = ranks[e];
            mass[rank] += static_cast<mass_t>(units[e]);
            touched[rank / 64] |= std::uint64_t{1} << (rank % 64);
        }
    }
}

void Distribution::gather_without(std::size_t output, const leaf_t* leaves, rank_t rank,
                                  count_t weight) noexcept {
    first_ = std::numeric_limits<rank_t>::max();
    last_ = 0;
    n_trees_ = 0;
    const rank_t* ranks = index_.arrays().ranks.data();
    const count_t* weights = index_.row_weights()->entries.data();
    for (std::size_t t = 0; t < index_.n_trees(); ++t) {
        if (leaves[t] == no_leaf) continue;
        const auto [begin, end] = index_.entries(output, t, leaves[t]);
        const auto weight_at = [&](std::size_t e) {
            return weights[e] - (ranks[e] == rank ? std::min(weight, weights[e]) : 0);
        };
        count_t whole = 0;
        for (std::size_t e = begin; e < end; ++e) whole += weight_at(e);
        if (whole == 0) continue;
        widen(ranks[begin], ranks[end - 1]);
        count_t part = 0;
        mass_t given = 0;
        for (std::size_t e = begin; e < end; ++e) {
            part += weight_at(e);
            const mass_t upto = share(part, whole, index_.shift());
            add(ranks[e], upto - given);
            given = upto;
        }
    }
    collect(output);
}

void Distribution::collect(std::size_t output) noexcept {
    n_atoms_ = 0;
    if (n_trees_ == 0) return;
    const double* atoms = index_.atoms(output).data();
    mass_t* mass = mass_.data();
    std::size_t n = 0;
    mass_t sum = 0;
    for (std::size_t word = first_ / 64; word <= last_ / 64; ++word) {
        std::uint64_t bits = touched_[word];
        if (bits == 0) continue;
        touched_[word] = 0;
        for (; bits != 0; bits &= bits - 1) {
            const auto rank =
                static_cast<rank_t>(word * 64 + static_cast<unsigned>(std::countr_zero(bits)));
            sum += mass[rank];
            ranks_[n] = rank;
            values_[n] = atoms[rank];
            cumulative_[n + 1] = sum;
            n += mass[rank] != 0;  // none is left of an atom that was all left out
            mass[rank] = 0;
        }
    }
    n_atoms_ = n;
}

}  // namespace hdicore
