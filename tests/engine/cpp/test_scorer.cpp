// test_scorer.cpp: the same bits by all strategies, and errors from the midst of the work
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <set>
#include <thread>

#include "check.hpp"
#include "samples.hpp"
#include "scoring/route.hpp"
#include "scoring/row_weights.hpp"
#include "scoring/scorer.hpp"

using namespace hdicore;
using namespace samples;

namespace {

struct Fixture {
    std::vector<float> training;
    std::shared_ptr<const Forest> forest;
    std::shared_ptr<const LeafIndex> index;

    static constexpr std::size_t n_rows = 150;

    explicit Fixture(std::size_t n_outputs = 1) {
        Random random(1);
        training = random_rows(random, 3 * n_rows);
        forest = std::make_shared<Forest>(random_trees(random, 12, 15).arrays());
        Training rows = random_training(random, n_rows, 12, 1, n_outputs);
        rows.leaves = leaves_of(*forest, training);
        std::vector<std::int64_t> n_leaves;
        for (std::size_t t = 0; t < 12; ++t) {
            n_leaves.push_back(static_cast<std::int64_t>(forest->n_leaves(t)));
        }
        TrainingRows arrays = rows.rows();
        arrays.n_leaves = n_leaves;
        index = std::make_shared<LeafIndex>(arrays, true, 2);
    }
};

// All that can be asked of n rows, one result after the other.
std::vector<double> answers(const LeafIndex& index, const LeafSource& source,
                            std::span<const std::uint32_t> leave_out, const Execution& run) {
    const std::size_t n = source.n_rows() * index.n_outputs();
    const std::vector<double> levels{0.1, 0.5, 1};
    const std::vector<double> points(2 * n, 0.25);
    std::vector<double> results(13 * n, 0.75);
    Request request;
    request.mean.results = {results.data(), n};
    request.intervals.coverages = levels;
    request.intervals.results = {results.data() + n, n, 6};
    request.quantiles.levels = levels;
    request.quantiles.results = {results.data() + 7 * n, n, 3};
    request.cdf.points = {points.data(), n, 2};
    request.cdf.results = {results.data() + 10 * n, n, 2};
    request.draws.results = {results.data() + 12 * n, n, 1};
    score(index, source, leave_out, request, run);
    return results;
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

// Targets on a lattice, so that widths tie, or not, and some with fewer atoms than buckets; leaves
// of some dozens or hundreds of rows.
void every_strategy_gives_the_same_bits() {
    Random random(5);
    int n_counted = 0;
    for (int round = 0; round < 20; ++round) {
        const std::size_t n_rows = 60 + below(random, 1500);
        const std::size_t n_trees = 1 + below(random, 12);
        const std::size_t n_outputs = 1 + below(random, 2);
        Training rows = random_training(random, n_rows, n_trees, 1 + below(random, 12), n_outputs);
        const bool lattice = below(random, 3) == 0;
        for (double& y : rows.y) y = lattice ? std::floor(300 * uniform(random)) : uniform(random);
        if (below(random, 4) == 0) {
            rows.weights.resize(n_rows);
            for (double& w : rows.weights) w = 0.5 + uniform(random);
        }
        const LeafIndex index(rows.rows(), false, 1);
        std::vector<leaf_t> leaves(20 * n_trees);
        for (std::size_t i = 0; i < leaves.size(); ++i) {
            leaves[i] = static_cast<leaf_t>(below(random, index.n_leaves(i % n_trees) + 1)) - 1;
        }
        n_counted += index.tables().bucket_counts.has_value();
        const GivenLeaves source(index, Matrix(leaves.data(), 20, index.n_trees()));
        const std::size_t n = 20 * index.n_outputs();
        // Tails alone are enough for more than a half, buckets for any.
        const double low = round % 2 == 0 ? 0.55 : 0.01;
        const std::vector<double> coverages{low + (0.95 - low) * uniform(random), 0.95, 1};
        const std::vector<double> levels{0.02, 0.97, 0, 1};
        for (const KindOfInterval& each : kinds()) {
            const auto found = [&](Strategy strategy, const Kernels& kernels) {
                std::vector<double> results(10 * n);
                Request request;
                request.intervals.coverages = coverages;
                request.intervals.kind = each.kind;
                request.intervals.results = {results.data(), n, 6};
                request.quantiles.levels = levels;
                request.quantiles.results = {results.data() + 6 * n, n, 4};
                score(index, source, {}, request, {1, 0, strategy, kernels});
                return results;
            };
            const auto expected = found(Strategy::whole, portable_kernels);
            for (const Kernels* kernels : available_kernels()) {
                for (const auto strategy :
                     {Strategy::automatic, Strategy::whole, Strategy::tails, Strategy::buckets}) {
                    CHECK(same_bits(found(strategy, *kernels), expected));
                }
            }
        }
    }
    // Buckets were tried, and not only on indexes that have none.
    CHECK(n_counted >= 6);
}

// Prices, with a floor that tails are enough for, one that buckets are, and none.
void every_strategy_gives_the_same_priced_intervals() {
    Random random(7);
    for (int round = 0; round < 14; ++round) {
        const std::size_t n_trees = 1 + below(random, 12);
        Training rows =
            random_training(random, 60 + below(random, 1500), n_trees, 1 + below(random, 12));
        for (double& y : rows.y)
            y = round % 3 == 0 ? std::floor(300 * uniform(random)) : uniform(random);
        const LeafIndex index(rows.rows(), false, 1);
        std::vector<leaf_t> leaves(20 * n_trees);
        for (std::size_t i = 0; i < leaves.size(); ++i) {
            leaves[i] = static_cast<leaf_t>(below(random, index.n_leaves(i % n_trees) + 1)) - 1;
        }
        const GivenLeaves source(index, Matrix(leaves.data(), 20, n_trees));
        std::vector<double> prices(35);
        for (double& price : prices) price = std::exp(8 * uniform(random) - 3);
        for (const double floor : {0.0, 0.3, 0.55 + 0.4 * uniform(random), 1.0}) {
            std::vector<mass_t> units(20 * 35), expected_units;
            const auto found = [&](Strategy strategy, const Kernels& kernels) {
                std::vector<double> results(20 * 105);
                Request request;
                request.priced = {prices,
                                  floor,
                                  {results.data(), 20, 70},
                                  {units.data(), 20, 35},
                                  {results.data() + 20 * 70, 20, 35}};
                score(index, source, {}, request, {1, 0, strategy, kernels});
                return results;
            };
            const auto expected = found(Strategy::whole, portable_kernels);
            expected_units = units;
            for (const Kernels* kernels : available_kernels()) {
                for (const auto strategy :
                     {Strategy::automatic, Strategy::tails, Strategy::buckets}) {
                    CHECK(same_bits(found(strategy, *kernels), expected));
                    CHECK(units == expected_units);
                }
            }
        }
    }
}

// Levels in any order, some of them twice, in one merge.
void several_levels_are_answered_as_each_alone() {
    Random random(6);
    for (const std::size_t n_leaves : {1u, 8u, 60u, 400u}) {
        Training rows = random_training(random, 800, 15, n_leaves, 3);
        const std::size_t grid = below(random, 2) == 0 ? 7 : 1u << 20;
        for (double& y : rows.y) y = std::exp(static_cast<double>(below(random, grid)) / 1e5);
        const LeafIndex index(rows.rows(), false, 1);
        std::vector<leaf_t> leaves(30 * rows.n_trees);
        for (std::size_t i = 0; i < leaves.size(); ++i) {
            leaves[i] = static_cast<leaf_t>(below(random, index.n_leaves(i % rows.n_trees)));
        }
        const GivenLeaves source(index, Matrix(leaves.data(), 30, index.n_trees()));
        const auto found = [&](std::span<const double> levels, Kind kind, const Kernels& kernels) {
            std::vector<double> results(90 * 2 * levels.size());
            Request request;
            request.intervals = {levels, kind, {results.data(), 90, 2 * levels.size()}};
            score(index, source, {}, request, {1, 0, Strategy::automatic, kernels});
            return results;
        };
        const std::vector<double> levels{0.8, 0.5, 0.99, 0.5, 1, 0.9, 1e-9, 0.95, 0.9, 0.7, 0.3};
        for (const Kernels* kernels : available_kernels()) {
            for (const Kind kind : {Kind::hdi, Kind::equal_tailed}) {
                const auto together = found(levels, kind, *kernels);
                for (std::size_t k = 0; k < levels.size(); ++k) {
                    const auto alone = found(std::span(levels).subspan(k, 1), kind, *kernels);
                    for (std::size_t i = 0; i < alone.size(); ++i) {
                        CHECK(alone[i] == together[i * levels.size() + k]);
                    }
                }
            }
        }
    }
}

// Notes which threads ask for leaves.
class NotedLeaves final : public LeafSource {
  public:
    NotedLeaves(const LeafIndex& index, Matrix<const leaf_t> leaves) : given_(index, leaves) {}
    std::size_t n_rows() const noexcept override { return given_.n_rows(); }
    std::size_t block_rows() const noexcept override { return 1; }
    void reserve(std::size_t n, RowBlock& block) const override { given_.reserve(n, block); }
    void leaves(std::size_t begin, std::size_t end, RowBlock& block,
                Interruption& interruption) const override {
        {
            const std::lock_guard lock(mutex_);
            threads_.insert(std::this_thread::get_id());
        }
        given_.leaves(begin, end, block, interruption);
    }
    const std::set<std::thread::id>& threads() const { return threads_; }

  private:
    GivenLeaves given_;
    mutable std::mutex mutex_;
    mutable std::set<std::thread::id> threads_;
};

void little_work_starts_no_thread() {
    const Fixture fixture;
    const std::vector<leaf_t> leaves(20 * 12, 0);
    const NotedLeaves source(*fixture.index, Matrix(leaves.data(), 20, 12));
    answers(*fixture.index, source, {}, {8, 1});
    CHECK(source.threads() == std::set{std::this_thread::get_id()});
}

void errors_come_from_any_block() {
    const Fixture fixture;
    Random random(3);
    auto rows = random_rows(random, 3 * 500);
    rows[3 * 499] = std::numeric_limits<float>::infinity();
    const RoutedRows source(*fixture.forest, {Matrix(rows.data(), 500, 3)});
    std::vector<leaf_t> leaves(500 * 12, 0);
    leaves[499 * 12 + 11] = 1000;
    const GivenLeaves given(*fixture.index, Matrix(leaves.data(), 500, fixture.index->n_trees()));
    leaves[0] = no_leaf;
    for (const unsigned n_threads : {1u, 4u}) {
        const Execution run{n_threads, 7};
        CHECK_REFUSED(answers(*fixture.index, source, {}, run), "X[499, 0]");
        CHECK_REFUSED(answers(*fixture.index, given, {}, run), "leaves[499, 11]");
        CHECK_REFUSED(atom_weights(*fixture.index, source, {}, run), "X[499, 0]");
    }
    const std::vector<std::uint32_t> out(500, Fixture::n_rows);
    CHECK_REFUSED(answers(*fixture.index, source, out, {1, 0}), "leave_out[0]");
    leaves[499 * 12 + 11] = no_leaf - 1;
    CHECK_REFUSED(answers(*fixture.index, given, {}, {2, 0}), "leaves[499, 11]");
    CHECK_REFUSED(RoutedRows(*fixture.forest, {Matrix(rows.data(), 1, 4)}), "4 features");
}

void rows_without_leaves_are_nan_and_no_rows_are_nothing() {
    const Fixture fixture;
    const std::vector<leaf_t> no_leaves(2 * 12, no_leaf);
    const GivenLeaves source(*fixture.index, Matrix(no_leaves.data(), 2, fixture.index->n_trees()));
    for (const double x : answers(*fixture.index, source, {}, {1, 0})) CHECK(std::isnan(x));
    const auto none = atom_weights(*fixture.index, source, {}, {2, 1});
    CHECK(none.indptr == std::vector<std::int64_t>({0, 0, 0}) && none.data.empty());
    const GivenLeaves empty(*fixture.index, Matrix(no_leaves.data(), 0, fixture.index->n_trees()));
    CHECK(answers(*fixture.index, empty, {}, {0, 0}).empty());
    CHECK(atom_weights(*fixture.index, empty, {}, {0, 0}).indptr.size() == 1);
}

void runs_stop_when_asked() {
    const Fixture fixture;
    const std::vector<leaf_t> leaves(2000 * 12, 0);
    const GivenLeaves source(*fixture.index, Matrix(leaves.data(), 2000, fixture.index->n_trees()));
    for (const unsigned n_threads : {1u, 4u}) {
        const auto stopping = [&](const auto& call) {
            Interruption interruption([] { throw std::invalid_argument("enough"); });
            std::this_thread::sleep_for(Interruption::interval);
            call(Execution{.n_threads = n_threads, .interruption = interruption});
        };
        CHECK_REFUSED(
            stopping([&](const Execution& run) { answers(*fixture.index, source, {}, run); }),
            "enough");
        CHECK_REFUSED(
            stopping([&](const Execution& run) { atom_weights(*fixture.index, source, {}, run); }),
            "enough");
    }
}

void unequal_trees_are_refused() {
    const Fixture fixture;
    Random random(4);
    const auto other = std::make_shared<Forest>(random_trees(random, 12, 3).arrays());
    CHECK_REFUSED(check_same_trees(*other, *fixture.index), "leaves in tree");
    const auto fewer = std::make_shared<Forest>(random_trees(random, 11, 3).arrays());
    CHECK_REFUSED(check_same_trees(*fewer, *fixture.index), "12");
    check_same_trees(*fixture.forest, *fixture.index);
}

}  // namespace

int main() {
    every_strategy_gives_the_same_bits();
    every_strategy_gives_the_same_priced_intervals();
    several_levels_are_answered_as_each_alone();
    little_work_starts_no_thread();
    errors_come_from_any_block();
    rows_without_leaves_are_nan_and_no_rows_are_nothing();
    runs_stop_when_asked();
    unequal_trees_are_refused();
    return check::finish();
}
