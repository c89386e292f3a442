// pmf/priced_intervals.cpp: one scan for the most surplus, and one of the few blocks that reach it
// SPDX-License-Identifier: BSD-3-Clause
#include "pmf/priced_intervals.hpp"

#include <algorithm>
#include <array>

namespace hdicore {
namespace {

// The worth of an atom at each price is price * share - value. These loops become vector
// instructions, and keep what they had where the worth is NaN.
inline void keep_least(std::size_t n, const double* __restrict price, double share, double value,
                       double* __restrict least) noexcept {
    for (std::size_t l = 0; l < n; ++l) {
        const double worth = price[l] * share - value;
        least[l] = worth < least[l] ? worth : least[l];
    }
}

inline void keep_most(std::size_t n, const double* __restrict price, double share, double value,
                      const double* __restrict least, double* __restrict most) noexcept {
    for (std::size_t l = 0; l < n; ++l) {
        const double surplus = price[l] * share - value - least[l];
        most[l] = surplus > most[l] ? surplus : most[l];
    }
}

// The search for up to n_lanes prices at once.
//
// A surplus is the worth of its end less that of its start: with the share up to the end and with
// it, and with the share before the start. The first scan keeps the least worth of the starts so
// far, and the most surplus. What it has after each block of atoms tells the second scan which
// blocks may hold ends and starts of tied intervals.
template <std::size_t n_lanes>
class Search {
  public:
    Search(const StepFunction& steps, double max_abs, mass_t needed,
           std::span<const double> prices) noexcept
        : values_(steps.values.data()),
          cumulative_(steps.cumulative.data()),
          n_atoms_(steps.size()),
          block_(std::max<std::size_t>(16, (n_atoms_ + max_blocks - 1) / max_blocks)),
          n_blocks_((n_atoms_ + block_ - 1) / block_),
          needed_(needed),
          slack_(steps.rounding),
          // Whole vectors, with the last price again.
          n_(n_lanes == 1 ? 1 : (prices.size() + 3) / 4 * 4),
          unit_(1 / static_cast<double>(steps.total())) {
        for (std::size_t l = 0; l < n_; ++l) {
            price_[l] = scale * prices[std::min(l, prices.size() - 1)];
            tolerance_[l] = price_[l] * (static_cast<double>(slack_) * unit_) +
                            tie_tolerance * (scale * max_abs);
        }
        scan();
    }

    // Whether there is an interval.
    bool find(std::size_t lane, PricedInterval& found) const noexcept {
        double most = -infinity;
        for (std::size_t b = 0; b < n_blocks_; ++b) most = std::max(most, most_[b][lane]);
        if (most == -infinity) return false;
        const double tied = most - tolerance_[lane];
        std::size_t n_tied = 0;
        mass_t max_mass = 0;
        each_tied(lane, tied, max_mass, [&](std::size_t i, std::size_t j, mass_t mass) {
            ++n_tied;
            max_mass = std::max(max_mass, mass);
            found = {{values_[i], values_[j]}, mass};
        });
        if (n_tied == 1) return true;
        const mass_t min_mass = max_mass - slack_;
        std::size_t first = n_atoms_;
        each_tied(lane, tied, max_mass, [&](std::size_t i, std::size_t j, mass_t mass) {
            // Of the ends of intervals from one start the last: that with most mass.
            const bool better = i < first || (i == first && mass > found.mass);
            if (mass < min_mass || !better) return;
            first = i;
            found = {{values_[i], values_[j]}, mass};
        });
        return true;
    }

  private:
    static constexpr std::size_t max_blocks = 32;
    // Keeps sums of a price and two values finite.
    static constexpr double scale = 0x1p-3;
    using Lanes = std::array<double, n_lanes>;

    double value(std::size_t k) const noexcept { return scale * values_[k]; }
    double share(std::size_t k) const noexcept {
        return static_cast<double>(cumulative_[k]) * unit_;
    }
    double worth(std::size_t lane, double share, double value) const noexcept {
        return price_[lane] * share - value;
    }
    // Last mass before a start from which an interval to atom j holds enough.
    mass_t last_before(std::size_t j) const noexcept { return cumulative_[j + 1] - needed_; }

    // Atoms in gaps are NaN: then no comparison holds.
    void scan() noexcept {
        Lanes least;
        least.fill(infinity);
        std::size_t start = 0;
        const std::size_t n = n_lanes == 1 ? 1 : n_;  // so that the compiler knows one lane
        for (std::size_t b = 0; b < n_blocks_; ++b) {
            first_start_[b] = start;
            Lanes most;
            most.fill(-infinity);
            const std::size_t end = std::min(n_atoms_, (b + 1) * block_);
            for (std::size_t j = b * block_; j < end; ++j) {
                for (const mass_t before = last_before(j); cumulative_[start] <= before; ++start) {
                    keep_least(n, price_.data(), share(start), value(start), least.data());
                }
                keep_most(n, price_.data(), share(j + 1), value(j), least.data(), most.data());
            }
            least_[b] = least;
            most_[b] = most;
        }
    }

    // Calls visit(i, j, mass) for each end j of a tied interval and the first start i of one with
    // that end, blocks of ends backwards; but for ends that are too far left for a mass of max_mass
    // less the slack, which the call may raise.
    template <class Visit>
    void each_tied(std::size_t lane, double tied, const mass_t& max_mass,
                   const Visit& visit) const noexcept {
        for (std::size_t b = n_blocks_; b-- > 0;) {
            const std::size_t end = std::min(n_atoms_, (b + 1) * block_);
            if (cumulative_[end] < max_mass - slack_) return;
            if (!(most_[b][lane] >= tied)) continue;
            double least = b == 0 ? infinity : least_[b - 1][lane];
            std::size_t start = first_start_[b];
            for (std::size_t j = b * block_; j < end; ++j) {
                for (; cumulative_[start] <= last_before(j); ++start) {
                    least = std::min(least, start_worth(lane, start));
                }
                const double of_end = worth(lane, share(j + 1), value(j));
                if (!(of_end - least >= tied) || cumulative_[j + 1] < max_mass - slack_) continue;
                const std::size_t i = first_tied_start(lane, of_end, tied, b);
                visit(i, j, cumulative_[j + 1] - cumulative_[i]);
            }
        }
    }

    double start_worth(std::size_t lane, std::size_t start) const noexcept {
        const double of_start = worth(lane, share(start), value(start));
        return of_start < infinity ? of_start : infinity;
    }

    // There is one, admitted in the block `last` of its end or before.
    std::size_t first_tied_start(std::size_t lane, double of_end, double tied,
                                 std::size_t last) const noexcept {
        std::size_t b = 0;
        while (b < last && !(of_end - least_[b][lane] >= tied)) ++b;
        std::size_t i = first_start_[b];
        while (!(of_end - start_worth(lane, i) >= tied)) ++i;
        return i;
    }

    const double* values_;
    const mass_t* cumulative_;
    std::size_t n_atoms_;
    std::size_t block_;  // atoms of a block
    std::size_t n_blocks_;
    mass_t needed_;
    mass_t slack_;
    std::size_t n_;  // lanes in use
    double unit_;    // share of a unit
    Lanes price_;
    Lanes tolerance_;
    // Of each block: the first start that its ends admit; most surplus of an interval that ends in
    // it; least worth of a start admitted up to its end.
    std::array<std::size_t, max_blocks> first_start_;
    std::array<Lanes, max_blocks> most_;
    std::array<Lanes, max_blocks> least_;
};

template <std::size_t n_lanes>
bool find_all(const StepFunction& steps, double max_abs, mass_t needed,
              std::span<const double> prices, std::span<PricedInterval> found) noexcept {
    const Search<n_lanes> search(steps, max_abs, needed, prices);
    for (std::size_t k = 0; k < prices.size(); ++k) {
        if (!search.find(k, found[k])) return false;
    }
    return true;
}

}  // namespace

bool priced_intervals(const StepFunction& pmf, double max_abs, mass_t needed,
                      std::span<const double> prices, std::span<PricedInterval> found) noexcept {
    const auto find_some = prices.size() == 1 ? find_all<1> : find_all<32>;
    return find_some(pmf, max_abs, needed, prices, found);
}

}  // namespace hdicore
