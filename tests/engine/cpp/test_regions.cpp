// test_regions.cpp: a search that serves many distributions, and hostile atoms
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>
#include <stdexcept>

#include "check.hpp"
#include "pmf/regions.hpp"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

Region find(const Pmf& pmf, mass_t needed, const RegionShape& shape) {
    RegionSearch search(pmf.size(), shape.grid);
    return search.find(pmf, needed, shape);
}

mass_t mass(const Pmf& pmf, const Region& region) {
    mass_t sum = 0;
    for (std::size_t k = 0; k < pmf.size(); ++k) {
        for (std::size_t q = 0; q < region.n_pieces; ++q) {
            const auto [lower, upper] = region.pieces[q];
            if (lower <= pmf.values[k] && pmf.values[k] <= upper) {
                sum += pmf.cumulative[k + 1] - pmf.cumulative[k];
            }
        }
    }
    return sum;
}

void one_search_serves_many_distributions() {
    Random random(2);
    const RegionGrid grid(-1, 2, 30, 0.2);
    for (const RegionGrid* bins : {static_cast<const RegionGrid*>(nullptr), &grid}) {
        RegionSearch search(200, bins);
        for (int round = 0; round < 200; ++round) {
            const Sample sample = random_sample(random, 1 + below(random, 200));
            const Pmf pmf = sample.pmf();
            const RegionShape shape{1 + below(random, max_region_pieces), 0.1 * uniform(random),
                                    bins};
            const mass_t needed = pmf.needed(0.01 + 0.99 * uniform(random));
            const Region found = search.find(pmf, needed, shape);
            const Region alone = find(pmf, needed, shape);
            CHECK(found.n_pieces == alone.n_pieces && found.bound == alone.bound);
            for (std::size_t q = 0; q < found.n_pieces; ++q) {
                const auto [lower, upper] = found.pieces[q];
                CHECK(lower == alone.pieces[q].lower && upper == alone.pieces[q].upper);
                CHECK(lower <= upper && (q == 0 || lower > found.pieces[q - 1].upper));
            }
        }
    }
}

void hostile_atoms() {
    constexpr double largest = std::numeric_limits<double>::max();
    constexpr double tiny = std::numeric_limits<double>::denorm_min();
    const std::vector<mass_t> thirds{0, 3, 5, 8};
    const RegionGrid grid(-1, 1, 10, 0.1), narrow(0, 1e-310, 5, 1e-311);
    for (const double end : {largest, 1.0, tiny}) {
        const std::vector<double> values{-end, 0, end};
        const Pmf pmf(values, thirds, 0, 3);
        for (const double gap : {0.0, tiny, 1.0, largest}) {
            for (mass_t needed = 1; needed <= 8; ++needed) {
                for (const RegionGrid* bins :
                     {static_cast<const RegionGrid*>(nullptr), &grid, &narrow}) {
                    const Region found = find(pmf, needed, {3, gap, bins});
                    CHECK(found.n_pieces >= 1 && found.n_pieces <= 3 && found.bound >= 0);
                    if (bins == nullptr) CHECK(mass(pmf, found) >= needed);
                }
            }
        }
        CHECK(find(pmf, 6, {2, 0, nullptr}).n_pieces == 2);
        CHECK(find(pmf, 8, {3, 0, nullptr}).n_pieces == 3);
    }
}

}  // namespace

int main() {
    one_search_serves_many_distributions();
    hostile_atoms();
    return check::finish();
}
