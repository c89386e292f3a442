// test_merger.cpp: merged leaves against sums over a dense table, whole and in part
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <map>

#include "check.hpp"
#include "merge/buckets.hpp"
#include "merge/leave_one_out.hpp"
#include "merge/row_counts.hpp"
#include "merge/tails.hpp"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

// Mass of each atom by brute force, in units; row `without` is absent.
std::map<double, mass_t> masses(const Training& rows, const std::vector<leaf_t>& query, int shift,
                                std::size_t without, std::size_t& n_contributing) {
    std::map<double, mass_t> found;
    n_contributing = 0;
    for (std::size_t t = 0; t < rows.n_trees; ++t) {
        std::map<double, count_t> members;
        count_t total = 0;
        for (std::size_t i = 0; i < rows.n_rows; ++i) {
            if (i == without || rows.leaves[i * rows.n_trees + t] != query[t]) continue;
            ++members[rows.y[i]];
            ++total;
        }
        n_contributing += total > 0;
        count_t part = 0;
        mass_t given = 0;
        for (const auto& [z, count] : members) {
            part += count;
            const mass_t upto = floor_units(part, total, shift);
            found[z] += upto - given;
            given = upto;
        }
    }
    return found;
}

void check_pmf(const Pmf& pmf, std::span<const rank_t> ranks,
               const std::map<double, mass_t>& expected, std::size_t n_contributing) {
    CHECK(pmf.size() == expected.size() && pmf.n_trees == n_contributing);
    CHECK(ranks.size() == pmf.size());
    CHECK(pmf.total() == static_cast<mass_t>(n_contributing) << pmf.shift);
    std::size_t k = 0;
    for (const auto& [z, mass] : expected) {
        if (k == pmf.size()) break;
        CHECK(pmf.values[k] == z && pmf.cumulative[k + 1] - pmf.cumulative[k] == mass);
        ++k;
    }
}

std::vector<EntrySlice> slices_of(const LeafIndex& index, const std::vector<leaf_t>& leaves) {
    std::vector<EntrySlice> slices;
    for (std::size_t t = 0; t < leaves.size(); ++t) {
        if (leaves[t] == no_leaf) continue;
        const EntrySlice slice = index.entries(0, t, leaves[t]);
        if (slice.n > 0) slices.push_back(slice);
    }
    return slices;
}

void merging_sums_the_leaves() {
    Random random(1);
    for (int round = 0; round < 200; ++round) {
        const Training rows =
            random_training(random, 1 + below(random, 200), 1 + below(random, 6), 5);
        const LeafIndex index(rows.rows(), true, 1);
        for (const Kernels* kernels : available_kernels()) {
            Accumulator accumulator(index, *kernels);
            LeaveOneOut leave_one_out(index);
            RowCounts counts(index);
            for (int query_round = 0; query_round < 3; ++query_round) {
                std::vector<leaf_t> query(rows.n_trees);
                for (std::size_t t = 0; t < rows.n_trees; ++t) {
                    query[t] = static_cast<leaf_t>(below(random, index.n_leaves(t) + 1)) - 1;
                }
                std::size_t n_contributing;
                auto expected = masses(rows, query, index.shift(), rows.n_rows, n_contributing);
                auto slices = slices_of(index, query);
                const Pmf all = merge_whole(accumulator, 0, slices);
                check_pmf(all, accumulator.ranks(), expected, n_contributing);

                const std::size_t out = below(random, rows.n_rows);
                for (std::size_t t = 0; t < rows.n_trees; ++t) {
                    query[t] = rows.leaves[out * rows.n_trees + t];
                }
                expected = masses(rows, query, index.shift(), out, n_contributing);
                slices = slices_of(index, query);
                const Pmf others =
                    leave_one_out.merge(accumulator, 0, slices, static_cast<std::uint32_t>(out));
                check_pmf(others, accumulator.ranks(), expected, n_contributing);
                std::vector<std::int64_t> found(accumulator.ranks().size());
                counts.count(accumulator.ranks(), slices,
                             leave_one_out.rank(0, static_cast<std::uint32_t>(out)), found.data());
                for (std::size_t k = 0; k < found.size(); ++k) {
                    std::int64_t n = 0;
                    for (std::size_t i = 0; i < rows.n_rows; ++i) {
                        for (std::size_t t = 0; t < rows.n_trees && i != out; ++t) {
                            n += rows.leaves[i * rows.n_trees + t] == query[t] &&
                                 rows.y[i] == index.atoms(0)[accumulator.ranks()[k]];
                        }
                    }
                    CHECK(found[k] == n);
                }
            }
        }
    }
}

// Atoms outside of gaps have the mass, and the mass below them, that merging everything finds.
void check_partial(const PartialPmf& partial, const std::vector<double>& values,
                   const std::vector<mass_t>& cumulative, std::size_t& n_compared) {
    CHECK(partial.total() == cumulative.back());
    std::size_t k = 0;
    for (std::size_t i = 0; i < partial.size(); ++i) {
        if (std::isnan(partial.values[i])) continue;
        while (values[k] < partial.values[i]) ++k;
        CHECK(values[k] == partial.values[i]);
        CHECK(cumulative[k] == partial.cumulative[i]);
        CHECK(cumulative[k + 1] == partial.cumulative[i + 1]);
        ++n_compared;
    }
    CHECK(partial.max_abs() == std::max(std::fabs(values.front()), std::fabs(values.back())));
}

// Trees have five leaves, of min_rows / 5 to 2 min_rows / 5 rows at the mean.
void parts_have_the_exact_masses(std::size_t min_rows, int n_rounds, bool fine,
                                 bool one_is_large = false) {
    Random random(3);
    std::size_t n_in_tails = 0;
    std::size_t n_in_buckets = 0;
    std::size_t n_found = 0;
    for (int round = 0; round < n_rounds; ++round) {
        Training rows =
            random_training(random, min_rows + below(random, min_rows), 1 + below(random, 30), 5);
        // Rows of one leaf that share a target would get units of their own.
        for (double& y : rows.y) y += uniform(random);
        for (std::size_t i = 0; i < min_rows / 2 && one_is_large; ++i) {
            rows.leaves[i * rows.n_trees] = 0;
        }
        const LeafIndex index(rows.rows(), false, 1);
        CHECK(index.tables().bucket_counts.has_value());
        std::visit(
            [](const auto& below) {
                CHECK(reinterpret_cast<std::uintptr_t>(below.data()) % 64 == 0);
            },
            index.tables().bucket_counts->below);
        CHECK((index.tables().max_leaf_size > max_tabulated_leaf) == (fine || one_is_large));
        CHECK(index.tables().bucket_counts->fine_edges.empty() == !fine);
        for (const Kernels* kernels : available_kernels()) {
            Accumulator accumulator(index, *kernels);
            BucketMerge buckets(index);
            for (int query_round = 0; query_round < 10; ++query_round) {
                std::vector<leaf_t> query(rows.n_trees);
                for (leaf_t& leaf : query) leaf = static_cast<leaf_t>(below(random, 6)) - 1;
                query[0] = 0;
                const std::vector<EntrySlice> slices = slices_of(index, query);
                const Pmf pmf = merge_whole(accumulator, 0, slices);
                const std::vector<double> values(pmf.values.begin(), pmf.values.end());
                const std::vector<mass_t> cumulative(pmf.cumulative.begin(), pmf.cumulative.end());

                if (query_round == 0) {
                    std::size_t n_contributing;
                    const auto expected =
                        masses(rows, query, index.shift(), rows.n_rows, n_contributing);
                    check_pmf(pmf, accumulator.ranks(), expected, n_contributing);
                }

                const double share = 0.55 + 0.4 * uniform(random);
                const auto tails = merge_tails(accumulator, 0, slices, share);
                if (tails) check_partial(*tails, values, cumulative, n_in_tails);

                const std::vector<double> levels{uniform(random), uniform(random)};
                Request request;
                request.quantiles.levels = levels;
                const PartialPmf part = buckets.merge(accumulator, 0, slices, request);
                check_partial(part, values, cumulative, n_in_buckets);
                const Pmf whole(values, cumulative, slices.size(), index.shift());
                for (const double level : levels) {
                    CHECK(inverted_cdf(part, level) == inverted_cdf(whole, level));
                }
                const Interval shortest = interval(whole, share, Kind::hdi);
                request = {};
                request.intervals.coverages = {&share, 1};
                const auto found =
                    interval(buckets.merge(accumulator, 0, slices, request), share, Kind::hdi);
                // Nothing is found if the median has to decide.
                n_found += found.has_value();
                CHECK(!found || (found->lower == shortest.lower && found->upper == shortest.upper));
            }
        }
    }
    const std::size_t n_queries =
        10 * static_cast<std::size_t>(n_rounds) * available_kernels().size();
    CHECK((n_in_tails > 10 * n_queries || fine || one_is_large) && n_in_buckets > 4 * n_queries);
    CHECK(n_found > n_queries / 2);
}

}  // namespace

int main() {
    merging_sums_the_leaves();
    parts_have_the_exact_masses(300, 10, false);
    // Leaves of some 1,000 to 2,000 rows: fine buckets, and units that no table has.
    parts_have_the_exact_masses(6000, 3, true);
    // One of some 1,300 rows among leaves of 400.
    parts_have_the_exact_masses(2000, 3, false, true);
    return check::finish();
}
