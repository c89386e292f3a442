// merge/tails.cpp: guesses where the tails end, merges them, and checks their masses
// SPDX-License-Identifier: BSD-3-Clause
#include "merge/tails.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace hdicore {
namespace {

// The mean, over the leaves, of the rank at a given share of a leaf's entries, from both ends.
// Leaves differ, which makes their mixture wider than each of them, so that this is mostly a little
// too far in.
class TailGuess {
  public:
    explicit TailGuess(double share) noexcept : share_(static_cast<std::uint64_t>(share * one)) {}

    // Ranks (n,) of one more leaf.
    template <class Rank>
    void add(const Rank* ranks, std::uint32_t n) noexcept {
        // The share of few entries is no whole number: rounding it up and down in turn, by a
        // sequence that fills [0, 1) evenly, gives the mean that interpolation would.
        turn_ += golden;
        const std::uint64_t inner = (share_ * n + turn_ % one) / one;
        const std::uint64_t from_end = std::min<std::uint64_t>(inner, n - 1);
        low_ += ranks[from_end];
        high_ += ranks[n - 1 - from_end];
    }

    Tails tails(std::size_t n_leaves) const noexcept {
        return {static_cast<rank_t>(low_ / n_leaves), static_cast<rank_t>(high_ / n_leaves)};
    }

  private:
    static constexpr std::uint64_t one = std::uint64_t{1} << 16;
    static constexpr std::uint64_t golden = 40503;  // 2^16 / 1.618...

    std::uint64_t share_;
    std::uint64_t turn_ = 0;
    std::uint64_t low_ = 0;
    std::uint64_t high_ = 0;
};

}  // namespace

std::optional<PartialPmf> merge_tails(Accumulator& accumulator, std::size_t output,
                                      RowSlices slices, double min_share) noexcept {
    const LeafIndex& index = accumulator.index();
    if (index.shift() != narrow_shift) return std::nullopt;
    // Units of large leaves are in no table.
    if (accumulator.has_large(slices)) return std::nullopt;
    TailGuess guess(1 - min_share);
    std::visit(
        [&](const auto& ranks) {
            for (const EntrySlice& slice : slices) guess.add(ranks.data() + slice.begin, slice.n);
        },
        index.arrays().ranks);
    Tails tails = guess.tails(slices.size());
    if (tails.low >= tails.high) return std::nullopt;

    accumulator.add_tails(slices, tails);
    const mass_t total = static_cast<mass_t>(slices.size()) << index.shift();
    const std::array<RankRange, 2> ranges{
        {{tails.first, tails.low + 1, 0}, {tails.high, tails.last + 1, total - tails.high_mass}}};
    const std::span<const double> atoms = index.atoms(output);
    const double max_abs = std::max(std::fabs(atoms[tails.first]), std::fabs(atoms[tails.last]));
    const PartialPmf pmf = accumulator.read_partial(output, slices.size(), ranges, max_abs);
    // An interval may start at each atom up to the first one behind the mass `outside`, and end
    // likewise: if both tails hold more than that, all these atoms are in them.
    const mass_t outside = total - required_units(min_share, slices.size(), index.shift());
    if (tails.low_mass <= outside || tails.high_mass <= outside) return std::nullopt;
    return pmf;
}

}  // namespace hdicore
