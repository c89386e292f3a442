// merge/output_merge.cpp: adds the masses of vectors with one target, all or those of the tails
// SPDX-License-Identifier: BSD-3-Clause
#include "merge/output_merge.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/fixed_point.hpp"

namespace hdicore {

OutputMerge::OutputMerge(const LeafIndex& index, const Kernels& kernels)
    : index_(index),
      accumulator_(index, kernels),
      first_(std::make_unique_for_overwrite<std::size_t[]>(index.n_vectors())),
      ranks_(std::make_unique_for_overwrite<rank_t[]>(index.n_vectors())),
      picked_(std::make_unique_for_overwrite<std::uint32_t[]>(index.n_vectors())) {}

void OutputMerge::assign(Accumulator& vectors, const Added& added) noexcept {
    const VectorMasses all = vectors.read_vectors(added);
    masses_ = all.masses;
    n_trees_ = added.n_trees;
    const std::size_t n_outputs = index_.n_outputs();
    for (std::size_t k = 0; k < masses_.size(); ++k) first_[k] = all.vectors[k] * n_outputs;
}

Pmf OutputMerge::whole(std::size_t output) noexcept {
    const rank_t* ranks = index_.arrays().vector_ranks.data() + output;
    Added added{{std::numeric_limits<rank_t>::max(), 0}, n_trees_};
    for (std::size_t k = 0; k < masses_.size(); ++k) {
        const rank_t rank = ranks[first_[k]];
        added.bounds.first = std::min(added.bounds.first, rank);
        added.bounds.last = std::max(added.bounds.last, rank);
        accumulator_.add(rank, masses_[k]);
    }
    return accumulator_.read(output, added);
}

std::optional<PartialPmf> OutputMerge::tails(std::size_t output, double min_share) noexcept {
    const std::span<const double> atoms = index_.atoms(output);
    const int shift = std::max(0, static_cast<int>(std::bit_width(atoms.size() - 1)) - 8);
    find_ranks(output, shift);
    // An interval may start at each atom up to the first one behind the mass `outside`, and end
    // likewise: if both tails hold more than that, all these atoms are in them.
    const mass_t total = static_cast<mass_t>(n_trees_) << index_.shift();
    const mass_t outside = total - required_units(min_share, n_trees_, index_.shift());
    std::size_t low = 0, high = max_bins;
    mass_t low_mass = 0, high_mass = 0;
    while (low_mass <= outside && low < high) low_mass += bins_[low++];
    while (high_mass <= outside && low < high) high_mass += bins_[--high];
    if (low >= high) return std::nullopt;

    const auto end_of_low = static_cast<rank_t>(low << shift);
    const auto begin_of_high = static_cast<rank_t>(high << shift);
    const RankBounds outermost = add_tails(end_of_low, begin_of_high);
    const std::array<RankRange, 2> ranges{
        {{outermost.first, end_of_low, 0}, {begin_of_high, outermost.last + 1, total - high_mass}}};
    const double max_abs =
        std::max(std::fabs(atoms[outermost.first]), std::fabs(atoms[outermost.last]));
    return accumulator_.read_partial(output, n_trees_, ranges, max_abs);
}

void OutputMerge::find_ranks(std::size_t output, int shift) noexcept {
    const rank_t* ranks = index_.arrays().vector_ranks.data() + output;
    bins_.fill(0);
    for (std::size_t k = 0; k < masses_.size(); ++k) {
        ranks_[k] = ranks[first_[k]];
        bins_[ranks_[k] >> shift] += masses_[k];
    }
}

// Which vectors are picked is as good as random, so that nothing branches on it.
RankBounds OutputMerge::add_tails(rank_t low, rank_t high) noexcept {
    std::size_t n = 0;
    for (std::size_t k = 0; k < masses_.size(); ++k) {
        picked_[n] = static_cast<std::uint32_t>(k);
        n += ranks_[k] - low >= high - low;
    }
    RankBounds bounds{std::numeric_limits<rank_t>::max(), 0};
    for (std::size_t p = 0; p < n; ++p) {
        const rank_t rank = ranks_[picked_[p]];
        bounds.first = std::min(bounds.first, rank);
        bounds.last = std::max(bounds.last, rank);
        accumulator_.add(rank, masses_[picked_[p]]);
    }
    return bounds;
}

}  // namespace hdicore
