// driver.cpp: runs one stage of the engine on one fixed case, so that its instructions be counted
// SPDX-License-Identifier: BSD-3-Clause
//
// `driver STAGE LEAF_SIZE` prints one line of JSON: how much went through the stage, and a checksum
// of the results. Only what happens inside counted_work is to be counted. Uses nothing but the
// public headers, and no distribution of the standard library, as those differ between libraries.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "forest/forest.hpp"
#include "index/leaf_index.hpp"
#include "scoring/route.hpp"
#include "scoring/scorer.hpp"

// The counter is switched on and off by this name, so it must neither be inlined nor left by a jump
// in place of a call.
extern "C" [[gnu::noinline]] void counted_work(const std::function<void()>& work) {
    work();
    asm volatile("" ::: "memory");
}

namespace {

using namespace hdicore;

constexpr std::size_t n_features = 10;
constexpr std::size_t n_trees = 20;
constexpr std::size_t n_training = 2000;
constexpr std::size_t n_queries = 500;
constexpr unsigned n_threads = 1;

// splitmix64.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  private:
    std::uint64_t state_;
};

std::vector<float> random_rows(Random& random, std::size_t n_rows) {
    std::vector<float> X(n_rows * n_features);
    for (float& x : X) x = static_cast<float>(random.uniform());
    return X;
}

// The first features matter most.
std::vector<double> targets(Random& random, const std::vector<float>& X) {
    std::vector<double> y(X.size() / n_features);
    for (std::size_t i = 0; i < y.size(); ++i) {
        y[i] = random.uniform();
        for (std::size_t j = 0; j < n_features; ++j) {
            y[i] += static_cast<double>(X[i * n_features + j]) * 10 / static_cast<double>(j + 1);
        }
    }
    return y;
}

struct Trees {
    std::vector<std::int64_t> left, right, feature;
    std::vector<double> threshold;
    std::vector<std::uint8_t> missing_left;
    std::vector<std::int64_t> offsets{0};

    TreeArrays arrays() const {
        return {left, right, feature, threshold, missing_left, offsets, n_features};
    }

    // Grows a tree until no node could be split into leaves of leaf_size rows.
    void add_tree(Random& random, const std::vector<float>& X, std::size_t leaf_size) {
        std::vector<std::size_t> rows(X.size() / n_features);
        std::iota(rows.begin(), rows.end(), std::size_t{0});
        add_node(random, X, rows, leaf_size);
        offsets.push_back(static_cast<std::int64_t>(left.size()));
    }

  private:
    // Splits between two rows at a random place, by a feature that is likely to matter.
    // Depth-first.
    std::int64_t add_node(Random& random, const std::vector<float>& X, std::span<std::size_t> rows,
                          std::size_t leaf_size) {
        const std::size_t at = left.size();
        const std::int64_t id = static_cast<std::int64_t>(at) - offsets.back();
        left.push_back(-1);
        right.push_back(-1);
        feature.push_back(-2);
        threshold.push_back(-2);
        missing_left.push_back(0);
        if (rows.size() < 2 * leaf_size) return id;

        const std::size_t one = random.below(n_features);
        const std::size_t other = random.below(n_features);
        const std::size_t by = std::min(one, other);
        const auto value = [&](std::size_t row) { return X[row * n_features + by]; };
        std::ranges::sort(rows, {}, value);
        const std::size_t n_left = leaf_size + random.below(rows.size() - 2 * leaf_size + 1);
        const float low = value(rows[n_left - 1]);
        const float high = value(rows[n_left]);
        if (low == high) return id;  // rare enough to leave it unsplit

        feature[at] = static_cast<std::int64_t>(by);
        threshold[at] = (static_cast<double>(low) + static_cast<double>(high)) / 2;
        const std::int64_t left_id = add_node(random, X, rows.first(n_left), leaf_size);
        const std::int64_t right_id = add_node(random, X, rows.subspan(n_left), leaf_size);
        left[at] = left_id;
        right[at] = right_id;
        return id;
    }
};

// FNV-1a over the bits of the results.
class Checksum {
  public:
    void add(std::uint64_t bits) { sum_ = (sum_ ^ bits) * 0x100000001b3u; }
    void add(const std::vector<double>& values) {
        for (const double value : values) add(std::bit_cast<std::uint64_t>(value));
    }
    void add(const std::vector<leaf_t>& leaves) {
        for (const leaf_t leaf : leaves) add(static_cast<std::uint64_t>(leaf));
    }
    std::uint64_t sum() const { return sum_; }

  private:
    std::uint64_t sum_ = 0xcbf29ce484222325u;
};

RowMatrix matrix(const std::vector<float>& X) {
    return {Matrix(X.data(), X.size() / n_features, n_features)};
}

std::vector<leaf_t> leaves_of(const Forest& forest, const std::vector<float>& X, bool node_ids) {
    std::vector<leaf_t> leaves(X.size() / n_features * n_trees);
    route_all(forest, matrix(X), node_ids, n_threads, {leaves.data(), matrix(X).n_rows(), n_trees});
    return leaves;
}

// What a stage went through and what came out.
struct Done {
    std::size_t n;
    const char* unit;
    Checksum checksum;
};

Done lay_out(const Trees& trees, const std::vector<float>& queries) {
    const TreeArrays arrays = trees.arrays();
    std::optional<Forest> forest;
    counted_work([&] { forest.emplace(arrays); });
    Done done{trees.left.size(), "node", {}};
    done.checksum.add(leaves_of(*forest, queries, true));
    return done;
}

Done route(const Forest& forest, const std::vector<float>& queries) {
    std::vector<leaf_t> leaves(n_queries * n_trees);
    counted_work([&] {
        route_all(forest, matrix(queries), true, n_threads, {leaves.data(), n_queries, n_trees});
    });
    Done done{n_queries, "query row", {}};
    done.checksum.add(leaves);
    return done;
}

Done build(const TrainingRows& rows) {
    std::optional<LeafIndex> index;
    counted_work([&] { index.emplace(rows, false, n_threads); });
    std::vector<double> mean(n_training);
    Request request;
    request.mean.results = mean;
    score(*index, GivenLeaves(*index, rows.leaves), {}, request, {n_threads, 0});
    Done done{n_training, "training row", {}};
    done.checksum.add(mean);
    return done;
}

Done read(const LeafIndex& index, const LeafSource& source, const std::string& what) {
    constexpr std::array one_level{0.9};
    constexpr std::array five_levels{0.5, 0.8, 0.9, 0.95, 0.99};
    constexpr std::array two_quantiles{0.05, 0.95};
    std::vector<double> results;
    Request request;
    if (what == "mean") {
        results.resize(n_queries);
        request.mean.results = results;
    } else if (what == "quantiles") {
        results.resize(n_queries * two_quantiles.size());
        request.quantiles.levels = two_quantiles;
        request.quantiles.results = {results.data(), n_queries, two_quantiles.size()};
    } else {
        request.intervals.coverages =
            what == "hdi5" ? std::span<const double>(five_levels) : one_level;
        results.resize(n_queries * 2 * request.intervals.coverages.size());
        request.intervals.results = {results.data(), n_queries,
                                     2 * request.intervals.coverages.size()};
    }
    counted_work([&] { score(index, source, {}, request, {n_threads, 0}); });
    Done done{n_queries, "query row", {}};
    done.checksum.add(results);
    return done;
}

Done run(const std::string& stage, std::size_t leaf_size) {
    Random random(leaf_size);
    const std::vector<float> X = random_rows(random, n_training);
    const std::vector<double> y = targets(random, X);
    const std::vector<float> queries = random_rows(random, n_queries);
    Trees trees;
    for (std::size_t t = 0; t < n_trees; ++t) trees.add_tree(random, X, leaf_size);

    if (stage == "lay_out") return lay_out(trees, queries);
    const Forest forest(trees.arrays());
    if (stage == "route") return route(forest, queries);
    const std::vector<leaf_t> leaves = leaves_of(forest, X, false);
    TrainingRows rows;
    rows.n_trees = n_trees;
    rows.leaves = {leaves.data(), n_training, n_trees};
    rows.y = {y.data(), n_training, 1};
    if (stage == "build") return build(rows);
    const LeafIndex index(rows, false, n_threads);
    if (stage == "leaves_hdi") {
        const std::vector<leaf_t> given = leaves_of(forest, queries, false);
        return read(index, GivenLeaves(index, Matrix(given.data(), n_queries, index.n_trees())),
                    "hdi");
    }
    if (stage == "mean" || stage == "hdi" || stage == "hdi5" || stage == "quantiles") {
        return read(index, RoutedRows(forest, matrix(queries)), stage);
    }
    throw std::invalid_argument("no stage is called " + stage);
}

}  // namespace

int main(int n_arguments, char** arguments) {
    const unsigned long leaf_size = n_arguments == 3 ? std::strtoul(arguments[2], nullptr, 10) : 0;
    if (leaf_size == 0) {
        std::fputs("usage: driver STAGE LEAF_SIZE\n", stderr);
        return 2;
    }
    try {
        const Done done = run(arguments[1], leaf_size);
        std::printf("{\"n\": %zu, \"unit\": \"%s\", \"checksum\": \"%016llx\"}\n", done.n,
                    done.unit, static_cast<unsigned long long>(done.checksum.sum()));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
