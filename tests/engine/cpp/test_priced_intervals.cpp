// test_priced_intervals.cpp: all pairs of atoms, prices together, gaps, hostile atoms
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include "check.hpp"
#include "pmf/priced_intervals.hpp"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

bool same(const PricedInterval& a, const PricedInterval& b) {
    return a.ends.lower == b.ends.lower && a.ends.upper == b.ends.upper && a.mass == b.mass;
}

PricedInterval at_price(const Pmf& pmf, double price, mass_t needed = 1) {
    PricedInterval found;
    CHECK(priced_intervals(pmf, pmf.max_abs(), needed, {&price, 1}, {&found, 1}));
    return found;
}

// By its definition.
PricedInterval by_all_pairs(const Pmf& pmf, double price, mass_t needed) {
    const long double unit =
        static_cast<long double>(price) / static_cast<long double>(pmf.total());
    const mass_t slack = 2 * static_cast<mass_t>(pmf.n_trees);
    const long double tolerance =
        unit * static_cast<long double>(slack) + static_cast<long double>(pmf.max_abs()) * 0x1p-48L;
    const auto mass = [&](std::size_t i, std::size_t j) {
        return pmf.cumulative[j + 1] - pmf.cumulative[i];
    };
    const auto surplus = [&](std::size_t i, std::size_t j) {
        return unit * static_cast<long double>(mass(i, j)) -
               (static_cast<long double>(pmf.values[j]) - pmf.values[i]);
    };
    const auto each_pair = [&](const auto& use) {
        for (std::size_t i = 0; i < pmf.size(); ++i) {
            for (std::size_t j = i; j < pmf.size(); ++j) {
                if (mass(i, j) >= needed) use(i, j);
            }
        }
    };
    long double most = -std::numeric_limits<long double>::infinity();
    each_pair([&](std::size_t i, std::size_t j) { most = std::max(most, surplus(i, j)); });
    mass_t heaviest = 0;
    each_pair([&](std::size_t i, std::size_t j) {
        if (surplus(i, j) >= most - tolerance) heaviest = std::max(heaviest, mass(i, j));
    });
    PricedInterval found{{1, 0}, 0};
    each_pair([&](std::size_t i, std::size_t j) {
        if (surplus(i, j) < most - tolerance || mass(i, j) < heaviest - slack) return;
        const bool is_first = found.mass == 0;
        if (is_first || (pmf.values[i] == found.ends.lower && mass(i, j) > found.mass)) {
            found = {{pmf.values[i], pmf.values[j]}, mass(i, j)};
        }
    });
    return found;
}

// A price near which many intervals of these atoms tie, or any.
double some_price(Random& random, const Pmf& pmf) {
    if (below(random, 2) == 0) return std::exp(8 * uniform(random) - 4);
    const std::size_t i = below(random, pmf.size());
    const std::size_t j = i + below(random, pmf.size() - i);
    const auto mass = static_cast<double>(pmf.cumulative[j + 1] - pmf.cumulative[i]);
    const double width = pmf.values[j] - pmf.values[i];
    return width > 0 ? width / mass * static_cast<double>(pmf.total()) : 1;
}

void equal_to_all_pairs() {
    Random random(1);
    for (int round = 0; round < 4000; ++round) {
        const std::size_t n_atoms = 1 + below(random, round % 40 == 0 ? 90 : 20);
        const Sample sample = random_sample(random, n_atoms);
        const Pmf pmf = sample.pmf();
        const mass_t needed =
            round % 3 == 0
                ? 1
                : 1 + static_cast<mass_t>(below(random, static_cast<std::size_t>(pmf.total())));
        const double price = some_price(random, pmf);
        const PricedInterval found = at_price(pmf, price, needed);
        CHECK(found.mass >= needed);
        CHECK(same(found, by_all_pairs(pmf, price, needed)));
    }
}

// As many blocks as there can be, some of them short.
void many_atoms_are_equal_to_all_pairs() {
    Random random(2);
    for (const std::size_t n_atoms : {511u, 512u, 513u, 700u}) {
        const Sample sample = random_sample(random, n_atoms);
        const Pmf pmf = sample.pmf();
        for (const double share : {0.0, 0.3, 0.9}) {
            const double price = some_price(random, pmf);
            const mass_t needed = pmf.needed(share);
            CHECK(same(at_price(pmf, price, needed), by_all_pairs(pmf, price, needed)));
        }
    }
}

void prices_together_are_answered_as_each_alone() {
    Random random(3);
    for (int round = 0; round < 500; ++round) {
        const Sample sample = random_sample(random, 1 + below(random, 100));
        const Pmf pmf = sample.pmf();
        const mass_t needed = pmf.needed(round % 2 == 0 ? 0 : uniform(random));
        std::vector<double> prices(1 + below(random, prices_at_once));
        for (double& price : prices) price = some_price(random, pmf);
        std::vector<PricedInterval> found(prices.size());
        CHECK(priced_intervals(pmf, pmf.max_abs(), needed, prices, found));
        for (std::size_t k = 0; k < prices.size(); ++k) {
            CHECK(same(found[k], at_price(pmf, prices[k], needed)));
        }
    }
}

// Atoms of which none can be an end become gaps.
void tails_are_enough() {
    Random random(4);
    for (int round = 0; round < 2000; ++round) {
        const Sample sample = random_sample(random, 2 + below(random, 60));
        const Pmf pmf = sample.pmf();
        const mass_t needed = pmf.needed(0.5 + 0.5 * uniform(random));
        const mass_t outside = pmf.total() - needed;
        std::size_t low = 1;
        while (low < pmf.size() && pmf.cumulative[low] <= outside) ++low;
        std::size_t high = pmf.size() - 1;
        while (high > 0 && pmf.total() - pmf.cumulative[high] <= outside) --high;
        if (high <= low) continue;
        std::vector<double> values(pmf.values.begin(), pmf.values.begin() + low);
        values.push_back(std::nan(""));
        values.insert(values.end(), pmf.values.begin() + high, pmf.values.end());
        std::vector<mass_t> masses(pmf.cumulative.begin(), pmf.cumulative.begin() + low + 1);
        masses.insert(masses.end(), pmf.cumulative.begin() + high, pmf.cumulative.end());
        const PartialPmf partial(values, masses, 1, wide_shift, pmf.max_abs());
        const double price = some_price(random, pmf);
        PricedInterval found;
        CHECK(priced_intervals(partial, partial.max_abs(), needed, {&price, 1}, {&found, 1}));
        CHECK(same(found, at_price(pmf, price, needed)));
    }
    const std::vector<double> nothing{std::nan("")};
    const std::vector<mass_t> all{0, 8};
    const std::vector<double> price{1};
    PricedInterval found;
    CHECK(!priced_intervals(PartialPmf(nothing, all, 1, 3, 6), 6, 1, price, {&found, 1}));
}

void hostile_atoms() {
    constexpr double largest = std::numeric_limits<double>::max();
    constexpr double tiny = std::numeric_limits<double>::denorm_min();
    const std::vector<mass_t> thirds{0, 3, 5, 8};
    for (const double price : {tiny, 1.0, 0x1p1000, largest}) {
        const std::vector<double> wide{-largest, 0, largest};
        const PricedInterval found = at_price(Pmf(wide, thirds, 0, 3), price);
        CHECK(same(found, {{-largest, -largest}, 3}));
        CHECK(same(at_price(Pmf(wide, thirds, 0, 3), price, 8), {{-largest, largest}, 8}));
        const std::vector<double> one{-largest};
        const std::vector<mass_t> whole{0, 8};
        CHECK(same(at_price(Pmf(one, whole, 1, 3), price), {{-largest, -largest}, 8}));
    }
    const std::vector<double> near_zero{-tiny, 0, tiny};
    CHECK(same(at_price(Pmf(near_zero, thirds, 0, 3), 1), {{-tiny, tiny}, 8}));
}

}  // namespace

int main() {
    equal_to_all_pairs();
    many_atoms_are_equal_to_all_pairs();
    prices_together_are_answered_as_each_alone();
    tails_are_enough();
    hostile_atoms();
    return check::finish();
}
