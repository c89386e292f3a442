// test_pmf.cpp: distribution function, draws and needed units against sums over the atoms
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include "check.hpp"
#include "pmf/pmf.hpp"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

void answers_follow_from_the_masses() {
    Random random(2);
    for (int round = 0; round < 500; ++round) {
        const Sample sample = random_sample(random, 1 + below(random, 12));
        const Pmf pmf = sample.pmf();
        const auto whole = static_cast<double>(pmf.total());
        for (std::size_t k = 0; k < pmf.size(); ++k) {
            const double upto = static_cast<double>(sample.cumulative[k + 1]) / whole;
            CHECK(pmf.cdf(sample.values[k]) == upto);
            CHECK(pmf.cdf(std::nextafter(sample.values[k], -1e300)) ==
                  static_cast<double>(sample.cumulative[k]) / whole);
            CHECK(pmf.draw(static_cast<double>(sample.cumulative[k]) / whole) == sample.values[k]);
            // A level that is the exact share of atoms is recognised.
            CHECK(pmf.needed(upto) <= sample.cumulative[k + 1]);
        }
        CHECK(pmf.draw(0) == sample.values.front());
        CHECK(pmf.draw(std::nextafter(1.0, 0.0)) == sample.values.back());
        CHECK(pmf.needed(1) == pmf.total() && pmf.needed(0) == 1);
        CHECK(pmf.needed(0.5) == pmf.total() / 2 - 2);
    }
}

}  // namespace

int main() {
    answers_follow_from_the_masses();
    return check::finish();
}
