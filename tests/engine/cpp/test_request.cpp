// test_request.cpp: how much is needed for what is asked, and what a gap leaves open
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include "check.hpp"
#include "pmf/request.hpp"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// A request for each statistic that only a complete distribution tells, of n rows.
std::vector<Request> complete_requests(std::vector<double>& results,
                                       const std::vector<double>& levels) {
    std::vector<Request> requests(3);
    requests[0].quantiles = {levels, Interpolation::linear, {results.data(), 1, 1}};
    requests[1].cdf = {{levels.data(), 1, 1}, true, {results.data(), 1, 1}};
    requests[2].draws = {{results.data(), 1, 1}};
    return requests;
}

void some_statistics_need_every_atom() {
    std::vector<double> results(1, 0.5);
    const std::vector<double> levels{0.1};
    Request request;
    request.quantiles = {levels, Interpolation::inverted_cdf, {results.data(), 1, 1}};
    CHECK(!needs(request).every_atom && std::fabs(needs(request).min_share - 0.9) < 1e-5);
    CHECK(!needs(Request()).every_atom && !needs(request).observation);
    const std::vector<Request> complete = complete_requests(results, levels);
    for (const Request& one : complete) CHECK(needs(one).every_atom);
    CHECK(needs(complete[0]).observation && !needs(complete[1]).observation);
    Request regions;
    CHECK(regions.regions.is_empty());
    regions.regions.coverage = 0.9;
    CHECK(needs(regions).every_atom);
}

void the_mean_needs_no_distribution() {
    std::vector<double> results(2, 0.5);
    const std::vector<double> levels{0.9};
    Request request;
    CHECK(needs(request).nothing);
    request.mean.results = std::span(results).first(1);
    CHECK(needs(request).nothing);
    request.intervals = {levels, Kind::hdi, {results.data(), 1, 2}};
    CHECK(!needs(request).nothing && !needs(request).every_atom && needs(request).min_share == 0.9);
}

void min_share_is_that_of_the_widest_tails() {
    const std::vector<double> coverages{0.95, 0.7, 1};
    Request request;
    request.intervals.coverages = coverages;
    CHECK(needs(request).min_share == 0.7);
    request.intervals.kind = Kind::equal_tailed;
    CHECK(needs(request).min_share < 0.85 && needs(request).min_share > 0.8499);
}

void an_interval_at_a_price_reads_most_buckets() {
    const std::vector<double> levels{0.95, 0.01};
    const std::vector<double> prices{2.0};
    Request request;
    request.intervals.coverages = levels;
    CHECK(needs(request).few_buckets && needs(Request()).few_buckets);
    request.priced.prices = prices;
    request.priced.min_coverage = 0.6;
    CHECK(!needs(request).few_buckets && !needs(request).every_atom);
}

// Whatever is asked, a distribution with gaps never gives a wrong answer: it gives none.
void gaps_answer_nothing_that_needs_every_atom() {
    const std::vector<double> values{0, 1, nan, 5, 6};
    const std::vector<mass_t> cumulative{0, 2, 3, 5, 6, 8};
    const PartialPmf partial(values, cumulative, 1, 3, 6);
    std::vector<double> results(1, 0.5);
    const std::vector<double> levels{0.1};
    for (const Request& one : complete_requests(results, levels)) {
        CHECK(!read_partial(partial, one, 0));
        CHECK(results[0] == 0.5);  // draws replace uniforms, which another reading needs
    }
}

void rows_without_atoms_are_nan() {
    const std::vector<mass_t> nothing{0};
    const Pmf empty({}, nothing, 0, wide_shift);
    std::vector<double> results(1, 0.5);
    const std::vector<double> levels{0.1};
    for (const Request& one : complete_requests(results, levels)) {
        results[0] = 0.5;
        read(empty, one, 0);
        CHECK(std::isnan(results[0]));
    }
    std::vector<double> ends(4, 0.5);
    Request request;
    request.intervals = {levels, Kind::hdi, {ends.data(), 2, 2}};
    read(empty, request, 1);
    CHECK(ends[0] == 0.5 && std::isnan(ends[2]) && std::isnan(ends[3]));
}

}  // namespace

int main() {
    some_statistics_need_every_atom();
    the_mean_needs_no_distribution();
    min_share_is_that_of_the_widest_tails();
    an_interval_at_a_price_reads_most_buckets();
    gaps_answer_nothing_that_needs_every_atom();
    rows_without_atoms_are_nan();
    return check::finish();
}
