// index/leaf_means.cpp: finds the steps of an output, and sums up the entries of leaves
// SPDX-License-Identifier: BSD-3-Clause
#include "index/leaf_means.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <variant>

#include "base/parallel.hpp"

namespace hdicore {
namespace {

// Entries without units of their own weigh as EqualUnits says.
template <class Rank>
MeanSum sum_entries(const Rank* ranks, std::monostate, std::uint32_t n, const double* atoms,
                    const MeanScale& scale, int shift) noexcept {
    MomentSum sum;
    EqualUnits units(EqualUnits::step(n), 0);
    for (std::uint32_t e = 0; e < n; ++e) sum.add(units.next(), scale.steps(atoms[ranks[e]]));
    return sum.over_tree(shift);
}

template <class Rank, class Unit>
MeanSum sum_entries(const Rank* ranks, const Unit* units, std::uint32_t n, const double* atoms,
                    const MeanScale& scale, int shift) noexcept {
    MomentSum sum;
    for (std::uint32_t e = 0; e < n; ++e) {
        sum.add(static_cast<mass_t>(units[e]), scale.steps(atoms[ranks[e]]));
    }
    return sum.over_tree(shift);
}

}  // namespace

MeanScale::MeanScale(double least, double largest, std::size_t n_trees, int shift) noexcept
    : least_(least), largest_(largest), shift_(shift) {
    std::frexp(std::max(std::fabs(least), std::fabs(largest)), &exponent_);
    const int half = -exponent_ / 2;
    scale_ = std::ldexp(1.0, half);
    scale_again_ = std::ldexp(1.0, -exponent_ - half);
    from_ = scaled(least);
    int range_exponent;
    std::frexp(scaled(largest) - from_, &range_exponent);
    const int step_exponent = range_exponent - 62 + static_cast<int>(std::bit_width(n_trees - 1));
    step_ = std::ldexp(1.0, step_exponent);
    per_step_ = std::ldexp(1.0, -step_exponent);
}

double MeanScale::mean(const MeanSum& sum) const noexcept {
    if (sum.units == 0) return nan;
    const double trees = std::ldexp(static_cast<double>(sum.units), -shift_);
    const double found = from_ + static_cast<double>(sum.steps) / trees * step_;
    return std::clamp(std::ldexp(std::min(found, scaled(largest_)), exponent_), least_, largest_);
}

MeanScale mean_scale(const LeafTable& table, std::size_t output) noexcept {
    const std::span<const double> atoms = table.atoms(output);
    return {atoms.front(), atoms.back(), table.n_trees(), table.shift()};
}

MeanSum mean_of_leaf(const LeafTable& table, const MeanScale& scale, std::size_t output,
                     std::size_t tree, leaf_t leaf) noexcept {
    const EntrySlice slice = table.entries(output, tree, leaf);
    MeanSum sum;
    if (slice.n == 0) return sum;
    table.with_entries(slice.begin, [&](const auto* ranks, auto units) {
        sum = sum_entries(ranks, units, slice.n, table.atoms(output).data(), scale, table.shift());
    });
    return sum;
}

LeafMeans::LeafMeans(const LeafTable& table, unsigned n_threads, Interruption& interruption)
    : steps_(table.n_outputs() * (table.n_leaves() + table.n_trees()), -1) {
    const bool pooled = table.arrays().pooled;
    if (pooled) units_.resize(steps_.size());
    const auto work = [&](std::size_t block) {
        const std::size_t o = block / table.n_trees();
        const std::size_t t = block % table.n_trees();
        const MeanScale scale = mean_scale(table, o);
        const double* atoms = table.atoms(o).data();
        const std::uint32_t* begin = table.leaf_begin(o, t);
        const std::size_t at = first(table, o, t);
        table.with_entries(table.tree_begin(o, t), [&](const auto* ranks, auto units) {
            for (std::size_t leaf = 0; leaf < table.n_leaves(t); ++leaf) {
                const std::uint32_t n = begin[leaf + 1] - begin[leaf];
                if (n == 0) continue;
                const MeanSum sum =
                    sum_entries(ranks + begin[leaf], units_behind(units, begin[leaf]), n, atoms,
                                scale, table.shift());
                steps_[at + leaf] = sum.steps;
                if (pooled) units_[at + leaf] = sum.units;
            }
        });
    };
    parallel_for(table.n_outputs() * table.n_trees(), n_threads, work, interruption);
    use_large_pages(steps_.data(), steps_.size() * sizeof(steps_[0]), interruption);
    use_large_pages(units_.data(), units_.size() * sizeof(units_[0]), interruption);
}

const LeafMeans* LeafMeansOnDemand::for_rows(const LeafTable& table, std::size_t n_rows,
                                             unsigned n_threads, Interruption& interruption) {
    if (const LeafMeans* known = known_.load(std::memory_order_acquire)) return known;
    const std::size_t asked = n_rows_.fetch_add(n_rows, std::memory_order_relaxed) + n_rows;
    if (asked < table.n_leaves() / table.n_trees() / 8) return nullptr;
    // Others find their own meanwhile, so that no signal's handler waits for what it interrupts.
    if (is_made_.exchange(true, std::memory_order_acquire)) return nullptr;
    try {
        means_ = std::make_unique<const LeafMeans>(table, n_threads, interruption);
    } catch (...) {
        is_made_.store(false, std::memory_order_release);
        throw;
    }
    known_.store(means_.get(), std::memory_order_release);
    return means_.get();
}

}  // namespace hdicore
