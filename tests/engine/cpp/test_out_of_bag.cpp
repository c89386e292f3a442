// test_out_of_bag.cpp: an example by hand; threads, targets that tie or are huge, damaged memory
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <memory>
#include <numeric>

#include "check.hpp"
#include "samples.hpp"
#include "scoring/out_of_bag.hpp"

using namespace hdicore;
using namespace samples;

namespace {

// Rows of some trees with two leaves each, tree by tree.
struct Rows {
    std::size_t n_trees, n;
    std::vector<leaf_t> leaves;
    std::vector<std::uint8_t> counts;
    std::vector<double> y, weight{};

    OutOfBagRows given() const {
        return {{leaves.data(), n_trees, n},
                Matrix<const std::uint8_t>(counts.data(), n_trees, n),
                y,
                weight,
                weight};
    }

    OutOfBagScorer scorer(unsigned n_threads = 1) const {
        std::vector<leaf_t> by_row(leaves.size());
        for (std::size_t i = 0; i < by_row.size(); ++i) {
            by_row[i] = leaves[i % n_trees * n + i / n_trees] & 1;
        }
        const std::vector<std::int64_t> sizes(n_trees, 2);
        const TrainingRows rows{.n_trees = n_trees,
                                .leaves = {by_row.data(), n, n_trees},
                                .y = {y.data(), n, 1},
                                .n_leaves = sizes};
        return OutOfBagScorer(given(), std::make_shared<const LeafIndex>(rows, false, 1),
                              n_threads);
    }
};

std::vector<double> ask(const OutOfBagScorer& scorer, std::span<const std::uint32_t> rows,
                        std::span<const Family> families, unsigned n_threads = 1) {
    const double coverages[] = {0.9, 0.5};
    const Kind kinds[] = {Kind::hdi, Kind::equal_tailed};
    std::vector<double> ends(families.size() * rows.size() * 4);
    scorer.intervals({.rows = rows,
                      .coverages = coverages,
                      .kinds = kinds,
                      .families = families,
                      .results = {ends.data(), families.size() * rows.size(), 4}},
                     n_threads);
    return ends;
}

constexpr Family raw_alone[] = {Family::raw};
constexpr Family centred_alone[] = {Family::centred};
constexpr Family both[] = {Family::raw, Family::centred};

void the_example_by_hand_is_right() {
    const Rows rows{2, 4, {0, 0, 0, 0, 0, 1, 0, 1}, {1, 0, 2, 0, 0, 1, 0, 1}, {1, 2, 4, 8}};
    const OutOfBagScorer scorer = rows.scorer();
    CHECK(scorer.has_raw());
    CHECK(scorer.means().centres == (std::vector<double>{0, 3, 0, 3}));
    CHECK(scorer.means().n_oob == (std::vector<double>{1, 1, 1, 1}));
    CHECK(scorer.means().leaf_means == (std::vector<double>{3, 0, 0, 5}));
    CHECK(scorer.means().leaf_weight == (std::vector<double>{3, 0, 0, 2}));
    // Of row 1 the others in leaf 0 of tree 0 have the residuals 1 - 0, 4 - 0 and 8 - 3.
    const std::uint32_t row[] = {1};
    const std::vector<double> ends = ask(scorer, row, both);
    CHECK(ends[0] == 1 && ends[2] == 8 && ends[4] == 4 && ends[6] == 8);
}

Rows random_rows(Random& random, std::size_t n, bool weighted) {
    Rows rows{25, n, {}, {}, {}};
    for (std::size_t i = 0; i < 25 * n; ++i) {
        rows.leaves.push_back(static_cast<leaf_t>(below(random, 2)));
        rows.counts.push_back(static_cast<std::uint8_t>(below(random, 3)));
    }
    for (std::size_t i = 0; i < n; ++i) {
        rows.y.push_back(uniform(random));
        if (weighted) rows.weight.push_back(1 + static_cast<double>(below(random, 3)));
    }
    return rows;
}

void threads_and_targets_of_any_size_are_served() {
    Random random(3);
    for (const double unit : {1.0, 1e300, 0.0}) {
        for (const bool weighted : {false, true}) {
            Rows rows = random_rows(random, 150, weighted);
            for (double& y : rows.y) y = (y < 0.5 ? -1 : y) * unit;
            std::vector<std::uint32_t> all(150);
            std::iota(all.begin(), all.end(), 0u);
            const OutOfBagScorer one = rows.scorer(1), three = rows.scorer(3);
            CHECK(one.has_raw() == !weighted);
            const std::vector<double> ends = ask(one, all, centred_alone);
            CHECK(ends == ask(three, all, centred_alone, 3));
            CHECK(std::ranges::none_of(ends, [](double end) { return end != end; }));
            if (weighted) {
                CHECK_REFUSED(ask(one, all, raw_alone), "family must be 'centred'");
                continue;
            }
            const std::vector<double> two = ask(one, all, both);
            CHECK(std::equal(ends.begin(), ends.end(), two.begin() + 600));
        }
    }
}

void memory_that_changes_is_checked_again() {
    Random random(4);
    Rows rows = random_rows(random, 60, false);
    const OutOfBagScorer scorer = rows.scorer();
    const std::uint32_t some[] = {7, 8}, beyond[] = {60};
    CHECK_REFUSED(ask(scorer, beyond, centred_alone), "rows must lie below 60");
    std::fill(rows.counts.begin(), rows.counts.end(), std::uint8_t{255});
    ask(scorer, some, both);
    rows.leaves[3 * 60 + 8] = 2;
    CHECK_REFUSED(ask(scorer, some, both), "leaves must name leaves of the index, got 2");
    rows.leaves[3 * 60 + 8] = -1;
    CHECK_REFUSED(ask(scorer, some, both), "leaves must name leaves of the index, got -1");
    CHECK_REFUSED(rows.scorer(), "leaves must name");
}

}  // namespace

int main() {
    the_example_by_hand_is_right();
    threads_and_targets_of_any_size_are_served();
    memory_that_changes_is_checked_again();
    return check::finish();
}
