// test_regions.cpp: all sets of pieces, the bound, grids, and hostile atoms
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

double cost(const Region& region, double gap) {
    double sum = gap * (static_cast<double>(region.n_pieces) - 1);
    for (std::size_t q = 0; q < region.n_pieces; ++q) {
        sum += region.pieces[q].upper - region.pieces[q].lower;
    }
    return sum;
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

// The least cost of all sets of at most n pieces that begin at atom `from` or later.
double least_cost(const Pmf& pmf, mass_t needed, std::size_t n, double gap, std::size_t from = 0) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = from; n > 0 && i < pmf.size(); ++i) {
        for (std::size_t j = i; j < pmf.size(); ++j) {
            const double own = pmf.values[j] - pmf.values[i];
            const mass_t missing = needed - (pmf.cumulative[j + 1] - pmf.cumulative[i]);
            const double rest =
                missing <= 0 ? 0 : gap + least_cost(pmf, missing, n - 1, gap, j + 1);
            least = std::min(least, own + rest);
        }
    }
    return least;
}

void near_the_least_cost_and_the_bound_holds() {
    Random random(1);
    int n_least = 0;
    for (int round = 0; round < 600; ++round) {
        const Sample sample = random_sample(random, 1 + below(random, 8));
        const Pmf pmf = sample.pmf();
        const auto needed =
            1 + static_cast<mass_t>(below(random, static_cast<std::size_t>(pmf.total())));
        const std::size_t n = 1 + below(random, 3);
        const double gap = 0.3 * static_cast<double>(below(random, 3));
        const Region found = find(pmf, needed, {n, gap, nullptr});
        const double least = least_cost(pmf, needed, n, gap);
        const double slack = 1e-12 * (1 + pmf.max_abs());
        CHECK(found.n_pieces >= 1 && found.n_pieces <= n);
        CHECK(mass(pmf, found) >= needed);
        CHECK(found.bound <= least + slack && least <= cost(found, gap) + slack);
        n_least += cost(found, gap) <= least + slack;
        const Interval hdi = shortest_interval(pmf, needed);
        CHECK(cost(found, gap) <= hdi.upper - hdi.lower + slack);
        if (n == 1) CHECK(found.pieces[0].lower == hdi.lower && found.pieces[0].upper == hdi.upper);
    }
    CHECK(n_least >= 560);
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

void bins_hold_all_mass() {
    Random random(3);
    for (int round = 0; round < 300; ++round) {
        const Sample sample = random_sample(random, 1 + below(random, 60));
        const Pmf pmf = sample.pmf();
        const RegionGrid grid(-uniform(random), 0.1 + uniform(random), 1 + below(random, 50),
                              round % 3 == 0 ? 0 : std::exp(8 * uniform(random) - 5));
        std::vector<mass_t> bins(grid.n_bins());
        std::vector<double> smoothed(grid.n_bins());
        grid.masses(pmf, bins, smoothed);
        mass_t sum = 0;
        for (const mass_t units : bins) {
            CHECK(units >= 0);
            sum += units;
        }
        CHECK(sum == pmf.total());
    }
}

template <class Make>
bool is_refused(const Make& make) {
    try {
        make();
        return false;
    } catch (const std::invalid_argument&) {
        return true;
    }
}

void grids_that_are_refused() {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    constexpr double largest = std::numeric_limits<double>::max();
    CHECK(is_refused([] { RegionGrid(0, 1, 0, 0); }));
    CHECK(is_refused([] { RegionGrid(0, 1, max_bins + 1, 0); }));
    CHECK(is_refused([] { RegionGrid(1, 1, 5, 0); }));
    CHECK(is_refused([] { RegionGrid(nan, 1, 5, 0); }));
    CHECK(is_refused([] { RegionGrid(-largest, largest, 5, 0); }));
    CHECK(is_refused([] { RegionGrid(0, 1, 5, -1); }));
    CHECK(is_refused([] { RegionGrid(0, 1, 5, nan); }));
    CHECK(is_refused([] { RegionGrid(1, 1 + 0x1p-50, 100, 0); }));
    CHECK(!is_refused([] { RegionGrid(0, 1, max_bins, largest); }));
    CHECK(!is_refused([] { RegionGrid(0, 1e-310, 5, 1e-312); }));
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
    near_the_least_cost_and_the_bound_holds();
    one_search_serves_many_distributions();
    bins_hold_all_mass();
    grids_that_are_refused();
    hostile_atoms();
    return check::finish();
}
