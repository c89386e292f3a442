// test_hdi.cpp: gaps in a distribution against the whole of it, ties included
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include "check.hpp"
#include "pmf/hdi.hpp"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

double lower_median(const Pmf& pmf) {
    std::size_t k = 0;
    while (pmf.cumulative[k + 1] < pmf.needed(0.5)) ++k;
    return pmf.values[k];
}

// The definition, over all O(n^2) intervals that hold enough and cannot lose their last atom.
Interval by_enumeration(const Pmf& pmf, mass_t needed) {
    struct Candidate {
        std::size_t i, j;
        double width, distance;
        mass_t mass;
    };
    std::vector<Candidate> all;
    double shortest = std::numeric_limits<double>::infinity();
    const double median = lower_median(pmf);
    for (std::size_t i = 0; i < pmf.size(); ++i) {
        for (std::size_t j = i; j < pmf.size(); ++j) {
            const mass_t mass = pmf.cumulative[j + 1] - pmf.cumulative[i];
            if (mass < needed) continue;
            const double a = pmf.values[i];
            const double b = pmf.values[j];
            all.push_back({i, j, b - a, std::fabs(a / 2 + b / 2 - median), mass});
            shortest = std::min(shortest, b - a);
            break;
        }
    }
    const double tied = shortest + pmf.max_abs() * 0x1p-48;
    mass_t most = 0;
    for (const Candidate& c : all) {
        if (c.width <= tied) most = std::max(most, c.mass);
    }
    const Candidate* best = nullptr;
    for (const Candidate& c : all) {
        if (c.width > tied || c.mass < most - 2 * static_cast<mass_t>(pmf.n_trees)) continue;
        if (best == nullptr || c.distance < best->distance) best = &c;
    }
    return {pmf.values[best->i], pmf.values[best->j]};
}

void the_sweep_equals_enumeration() {
    Random random(1);
    for (int round = 0; round < 7000; ++round) {
        // Mostly few atoms, as each case is then likely; some hundreds for long ways between
        // starts.
        const std::size_t most = round % 20 == 0 ? 600 : 14;
        const Sample sample = random_sample(random, 1 + below(random, most));
        const Pmf pmf = sample.pmf();
        const mass_t needed =
            below(random, 2) == 0
                ? pmf.needed(static_cast<double>(1 + below(random, 20)) / 20)
                : static_cast<mass_t>(1 + below(random, static_cast<std::size_t>(pmf.total())));
        const Interval found = shortest_interval(pmf, needed);
        const Interval expected = by_enumeration(pmf, needed);
        CHECK(found.lower == expected.lower && found.upper == expected.upper);
    }
}

// Atoms that are no ends of a shortest interval disappear in gaps, in long runs and in short ones.
void gaps_between_the_ends_change_nothing() {
    Random random(3);
    int n_found = 0;
    for (int round = 0; round < 4000; ++round) {
        const Sample sample = random_sample(random, 2 + below(random, 400));
        const Pmf pmf = sample.pmf();
        const mass_t needed = pmf.needed(static_cast<double>(1 + below(random, 20)) / 20);
        const Interval expected = shortest_interval(pmf, needed);
        const double limit = expected.upper - expected.lower + pmf.max_abs() * 0x1p-47;
        std::vector<bool> is_end(pmf.size(), false);
        for (std::size_t i = 0; i < pmf.size() && pmf.total() - pmf.cumulative[i] >= needed; ++i) {
            const std::size_t j = pmf.first_reaching(pmf.cumulative[i] + needed);
            if (pmf.values[j] - pmf.values[i] <= limit) is_end[i] = is_end[j] = true;
        }
        std::vector<double> values;
        std::vector<mass_t> cumulative{0};
        const std::size_t run = 1 + below(random, 60);
        bool hides = false;
        for (std::size_t k = 0; k < pmf.size(); ++k) {
            if (below(random, run) == 0) hides = !hides;
            const bool hidden = hides && !is_end[k];
            const double value = hidden ? std::nan("") : pmf.values[k];
            if (hidden && !values.empty() && std::isnan(values.back())) {
                cumulative.back() = pmf.cumulative[k + 1];
            } else {
                values.push_back(value);
                cumulative.push_back(pmf.cumulative[k + 1]);
            }
        }
        const PartialPmf partial(values, cumulative, pmf.n_trees, pmf.shift, pmf.max_abs());
        const auto found = shortest_interval(partial, needed);
        if (!found) continue;  // the median has to decide
        ++n_found;
        CHECK(found->lower == expected.lower && found->upper == expected.upper);
    }
    CHECK(n_found > 2000);
}

// Two gaps of known mass. Ends in them are never chosen, and a median in one decides nothing.
void gaps_leave_open_what_lies_in_them() {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const std::vector<double> whole{0, 1, 2, 5, 6};
    const std::vector<double> holed{0, 1, nan, 5, 6};
    const mass_t unit = mass_t{1} << (wide_shift - 3);
    const std::vector<mass_t> cumulative{0, 2 * unit, 3 * unit, 5 * unit, 6 * unit, 8 * unit};
    const Pmf pmf(whole, cumulative, 1, wide_shift);
    const PartialPmf partial(holed, cumulative, 1, wide_shift, 6);
    // Two intervals of the same width and mass, [0, 1] and [1, 2]: the median is in the gap.
    const Interval tied = shortest_interval(pmf, 3 * unit);
    CHECK(tied.lower == 1 && tied.upper == 2);
    CHECK(!shortest_interval(partial, 3 * unit));
    const auto all = shortest_interval(partial, 8 * unit);
    CHECK(all && all->lower == 0 && all->upper == 6);
    const std::vector<double> nothing(5, nan);
    CHECK(!shortest_interval(PartialPmf(nothing, cumulative, 1, wide_shift, 6), 3 * unit));
}

}  // namespace

int main() {
    the_sweep_equals_enumeration();
    gaps_between_the_ends_change_nothing();
    gaps_leave_open_what_lies_in_them();
    return check::finish();
}
