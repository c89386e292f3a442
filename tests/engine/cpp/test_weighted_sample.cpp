// test_weighted_sample.cpp: samples are sorted and merged whatever their order, and many at once
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include "check.hpp"
#include "pmf/hdi.hpp"
#include "pmf/weighted_sample.hpp"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

void samples_are_sorted_and_merged() {
    WeightedSample sample;
    sample.assign(std::vector<double>{3, -0.0, 3, 0.0, 1}, std::vector<double>{1, 1, 2, 1, 0});
    const Pmf pmf = sample.pmf();
    CHECK(pmf.size() == 2 && pmf.values[0] == 0 && pmf.values[1] == 3);
    CHECK(!std::signbit(pmf.values[0]));
    CHECK(pmf.total() == mass_t{1} << wide_shift && pmf.cumulative[1] == pmf.total() / 5 * 2 + 0);
    sample.assign(std::vector<double>{7}, {});
    CHECK(sample.pmf().size() == 1 && sample.pmf().total() == mass_t{1} << wide_shift);
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
        const Pmf pmf = sample.pmf();
        const std::vector<mass_t> found(pmf.cumulative.begin(), pmf.cumulative.end());
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

void many_samples_are_read_one_by_one() {
    Random random(4);
    std::vector<double> values(30 * 7);
    for (double& value : values) value = uniform(random);
    std::vector<double> weights(values.size());
    for (double& weight : weights) weight = uniform(random);
    const std::vector<double> coverages{0.5, 0.9};
    for (const bool weighted : {false, true}) {
        const double* given = weighted ? weights.data() : nullptr;
        for (const bool shared : {false, true}) {
            std::vector<double> intervals(30 * 2 * 2);
            SampleMatrix samples{{values.data(), 30, 7}};
            if (weighted) samples.weights = {weights.data(), shared ? std::size_t{1} : 30, 7};
            weighted_hdis(samples, coverages, 3, {intervals.data(), 30, 4});
            for (std::size_t i = 0; i < 30; ++i) {
                std::span<const double> row_weights;
                if (given != nullptr) row_weights = {given + (shared ? 0 : 7 * i), 7};
                WeightedSample sample;
                sample.assign({values.data() + 7 * i, 7}, row_weights);
                for (std::size_t k = 0; k < 2; ++k) {
                    const Pmf pmf = sample.pmf();
                    const Interval hdi = shortest_interval(pmf, pmf.needed(coverages[k]));
                    CHECK(intervals[4 * i + k] == hdi.lower);
                    CHECK(intervals[4 * i + 2 + k] == hdi.upper);
                }
            }
        }
    }
}

}  // namespace

int main() {
    samples_are_sorted_and_merged();
    any_order_gives_the_same_atoms();
    bad_samples_are_refused();
    many_samples_are_read_one_by_one();
    return check::finish();
}
