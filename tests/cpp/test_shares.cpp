// test_shares.cpp: units are exact floors, and whole weights keep ratios and bounds
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>
#include <numeric>

#include "check.hpp"
#include "hdicore/shares.hpp"
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
            CHECK(share(part, whole, shift) ==
                  static_cast<mass_t>((wide_t{part} << shift) / whole));
        }
    }
    CHECK(share(count_t{1} << 52, count_t{1} << 52, wide_shift) == mass_t{1} << wide_shift);
    CHECK(share(0, 1, narrow_shift) == 0);
}

void whole_weights_keep_ratios_and_bounds() {
    const std::vector<double> threes{3, 1, 0, 2};
    const auto whole = whole_weights(threes);
    CHECK(whole[0] == 3 * whole[1] && whole[2] == 0 && whole[3] == 2 * whole[1]);
    Random random(2);
    for (int round = 0; round < 1000; ++round) {
        std::vector<double> weights(1 + below(random, 50));
        const int exponent = static_cast<int>(below(random, 2000)) - 1000;
        for (double& w : weights) w = std::scalbn(uniform(random), exponent);
        const std::size_t copies = 1 + below(random, 100);
        const auto found = whole_weights(weights, copies);
        const count_t total = copies * std::accumulate(found.begin(), found.end(), count_t{0});
        CHECK(total > count_t{1} << 49 && total <= count_t{1} << 52);
    }
    CHECK_REFUSED(whole_weights(std::vector<double>{0, 0}), "must not all be zero");
    CHECK_REFUSED(whole_weights({}), "must not all be zero");
    const double tiny = std::numeric_limits<double>::denorm_min();
    CHECK(whole_weights(std::vector<double>{tiny, tiny})[0] > 0);
    const double huge = std::numeric_limits<double>::max();
    CHECK(whole_weights(std::vector<double>{huge, huge})[0] > 0);
}

}  // namespace

int main() {
    shares_are_exact_floors();
    whole_weights_keep_ratios_and_bounds();
    return check::finish();
}
