// index_rows.cpp: fuzzes LeafIndex from training rows, its queries, and leave-one-out queries
// SPDX-License-Identifier: BSD-3-Clause
#include <optional>

#include "array_copy.hpp"
#include "queries.hpp"
#include "training.hpp"

namespace {

using namespace fuzz;

// Tables of all leaves are made, so leaves that are allowed but huge would only take memory.
bool is_huge(std::int64_t leaf) {
    return leaf > 4096 && leaf <= max_leaves_per_tree;
}

void poke_one(Input& in, samples::Training& training, std::vector<std::int64_t>& n_leaves) {
    switch (in.below(5)) {
        case 0:
            return in.poke(training.leaves);
        case 1:
            return in.poke(training.y);
        case 2:
            return in.poke(training.counts);
        case 3:
            return in.poke(training.weights);
        default:
            return in.one_in(4) ? in.resize(n_leaves) : in.poke(n_leaves);
    }
}

// Answers with a row left out of its own leaves. If all rows count once and alike, these are the
// answers of an index that was built without the row.
void check_leave_out(const LeafIndex& index, const samples::Training& training, bool alike,
                     Input& in) {
    const std::size_t m = training.n_trees;
    const Question question(in);
    const Execution run{1, 0, Strategy::automatic, default_kernels()};
    const auto row = static_cast<std::uint32_t>(in.below(training.n_rows));
    const leaf_t* leaves = training.leaves.data() + row * m;
    const GivenLeaves own(index, Matrix(leaves, 1, index.n_trees()));
    const Answers found = ask_all(index, own, {&row, 1}, question, run);
    const bool none = std::isnan(found.mean[0]);
    for (const double quantile : found.quantiles) {
        REQUIRE(index.n_outputs() > 1 || std::isnan(quantile) == none);
        REQUIRE(!std::isinf(quantile));
    }
    const auto too_large = static_cast<std::uint32_t>(training.n_rows + in.below(2));
    REQUIRE(!refusal([&] { ask_all(index, own, {&too_large, 1}, question, run); }).empty());

    if (!alike || training.n_rows < 2) return;
    samples::Training without = training;
    const auto erase = [row](auto& values, std::size_t n) {
        const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * n);
        values.erase(begin, begin + static_cast<std::ptrdiff_t>(n));
    };
    --without.n_rows;
    erase(without.leaves, m);
    erase(without.y, training.n_outputs);
    std::vector<std::int64_t> n_leaves;
    for (std::size_t t = 0; t < m; ++t) {
        n_leaves.push_back(static_cast<std::int64_t>(index.n_leaves(t)));
    }
    TrainingRows rows = without.rows();
    rows.n_leaves = n_leaves;
    const LeafIndex smaller(rows, false, 1);
    if (smaller.shift() != index.shift()) return;
    REQUIRE(ask_all(smaller, GivenLeaves(smaller, Matrix(leaves, 1, smaller.n_trees())), {},
                    question, run) == found);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input in(data, size);
    samples::Training training = some_training(in);
    const bool keep = in.one_in(2);
    std::vector<std::int64_t> n_leaves;
    if (in.one_in(3)) n_leaves.assign(training.n_trees, 8);
    const std::size_t n_pokes = in.below(4);
    for (std::size_t k = 0; k < n_pokes; ++k) poke_one(in, training, n_leaves);
    if (std::any_of(training.leaves.begin(), training.leaves.end(), is_huge) ||
        std::any_of(n_leaves.begin(), n_leaves.end(), is_huge)) {
        return 0;
    }
    TrainingRows rows = some_rows(in, training);
    rows.n_leaves = n_leaves;

    std::optional<LeafIndex> index;
    const std::string reason = refusal([&] { index.emplace(rows, keep, 1); });
    const bool excluded = keep && rows.max_samples_leaf > 0;
    REQUIRE(excluded ? !reason.empty() : reason.empty() || n_pokes > 0);
    std::optional<LeafIndex> by_two_threads;
    const bool compare = in.one_in(8);
    if (compare) {
        const std::string other = refusal([&] { by_two_threads.emplace(rows, keep, 2); });
        REQUIRE(other.empty() == reason.empty());
    }
    if (!index) return 0;
    const ArrayCopy arrays(index->arrays());
    REQUIRE(!compare || ArrayCopy(by_two_threads->arrays()) == arrays);
    // What was built is accepted as arrays too.
    REQUIRE(ArrayCopy(LeafIndex(arrays.arrays()).arrays()) == arrays);
    check_queries(*index, in);
    const bool alike = training.counts.empty() && training.weights.empty() && !rows.pooled &&
                       rows.max_samples_leaf == 0;
    if (keep) check_leave_out(*index, training, alike, in);
    return 0;
}
