// test_fixed_point.cpp: units are exact floors, and whole weights keep ratios and bounds
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "base/fixed_point.hpp"
#include "check.hpp"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

__extension__ using wide_t = unsigned __int128;

void shares_are_exact_floors() {
    Random random(1);
    for (int round = 0; round < 100000; ++round) {
        const count_t whole =
            1 + (random() & ((count_t{1} << 52) - 1)) % (count_t{1} << below(random, 53));
        const count_t part = below(random, whole + 1);
        for (const int shift : {narrow_shift, wide_shift}) {
            CHECK(floor_units(part, whole, shift) ==
                  static_cast<mass_t>((wide_t{part} << shift) / whole));
        }
    }
    CHECK(floor_units(count_t{1} << 52, count_t{1} << 52, wide_shift) == mass_t{1} << wide_shift);
    CHECK(floor_units(0, 1, narrow_shift) == 0);
}

void shares_of_a_leaf_sum_to_the_whole_and_leave_nobody_out() {
    Random random(3);
    for (int round = 0; round < 20000; ++round) {
        std::vector<count_t> weights(1 + below(random, 40));
        for (count_t& w : weights)
            w = 1 + (random() & ((count_t{1} << 40) - 1)) % (count_t{1} << below(random, 41));
        const count_t total = std::accumulate(weights.begin(), weights.end(), count_t{0});
        for (const int shift : {narrow_shift, wide_shift}) {
            std::vector<mass_t> units(weights.size());
            apportion(weights, shift, 0, units.data());
            mass_t sum = 0;
            count_t part = 0;
            const auto n = static_cast<mass_t>(weights.size());
            for (std::size_t k = 0; k < weights.size(); ++k) {
                CHECK(units[k] >= 1);
                sum += units[k];
                part += weights[k];
                CHECK(std::abs(sum - floor_units(part, total, shift)) <= n);
            }
            CHECK(sum == mass_t{1} << shift);
            // Shares of a larger pool, which weights that are whole and not too many fill exactly.
            apportion(weights, shift, std::bit_ceil(total) * 2, units.data());
            CHECK(std::accumulate(units.begin(), units.end(), mass_t{0}) <= mass_t{1}
                                                                                << (shift - 1));
            CHECK(*std::min_element(units.begin(), units.end()) >= 1);
        }
    }
}

void integer_weights_keep_ratios_and_bounds() {
    const std::vector<double> threes{3, 1, 0, 2};
    const auto whole = integer_weights(threes);
    CHECK(whole[0] == 3 * whole[1] && whole[2] == 0 && whole[3] == 2 * whole[1]);
    Random random(2);
    for (int round = 0; round < 1000; ++round) {
        std::vector<double> weights(1 + below(random, 50));
        const int exponent = static_cast<int>(below(random, 2000)) - 1000;
        for (double& w : weights) w = std::scalbn(uniform(random), exponent);
        const std::size_t copies = 1 + below(random, 100);
        const auto found = integer_weights(weights, copies);
        const count_t total = copies * std::accumulate(found.begin(), found.end(), count_t{0});
        CHECK(total > count_t{1} << 49 && total <= count_t{1} << 52);
    }
    CHECK_REFUSED(integer_weights(std::vector<double>{0, 0}), "must not all be zero");
    CHECK_REFUSED(integer_weights({}), "must not all be zero");
    const double tiny = std::numeric_limits<double>::denorm_min();
    CHECK(integer_weights(std::vector<double>{tiny, tiny})[0] > 0);
    const double huge = std::numeric_limits<double>::max();
    CHECK(integer_weights(std::vector<double>{huge, huge})[0] > 0);
}

}  // namespace

int main() {
    shares_are_exact_floors();
    shares_of_a_leaf_sum_to_the_whole_and_leave_nobody_out();
    integer_weights_keep_ratios_and_bounds();
    return check::finish();
}
