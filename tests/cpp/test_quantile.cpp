// test_quantile.cpp: quantiles against a search from the left; what intervals of each kind hold
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include "check.hpp"
#include "pmf/quantile.hpp"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

constexpr Interpolation all_interpolations[] = {Interpolation::inverted_cdf,
                                                Interpolation::averaged_inverted_cdf,
                                                Interpolation::linear,
                                                Interpolation::lower,
                                                Interpolation::higher,
                                                Interpolation::midpoint,
                                                Interpolation::nearest,
                                                Interpolation::closest_observation,
                                                Interpolation::interpolated_inverted_cdf,
                                                Interpolation::hazen,
                                                Interpolation::weibull,
                                                Interpolation::median_unbiased,
                                                Interpolation::normal_unbiased};

mass_t mass_within(const Atoms& atoms, const Interval& interval) {
    mass_t mass = 0;
    for (std::size_t k = 0; k < atoms.size(); ++k) {
        if (atoms.values[k] < interval.lower || atoms.values[k] > interval.upper) continue;
        mass += atoms.cumulative[k + 1] - atoms.cumulative[k];
    }
    return mass;
}

void inverted_cdf_is_the_first_atom_that_reaches_the_level() {
    Random random(1);
    for (int round = 0; round < 5000; ++round) {
        const Sample sample = random_sample(random, 1 + below(random, 10));
        const Atoms atoms = sample.atoms();
        const double level =
            below(random, 2) == 0 ? uniform(random) : 0.05 * static_cast<double>(below(random, 21));
        std::size_t k = 0;
        while (atoms.cumulative[k + 1] < atoms.needed(level)) ++k;
        CHECK(quantile(atoms, level, Interpolation::inverted_cdf) == atoms.values[k]);
    }
}

void every_interpolation_is_monotone_within_the_support() {
    Random random(2);
    for (int round = 0; round < 300; ++round) {
        const Sample sample = random_sample(random, 1 + below(random, 10));
        const Atoms atoms = sample.atoms();
        for (const Interpolation interpolation : all_interpolations) {
            double before = sample.values.front();
            CHECK(quantile(atoms, 0, interpolation) == before);
            for (int step = 1; step <= 100; ++step) {
                const double now = quantile(atoms, step / 100.0, interpolation);
                CHECK(now >= before - 1e-12 && now <= sample.values.back());
                before = now;
            }
            CHECK(quantile(atoms, 1, interpolation) == sample.values.back());
        }
        const double level = uniform(random);
        const double low = quantile(atoms, level, Interpolation::lower);
        const double high = quantile(atoms, level, Interpolation::higher);
        for (const Interpolation interpolation :
             {Interpolation::linear, Interpolation::midpoint, Interpolation::nearest}) {
            const double between = quantile(atoms, level, interpolation);
            CHECK(between >= low && between <= high);
        }
    }
}

void equal_atoms_interpolate_as_numpy_does() {
    Sample sample;
    for (int k = 0; k < 5; ++k) {
        sample.values.push_back(k);
        sample.cumulative.push_back(share(static_cast<count_t>(k + 1), 5, wide_shift));
    }
    const Atoms atoms = sample.atoms();
    for (int step = 0; step <= 40; ++step) {
        const double level = step / 40.0;
        CHECK(std::fabs(quantile(atoms, level, Interpolation::linear) - 4 * level) < 1e-9);
    }
    CHECK(quantile(atoms, 0.25, Interpolation::higher) == 1);
    CHECK(quantile(atoms, 0.3, Interpolation::midpoint) == 1.5);
    CHECK(quantile(atoms, 0.4, Interpolation::averaged_inverted_cdf) == 1.5);
    CHECK(quantile(atoms, 0.41, Interpolation::averaged_inverted_cdf) == 2);
}

void intervals_hold_their_coverage() {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    Random random(3);
    for (int round = 0; round < 2000; ++round) {
        const Sample sample = random_sample(random, 1 + below(random, 20));
        const Atoms atoms = sample.atoms();
        const double coverage = below(random, 2) == 0
                                    ? 1 - uniform(random)
                                    : 0.05 * static_cast<double>(1 + below(random, 20));
        const mass_t needed = atoms.needed(std::min(coverage, 1.0));
        const Interval hdi = interval(atoms, coverage, Kind::hdi);
        const Interval tailed = interval(atoms, coverage, Kind::equal_tailed);
        const Interval lower = interval(atoms, coverage, Kind::lower);
        const Interval upper = interval(atoms, coverage, Kind::upper);
        for (const Interval& found : {hdi, tailed, lower, upper}) {
            CHECK(mass_within(atoms, found) >= needed);
        }
        // Widths that differ only by rounding are tied.
        CHECK(hdi.upper - hdi.lower <= tailed.upper - tailed.lower + 1e-13);
        // One atom less would not be enough.
        CHECK(lower.upper == infinity && upper.lower == -infinity);
        CHECK(mass_within(atoms, {std::nextafter(lower.lower, infinity), infinity}) < needed);
        CHECK(mass_within(atoms, {-infinity, std::nextafter(upper.upper, -infinity)}) < needed);
    }
}

}  // namespace

int main() {
    inverted_cdf_is_the_first_atom_that_reaches_the_level();
    every_interpolation_is_monotone_within_the_support();
    equal_atoms_interpolate_as_numpy_does();
    intervals_hold_their_coverage();
    return check::finish();
}
