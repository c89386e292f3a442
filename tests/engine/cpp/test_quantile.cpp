// test_quantile.cpp: quantiles against a search from the left
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

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

void inverted_cdf_is_the_first_atom_that_reaches_the_level() {
    Random random(1);
    for (int round = 0; round < 5000; ++round) {
        const Sample sample = random_sample(random, 1 + below(random, 10));
        const Pmf pmf = sample.pmf();
        const double level =
            below(random, 2) == 0 ? uniform(random) : 0.05 * static_cast<double>(below(random, 21));
        std::size_t k = 0;
        while (pmf.cumulative[k + 1] < pmf.needed(level)) ++k;
        CHECK(quantile(pmf, level, Interpolation::inverted_cdf) == pmf.values[k]);
    }
}

void every_interpolation_is_monotone_within_the_support() {
    Random random(2);
    for (int round = 0; round < 300; ++round) {
        const Sample sample = random_sample(random, 1 + below(random, 10));
        const Pmf pmf = sample.pmf();
        for (const Interpolation interpolation : all_interpolations) {
            double before = sample.values.front();
            CHECK(quantile(pmf, 0, interpolation) == before);
            for (int step = 1; step <= 100; ++step) {
                const double now = quantile(pmf, step / 100.0, interpolation);
                CHECK(now >= before - 1e-12 && now <= sample.values.back());
                before = now;
            }
            CHECK(quantile(pmf, 1, interpolation) == sample.values.back());
        }
        const double level = uniform(random);
        const double low = quantile(pmf, level, Interpolation::lower);
        const double high = quantile(pmf, level, Interpolation::higher);
        for (const Interpolation interpolation :
             {Interpolation::linear, Interpolation::midpoint, Interpolation::nearest}) {
            const double between = quantile(pmf, level, interpolation);
            CHECK(between >= low && between <= high);
        }
    }
}

void equal_atoms_interpolate_as_numpy_does() {
    Sample sample;
    for (int k = 0; k < 5; ++k) {
        sample.values.push_back(k);
        sample.cumulative.push_back(floor_units(static_cast<count_t>(k + 1), 5, wide_shift));
    }
    const Pmf pmf = sample.pmf();
    for (int step = 0; step <= 40; ++step) {
        const double level = step / 40.0;
        CHECK(std::fabs(quantile(pmf, level, Interpolation::linear) - 4 * level) < 1e-9);
    }
    CHECK(quantile(pmf, 0.25, Interpolation::higher) == 1);
    CHECK(quantile(pmf, 0.3, Interpolation::midpoint) == 1.5);
    CHECK(quantile(pmf, 0.4, Interpolation::averaged_inverted_cdf) == 1.5);
    CHECK(quantile(pmf, 0.41, Interpolation::averaged_inverted_cdf) == 2);
}

}  // namespace

int main() {
    inverted_cdf_is_the_first_atom_that_reaches_the_level();
    every_interpolation_is_monotone_within_the_support();
    equal_atoms_interpolate_as_numpy_does();
    return check::finish();
}
