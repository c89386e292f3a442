// queries.hpp: asks an index everything for given leaves, and compares it with a slow definition
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "index/leaf_index.hpp"
#include "input.hpp"
#include "scoring/leaf_source.hpp"
#include "scoring/row_weights.hpp"
#include "scoring/scorer.hpp"
#include "slow_atoms.hpp"

namespace fuzz {

using namespace hdicore;

inline constexpr std::size_t n_interpolations =
    static_cast<std::size_t>(Interpolation::normal_unbiased) + 1;

// What is asked of each row and output; one set of arguments for all of them.
struct Question {
    std::vector<double> coverages;  // ascending
    std::vector<double> levels;     // ascending
    std::vector<double> points;     // ascending
    std::vector<double> uniforms;
    bool inclusive;
    Kind kind;
    Interpolation interpolation;

    explicit Question(Input& in) {
        const auto fill = [&](std::vector<double>& values, const auto& next) {
            values.resize(1 + in.below(4));
            for (double& value : values) value = next();
            std::sort(values.begin(), values.end());
        };
        fill(coverages, [&] { return std::max(in.share(), std::numeric_limits<double>::min()); });
        fill(levels, [&] { return in.share(); });
        fill(points, [&] {
            const double point = in.real();
            return std::isnan(point) ? 0 : point;
        });
        fill(uniforms, [&] { return std::min(in.share(), 1 - 0x1p-53); });
        inclusive = in.one_in(2);
        kind = static_cast<Kind>(in.below(4));
        interpolation = static_cast<Interpolation>(in.below(n_interpolations));
    }
};

// (n_rows * n_outputs, number asked for) each; intervals are (n_rows * n_outputs, 2, n_coverages).
struct Answers {
    std::vector<double> mean, intervals, quantiles, cdf, draws;

    friend bool operator==(const Answers& a, const Answers& b) {
        return same_bits(a.mean, b.mean) && same_bits(a.intervals, b.intervals) &&
               same_bits(a.quantiles, b.quantiles) && same_bits(a.cdf, b.cdf) &&
               same_bits(a.draws, b.draws);
    }
};

inline Answers ask_all(const LeafIndex& index, const LeafSource& source,
                       std::span<const std::uint32_t> leave_out, const Question& question,
                       const Execution& run) {
    const std::size_t n = source.n_rows() * index.n_outputs();
    Answers answers;
    const auto repeat = [n](const std::vector<double>& values) {
        std::vector<double> all;
        for (std::size_t i = 0; i < n; ++i) all.insert(all.end(), values.begin(), values.end());
        return all;
    };
    answers.mean.resize(n);
    answers.intervals.resize(2 * n * question.coverages.size());
    answers.quantiles.resize(n * question.levels.size());
    answers.cdf.resize(n * question.points.size());
    answers.draws = repeat(question.uniforms);
    const std::vector<double> points = repeat(question.points);
    Request request;
    request.mean.results = answers.mean;
    request.intervals.coverages = question.coverages;
    request.intervals.kind = question.kind;
    request.intervals.results = {answers.intervals.data(), n, 2 * question.coverages.size()};
    request.quantiles.levels = question.levels;
    request.quantiles.interpolation = question.interpolation;
    request.quantiles.results = {answers.quantiles.data(), n, question.levels.size()};
    request.cdf.points = {points.data(), n, question.points.size()};
    request.cdf.results = {answers.cdf.data(), n, question.points.size()};
    request.cdf.inclusive = question.inclusive;
    request.draws.results = {answers.draws.data(), n, question.uniforms.size()};
    score(index, source, leave_out, request, run);
    return answers;
}

// Only the intervals, and quantiles by inverted_cdf, which do not need every atom.
inline Answers ask_ends(const LeafIndex& index, const LeafSource& source, const Question& question,
                        const Execution& run) {
    const std::size_t n = source.n_rows() * index.n_outputs();
    Answers answers;
    answers.intervals.resize(2 * n * question.coverages.size());
    answers.quantiles.resize(n * question.levels.size());
    Request request;
    request.intervals.coverages = question.coverages;
    request.intervals.kind = question.kind;
    request.intervals.results = {answers.intervals.data(), n, 2 * question.coverages.size()};
    request.quantiles.levels = question.levels;
    request.quantiles.results = {answers.quantiles.data(), n, question.levels.size()};
    score(index, source, {}, request, run);
    return answers;
}

inline bool all_nan(std::span<const double> values) {
    return std::all_of(values.begin(), values.end(), [](double x) { return std::isnan(x); });
}

inline void check_interval(const SlowAtoms& atoms, double coverage, Kind kind, double lower,
                           double upper) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    REQUIRE(lower <= upper);
    REQUIRE(kind == Kind::upper ? lower == -infinity : atoms.holds(lower));
    REQUIRE(kind == Kind::lower ? upper == infinity : atoms.holds(upper));
    const mass_t needed = atoms.needed(coverage);
    const mass_t mass = atoms.mass_between(lower, upper);
    if (kind == Kind::equal_tailed) {
        REQUIRE(lower == atoms.first_reaching((1 - coverage) / 2));
        REQUIRE(upper == atoms.first_reaching((1 + coverage) / 2));
        return;
    }
    REQUIRE(mass >= needed);
    if (kind == Kind::lower) {
        REQUIRE(atoms.mass_between(std::nextafter(lower, infinity), infinity) < needed);
    } else if (kind == Kind::upper) {
        REQUIRE(atoms.mass_between(-infinity, std::nextafter(upper, -infinity)) < needed);
    } else {
        const double largest =
            std::max(std::fabs(atoms.values.front()), std::fabs(atoms.values.back()));
        REQUIRE(upper - lower <= atoms.least_width(coverage) + 0x1p-48 * largest);
    }
}

// `all` are the atoms of the output. A mean errs by so little of their range.
inline void check_row(const SlowAtoms& atoms, std::span<const double> all, const Question& question,
                      const Answers& answers, std::size_t at) {
    const auto part = [&](const std::vector<double>& values, std::size_t n) {
        return std::span(values).subspan(at * n, n);
    };
    const std::size_t n_coverages = question.coverages.size();
    const auto intervals = part(answers.intervals, 2 * n_coverages);
    const auto quantiles = part(answers.quantiles, question.levels.size());
    const auto cdf = part(answers.cdf, question.points.size());
    const auto draws = part(answers.draws, question.uniforms.size());
    const double mean = answers.mean[at];
    if (atoms.n_trees == 0) {
        REQUIRE(std::isnan(mean) && all_nan(intervals) && all_nan(quantiles) && all_nan(cdf) &&
                all_nan(draws));
        return;
    }
    const double least = atoms.values.front();
    const double most = atoms.values.back();
    // More where pooled leaves weigh less than a tree, as steps are of whole trees.
    const double weight = static_cast<double>(atoms.total()) / static_cast<double>(atoms.whole);
    const double rounding =
        1e-12 * std::max(std::fabs(all.front()), std::fabs(all.back())) / weight;
    REQUIRE(mean >= all.front() && mean <= all.back());
    REQUIRE(mean >= least - rounding && mean <= most + rounding);
    for (std::size_t k = 0; k < n_coverages; ++k) {
        check_interval(atoms, question.coverages[k], question.kind, intervals[k],
                       intervals[n_coverages + k]);
    }
    for (std::size_t k = 0; k < quantiles.size(); ++k) {
        REQUIRE(quantiles[k] >= (k == 0 ? least : quantiles[k - 1]) && quantiles[k] <= most);
        if (question.interpolation == Interpolation::inverted_cdf) {
            REQUIRE(quantiles[k] == atoms.first_reaching(question.levels[k]));
        }
    }
    for (std::size_t k = 0; k < cdf.size(); ++k) {
        constexpr double infinity = std::numeric_limits<double>::infinity();
        const double point = question.points[k];
        const mass_t below = atoms.mass_between(
            -infinity, question.inclusive ? point : std::nextafter(point, -infinity));
        REQUIRE(cdf[k] == static_cast<double>(below) / static_cast<double>(atoms.total()));
    }
    for (const double draw : draws) REQUIRE(atoms.holds(draw));
}

// Weights sum to 1 and proximities are the counts of the rows, at the same atoms.
inline void check_sparse(const LeafIndex& index, const std::vector<leaf_t>& leaves,
                         const CsrMatrix<double>& weights,
                         const CsrMatrix<std::int64_t>& proximities) {
    REQUIRE(weights.indptr == proximities.indptr && weights.indices == proximities.indices);
    for (std::size_t i = 0; i + 1 < weights.indptr.size(); ++i) {
        const SlowAtoms atoms(index, 0, leaves.data() + i * index.n_trees());
        const auto begin = static_cast<std::size_t>(weights.indptr[i]);
        const auto end = static_cast<std::size_t>(weights.indptr[i + 1]);
        REQUIRE(end - begin == atoms.size());
        double sum = 0;
        for (std::size_t k = begin; k < end; ++k) {
            const auto rank = static_cast<std::size_t>(weights.indices[k]);
            REQUIRE(index.atoms(0)[rank] == atoms.values[k - begin]);
            REQUIRE(proximities.data[k] == atoms.counts[k - begin]);
            sum += weights.data[k];
        }
        REQUIRE(begin == end || std::fabs(sum - 1) < 1e-9);
    }
}

// Rows to ask about: leaves that exist and -1, and sometimes numbers that are neither.
inline std::vector<leaf_t> some_leaves(Input& in, const LeafIndex& index) {
    const std::size_t n_rows = in.below(in.one_in(4) ? 40 : 6);
    const bool proper = !in.one_in(8);
    std::vector<leaf_t> leaves(n_rows * index.n_trees());
    for (std::size_t i = 0; i < leaves.size(); ++i) {
        const std::size_t t = i % index.n_trees();
        const std::size_t n = index.n_leaves(t);
        const bool none = n == 0 || in.one_in(8);
        leaves[i] = none ? no_leaf : static_cast<leaf_t>(in.below(n));
        if (proper && !none && !index.has_leaf(t, leaves[i])) leaves[i] = no_leaf;
    }
    if (!proper) in.poke(leaves);
    return leaves;
}

// All strategies must agree with each other, bit for bit, and with SlowAtoms.
inline void check_queries(const LeafIndex& index, Input& in) {
    const Question question(in);
    const std::vector<leaf_t> leaves = some_leaves(in, index);
    const std::size_t m = index.n_trees();
    const GivenLeaves source(index, Matrix(leaves.data(), leaves.size() / m, index.n_trees()));
    bool proper = true;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
        proper = proper && (leaves[i] == no_leaf || index.has_leaf(i % m, leaves[i]));
    }
    const Execution plain{1, 0, Strategy::whole, portable_kernels};
    Answers all;
    const std::string reason = refusal([&] { all = ask_all(index, source, {}, question, plain); });
    REQUIRE(reason.empty() == proper);
    if (!proper) return;

    for (std::size_t i = 0; i < source.n_rows(); ++i) {
        for (std::size_t o = 0; o < index.n_outputs(); ++o) {
            check_row(SlowAtoms(index, o, leaves.data() + i * m), index.atoms(o), question, all,
                      i * index.n_outputs() + o);
        }
    }
    const Execution other{1 + static_cast<unsigned>(in.below(2)), in.below(20), Strategy::automatic,
                          *available_kernels()[in.below(available_kernels().size())]};
    REQUIRE(ask_all(index, source, {}, question, other) == all);
    const Answers ends = ask_ends(index, source, question, plain);
    REQUIRE(same_bits(ends.intervals, all.intervals));
    for (const Strategy strategy : {Strategy::automatic, Strategy::tails, Strategy::buckets}) {
        Execution run = other;
        run.strategy = strategy;
        REQUIRE(ask_ends(index, source, question, run) == ends);
    }
    std::vector<std::int64_t> counts(source.n_rows());
    count_samples(index, source, other, counts);
    for (std::size_t i = 0; i < counts.size(); ++i) {
        const SlowAtoms atoms(index, 0, leaves.data() + i * m);
        REQUIRE(counts[i] ==
                std::accumulate(atoms.counts.begin(), atoms.counts.end(), std::int64_t{0}));
    }
    if (index.n_outputs() > 1) return;
    check_sparse(index, leaves, atom_weights(index, source, {}, other),
                 proximities(index, source, {}, other));
}

}  // namespace fuzz
