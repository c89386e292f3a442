// test_hdi.cpp: the sweep against all pairs of atoms, ties included
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include "check.hpp"
#include "pmf/hdi.hpp"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

double lower_median(const Atoms& atoms) {
    std::size_t k = 0;
    while (atoms.cumulative[k + 1] < atoms.needed(0.5)) ++k;
    return atoms.values[k];
}

// The definition, over all O(n^2) intervals that hold enough and cannot lose their last atom.
Interval by_enumeration(const Atoms& atoms, mass_t needed) {
    struct Candidate {
        std::size_t i, j;
        double width, distance;
        mass_t mass;
    };
    std::vector<Candidate> all;
    double shortest = std::numeric_limits<double>::infinity();
    const double median = lower_median(atoms);
    for (std::size_t i = 0; i < atoms.size(); ++i) {
        for (std::size_t j = i; j < atoms.size(); ++j) {
            const mass_t mass = atoms.cumulative[j + 1] - atoms.cumulative[i];
            if (mass < needed) continue;
            const double a = atoms.values[i];
            const double b = atoms.values[j];
            all.push_back({i, j, b - a, std::fabs(a / 2 + b / 2 - median), mass});
            shortest = std::min(shortest, b - a);
            break;
        }
    }
    const double largest =
        std::max(std::fabs(atoms.values.front()), std::fabs(atoms.values.back()));
    const double tied = shortest + largest * 0x1p-48;
    mass_t most = 0;
    for (const Candidate& c : all) {
        if (c.width <= tied) most = std::max(most, c.mass);
    }
    const Candidate* best = nullptr;
    for (const Candidate& c : all) {
        if (c.width > tied || c.mass < most - 2 * static_cast<mass_t>(atoms.n_trees)) continue;
        if (best == nullptr || c.distance < best->distance) best = &c;
    }
    return {atoms.values[best->i], atoms.values[best->j]};
}

void the_sweep_equals_enumeration() {
    Random random(1);
    for (int round = 0; round < 20000; ++round) {
        const Sample sample = random_sample(random, 1 + below(random, 14));
        const Atoms atoms = sample.atoms();
        const mass_t needed =
            below(random, 2) == 0
                ? atoms.needed(static_cast<double>(1 + below(random, 20)) / 20)
                : static_cast<mass_t>(1 + below(random, static_cast<std::size_t>(atoms.total())));
        const Interval found = shortest_interval(atoms, needed);
        const Interval expected = by_enumeration(atoms, needed);
        CHECK(found.lower == expected.lower && found.upper == expected.upper);
    }
}

void widths_rise_with_the_mass() {
    Random random(2);
    for (int round = 0; round < 200; ++round) {
        const Sample sample = random_sample(random, 30);
        const Atoms atoms = sample.atoms();
        double before = 0;
        for (int percent = 1; percent <= 100; ++percent) {
            const Interval hdi = shortest_interval(atoms, atoms.needed(percent / 100.0));
            CHECK(hdi.upper - hdi.lower >= before - 1e-12);
            before = hdi.upper - hdi.lower;
        }
        CHECK(before == sample.values.back() - sample.values.front());
    }
}

void samples_are_sorted_and_merged() {
    WeightedSample sample;
    sample.assign(std::vector<double>{3, -0.0, 3, 0.0, 1}, std::vector<double>{1, 1, 2, 1, 0});
    const Atoms atoms = sample.atoms();
    CHECK(atoms.size() == 2 && atoms.values[0] == 0 && atoms.values[1] == 3);
    CHECK(!std::signbit(atoms.values[0]));
    CHECK(atoms.total() == mass_t{1} << wide_shift &&
          atoms.cumulative[1] == atoms.total() / 5 * 2 + 0);
    sample.assign(std::vector<double>{7}, {});
    CHECK(sample.atoms().size() == 1 && sample.atoms().total() == mass_t{1} << wide_shift);
}

void any_order_gives_the_same_atoms() {
    Random random(3);
    std::vector<std::pair<double, double>> rows(50);
    for (auto& [value, weight] : rows) {
        value = static_cast<double>(below(random, 20));
        weight = uniform(random);
    }
    std::vector<mass_t> expected;
    for (int round = 0; round < 50; ++round) {
        std::shuffle(rows.begin(), rows.end(), random);
        std::vector<double> values;
        std::vector<double> weights;
        for (const auto& [value, weight] : rows) {
            values.push_back(value);
            weights.push_back(weight);
        }
        WeightedSample sample;
        sample.assign(values, weights);
        const Atoms atoms = sample.atoms();
        const std::vector<mass_t> found(atoms.cumulative.begin(), atoms.cumulative.end());
        if (round == 0) expected = found;
        CHECK(found == expected);
    }
}

void bad_samples_are_refused() {
    const double inf = std::numeric_limits<double>::infinity();
    const auto assign = [](std::vector<double> values, std::vector<double> weights) {
        WeightedSample().assign(values, weights);
    };
    CHECK_REFUSED(assign({}, {}), "at least one value");
    CHECK_REFUSED(assign({1, inf}, {}), "finite");
    CHECK_REFUSED(assign({std::nan("")}, {}), "finite");
    CHECK_REFUSED(assign({1, 2}, {1, -1}), "position 1");
    CHECK_REFUSED(assign({1, 2}, {inf, 1}), "position 0");
    CHECK_REFUSED(assign({1, 2}, {0, 0}), "zero");
}

}  // namespace

int main() {
    the_sweep_equals_enumeration();
    widths_rise_with_the_mass();
    samples_are_sorted_and_merged();
    any_order_gives_the_same_atoms();
    bad_samples_are_refused();
    return check::finish();
}
