// test_interval.cpp: what intervals of each kind read of a distribution
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include "check.hpp"
#include "pmf/interval.hpp"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

// Atoms outside of the two tails become one gap.
void tails_are_enough() {
    Random random(4);
    for (int round = 0; round < 2000; ++round) {
        const Sample sample = random_sample(random, 2 + below(random, 30));
        const Pmf pmf = sample.pmf();
        const double coverage = 0.5 + 0.5 * uniform(random);
        for (const KindOfInterval& each : kinds()) {
            const Kind kind = each.kind;
            const double share = facts_of(kind).min_share(coverage);
            const mass_t outside = pmf.total() - pmf.needed(share);
            // The first atoms that hold more than `outside`, and the last ones.
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
            const Interval expected = interval(pmf, coverage, kind);
            const std::optional<Interval> found = interval(partial, coverage, kind);
            // Only a median in the gap leaves it open.
            if (!found)
                CHECK((kind == Kind::hdi || kind == Kind::averaged) &&
                      low < pmf.first_reaching(pmf.needed(0.5)) + 1);
            if (found) CHECK(found->lower == expected.lower && found->upper == expected.upper);
        }
    }
}

}  // namespace

int main() {
    tails_are_enough();
    return check::finish();
}
