// test_smoothed_hdi.cpp: the sums against their definition, any number of windows, hostile atoms
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include "check.hpp"
#include "pmf/smoothed_hdi.hpp"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

bool same(const Interval& a, const Interval& b) {
    return a.lower == b.lower && a.upper == b.upper;
}

// Atoms of equal mass.
Sample equal_atoms(std::vector<double> values) {
    Sample sample;
    sample.values = std::move(values);
    for (std::size_t k = 1; k <= sample.values.size(); ++k) {
        sample.cumulative.push_back(floor_units(k, sample.values.size(), wide_shift));
    }
    return sample;
}

std::vector<Interval> all_windows(const Pmf& pmf, mass_t needed) {
    std::vector<Interval> windows;
    for (std::size_t i = 0; i < pmf.size(); ++i) {
        for (std::size_t j = i; j < pmf.size(); ++j) {
            if (pmf.cumulative[j + 1] - pmf.cumulative[i] < needed) continue;
            windows.push_back({pmf.values[i], pmf.values[j]});
            break;
        }
    }
    return windows;
}

Interval by_definition(const Pmf& pmf, mass_t needed) {
    const std::vector<Interval> windows = all_windows(pmf, needed);
    double least = std::numeric_limits<double>::infinity();
    for (const Interval& w : windows) least = std::min(least, w.upper - w.lower);
    if (least <= 0x1p-48 * pmf.max_abs()) return shortest_interval(pmf, needed);
    long double total = 0, lower = 0, upper = 0;
    for (const Interval& w : windows) {
        const long double width = w.upper - w.lower;
        if (width > 8.5 * least) continue;
        const long double weight = std::exp(-(width - least) / (0.2L * least));
        total += weight;
        lower += weight * w.lower;
        upper += weight * w.upper;
    }
    return {static_cast<double>(lower / total), static_cast<double>(upper / total)};
}

void check_definition(const Pmf& pmf, mass_t needed) {
    const Interval found = smoothed_hdi(pmf, needed);
    const Interval expected = by_definition(pmf, needed);
    const double tolerance = 1e-13 * pmf.max_abs();
    CHECK(found.lower <= found.upper);
    CHECK(std::fabs(found.lower - expected.lower) <= tolerance);
    CHECK(std::fabs(found.upper - expected.upper) <= tolerance);
}

void the_sums_are_those_of_the_definition() {
    Random random(1);
    for (int round = 0; round < 3000; ++round) {
        const Sample sample = random_sample(random, 1 + below(random, 200));
        const Pmf pmf = sample.pmf();
        check_definition(pmf, pmf.needed(1 - uniform(random)));
    }
}

// Windows are found in runs of 1024 and summed in blocks of 64.
void any_number_of_windows_is_summed() {
    for (const std::size_t n : {1, 63, 64, 65, 1023, 1024, 1025, 2047, 2048, 2049, 3000}) {
        std::vector<double> values;
        for (std::size_t k = 0; k < n + 2; ++k) {
            const auto x = static_cast<double>(k);
            values.push_back(x + 0.4 * std::sin(x));
        }
        const Sample sample = equal_atoms(values);
        const Pmf pmf = sample.pmf();
        const mass_t needed = pmf.needed(3 / static_cast<double>(n + 2));
        CHECK(all_windows(pmf, needed).size() == n);
        check_definition(pmf, needed);
    }
}

void all_of_the_mass_lies_between_the_outermost_atoms() {
    Random random(2);
    for (int round = 0; round < 200; ++round) {
        const Sample sample = random_sample(random, 1 + below(random, 30));
        const Pmf pmf = sample.pmf();
        CHECK(same(smoothed_hdi(pmf, pmf.total()), {sample.values.front(), sample.values.back()}));
    }
}

// One of two modes becomes a little narrower than the other.
void ends_do_not_jump() {
    const auto found = [](double width) {
        const Sample sample = equal_atoms({0, 1, 10, 10 + width});
        const mass_t needed = sample.pmf().needed(0.5);
        const Interval shortest = shortest_interval(sample.pmf(), needed);
        const Interval smoothed = smoothed_hdi(sample.pmf(), needed);
        return std::pair(shortest.lower, smoothed.lower);
    };
    const auto [shortest_before, before] = found(1 + 1e-9);
    const auto [shortest_after, after] = found(1 - 1e-9);
    CHECK(shortest_before == 0 && shortest_after == 10);
    CHECK(std::fabs(before - 5) < 1e-6 && std::fabs(after - 5) < 1e-6);
}

void windows_without_width_give_the_shortest_interval() {
    for (const double width : {0.0, 1e-16}) {
        Sample sample;
        sample.values = {1, 2, 2 + width, 7};
        if (width == 0) sample.values.erase(sample.values.begin() + 1);
        const mass_t quarter = mass_t{1} << (wide_shift - 2);
        sample.cumulative =
            width == 0 ? std::vector<mass_t>{0, quarter, 3 * quarter, 4 * quarter}
                       : std::vector<mass_t>{0, quarter, 2 * quarter, 3 * quarter, 4 * quarter};
        const Pmf pmf = sample.pmf();
        CHECK(same(smoothed_hdi(pmf, 2 * quarter), shortest_interval(pmf, 2 * quarter)));
    }
}

void sizes_do_not_matter() {
    const std::vector<double> plain{-3, -2.5, -1, 0.25, 1, 4};
    const Sample one = equal_atoms(plain);
    const mass_t needed = one.pmf().needed(0.5);
    const Interval expected = smoothed_hdi(one.pmf(), needed);
    for (const double factor : {0x1p-1000, 0x1p-300, 0x1p600, 0x1p890}) {
        std::vector<double> values = plain;
        for (double& z : values) z *= factor;
        const Interval found = smoothed_hdi(equal_atoms(values).pmf(), needed);
        CHECK(same(found, {expected.lower * factor, expected.upper * factor}));
    }
    // Widths that are denormal, or overflow.
    constexpr double tiny = std::numeric_limits<double>::denorm_min();
    const Interval smallest = smoothed_hdi(equal_atoms({0, tiny, 3 * tiny, 6 * tiny}).pmf(),
                                           mass_t{1} << (wide_shift - 1));
    CHECK(smallest.lower >= 0 && smallest.lower <= smallest.upper && smallest.upper <= 6 * tiny);
    const Sample largest = equal_atoms({-1.7e308, -1.6e308, 0, 1.6e308, 1.7e308});
    for (const double level : {0.1, 0.4, 0.7, 1.0}) {
        const mass_t some = largest.pmf().needed(level);
        CHECK(same(smoothed_hdi(largest.pmf(), some), shortest_interval(largest.pmf(), some)));
    }
}

// Atoms in the gap bound only windows that are too wide to count.
void windows_that_end_in_gaps_do_not_count() {
    const mass_t unit = mass_t{1} << (wide_shift - 3);
    const std::vector<mass_t> cumulative{0, 2 * unit, 4 * unit, 5 * unit, 6 * unit, 8 * unit};
    const std::vector<double> whole{0, 1, 50, 60, 61.5};
    const Interval expected = smoothed_hdi(Pmf(whole, cumulative, 1, wide_shift), 3 * unit);
    const std::vector<double> holed{0, 1, nan, 60, 61.5};
    const auto found = smoothed_hdi(PartialPmf(holed, cumulative, 1, wide_shift, 61.5), 3 * unit);
    CHECK(found && same(*found, expected));
    const std::vector<double> nothing(5, nan);
    CHECK(!smoothed_hdi(PartialPmf(nothing, cumulative, 1, wide_shift, 6), 3 * unit));
}

}  // namespace

int main() {
    the_sums_are_those_of_the_definition();
    any_number_of_windows_is_summed();
    all_of_the_mass_lies_between_the_outermost_atoms();
    ends_do_not_jump();
    windows_without_width_give_the_shortest_interval();
    sizes_do_not_matter();
    windows_that_end_in_gaps_do_not_count();
    return check::finish();
}
