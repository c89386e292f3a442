// test_reading.cpp: how much is needed for what is asked, and what a gap leaves open
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include "check.hpp"
#include "samples.hpp"
#include "scoring/reading.hpp"

using namespace hdicore;
using namespace samples;

namespace {

void means_and_draws_need_every_atom() {
    double result = 0;
    const std::vector<double> levels{0.1};
    Wanted wanted;
    wanted.levels = levels;
    wanted.quantiles = &result;
    CHECK(!needs_all(wanted) && std::fabs(least_share(wanted) - 0.9) < 1e-5);
    wanted.interpolation = Interpolation::linear;
    CHECK(needs_all(wanted) && least_share(wanted) == 0);
    for (double* Wanted::* one : {&Wanted::mean, &Wanted::cdf, &Wanted::draws}) {
        Wanted other;
        CHECK(!needs_all(other));
        other.*one = &result;
        CHECK(needs_all(other));
    }
}

void least_share_is_that_of_the_widest_tails() {
    const std::vector<double> coverages{0.95, 0.7, 1};
    Wanted wanted;
    wanted.coverages = coverages;
    CHECK(least_share(wanted) == 0.7);
    wanted.kind = Kind::equal_tailed;
    CHECK(least_share(wanted) < 0.85 && least_share(wanted) > 0.8499);
}

void silence_is_nan_and_ties_across_a_gap_are_open() {
    const std::vector<double> coverages{0.5};
    std::vector<double> results(2);
    Wanted wanted;
    wanted.coverages = coverages;
    wanted.intervals = results.data();
    const std::vector<mass_t> nothing{0};
    CHECK(read({{}, nothing, 0, wide_shift}, wanted, 0));
    CHECK(std::isnan(results[0]) && std::isnan(results[1]));

    // Two intervals of the same width and mass: the median decides, which lies in the gap.
    const std::vector<double> values{0, 1, std::numeric_limits<double>::quiet_NaN(), 5, 6};
    const mass_t unit = mass_t{1} << (wide_shift - 3);
    const std::vector<mass_t> cumulative{0, 2 * unit, 3 * unit, 5 * unit, 6 * unit, 8 * unit};
    const std::vector<double> three_eighths{0.375};
    wanted.coverages = three_eighths;
    Atoms atoms{values, cumulative, 1, wide_shift, true, 6};
    CHECK(!read(atoms, wanted, 0));
    const std::vector<double> whole{0, 1, 2, 5, 6};
    atoms = {whole, cumulative, 1, wide_shift};
    CHECK(read(atoms, wanted, 0) && results[0] == 1 && results[1] == 2);
}

}  // namespace

int main() {
    means_and_draws_need_every_atom();
    least_share_is_that_of_the_widest_tails();
    silence_is_nan_and_ties_across_a_gap_are_open();
    return check::finish();
}
