// test_distribution.cpp: gathered atoms against sums over a dense table
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <map>

#include "check.hpp"
#include "merge/distribution.hpp"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

// Mass of each atom by brute force, in units; row `without` is absent.
std::map<double, mass_t> masses(const Training& rows, const std::vector<leaf_t>& query, int shift,
                                std::size_t without, std::size_t& n_speaking) {
    std::map<double, mass_t> found;
    n_speaking = 0;
    for (std::size_t t = 0; t < rows.n_trees; ++t) {
        std::map<double, count_t> members;
        count_t total = 0;
        for (std::size_t i = 0; i < rows.n_rows; ++i) {
            if (i == without || rows.leaves[i * rows.n_trees + t] != query[t]) continue;
            ++members[rows.y[i]];
            ++total;
        }
        n_speaking += total > 0;
        count_t part = 0;
        mass_t given = 0;
        for (const auto& [z, count] : members) {
            part += count;
            const mass_t upto = share(part, total, shift);
            found[z] += upto - given;
            given = upto;
        }
    }
    return found;
}

void check_atoms(const Distribution& found, const std::map<double, mass_t>& expected,
                 std::size_t n_speaking) {
    const Atoms atoms = found.atoms();
    CHECK(atoms.size() == expected.size() && atoms.n_trees == n_speaking);
    CHECK(found.ranks().size() == atoms.size());
    CHECK(atoms.total() == static_cast<mass_t>(n_speaking) << atoms.shift);
    std::size_t k = 0;
    for (const auto& [z, mass] : expected) {
        if (k == atoms.size()) break;
        CHECK(atoms.values[k] == z && atoms.cumulative[k + 1] - atoms.cumulative[k] == mass);
        ++k;
    }
}

void gathering_sums_the_leaves() {
    Random random(1);
    for (int round = 0; round < 200; ++round) {
        const Training rows =
            random_training(random, 1 + below(random, 200), 1 + below(random, 6), 5);
        const LeafIndex index(rows.rows(), true, 1);
        Distribution row(index);
        for (int query_round = 0; query_round < 5; ++query_round) {
            std::vector<leaf_t> query(rows.n_trees);
            for (std::size_t t = 0; t < rows.n_trees; ++t) {
                query[t] = static_cast<leaf_t>(below(random, index.n_leaves(t) + 1)) - 1;
            }
            std::size_t n_speaking;
            auto expected = masses(rows, query, index.shift(), rows.n_rows, n_speaking);
            row.gather(0, query.data());
            check_atoms(row, expected, n_speaking);

            const std::size_t out = below(random, rows.n_rows);
            for (std::size_t t = 0; t < rows.n_trees; ++t) {
                query[t] = rows.leaves[out * rows.n_trees + t];
            }
            expected = masses(rows, query, index.shift(), out, n_speaking);
            const RowWeights& kept = *index.row_weights();
            row.gather_without(0, query.data(), kept.ranks[out], kept.rows[out]);
            check_atoms(row, expected, n_speaking);
        }
    }
}

std::vector<LeafEntries> entries_of(const LeafIndex& index, const std::vector<leaf_t>& leaves) {
    std::vector<LeafEntries> found(leaves.size());
    for (std::size_t t = 0; t < leaves.size(); ++t) {
        const std::uint32_t* begin = index.leaf_begin(0, t);
        if (leaves[t] != no_leaf) found[t] = {begin[leaves[t]], begin[leaves[t] + 1], leaves[t]};
    }
    return found;
}

// Ascending, apart from each other, in 2 to 9 pieces of all buckets.
BucketRuns random_runs(Random& random) {
    BucketRuns runs;
    std::size_t at = below(random, n_buckets / 2);
    while (at < n_buckets && runs.n < 9) {
        const std::size_t end = std::min(n_buckets, at + 1 + below(random, 30));
        runs.runs[runs.n++] = {at, end};
        at = end + 1 + below(random, 30);
    }
    return runs;
}

// Atoms in the runs have the mass, and the mass below them, that gathering everything finds.
void runs_of_buckets_have_the_exact_masses() {
    Random random(3);
    std::size_t n_compared = 0;
    for (int round = 0; round < 10; ++round) {
        Training rows = random_training(random, 200 + below(random, 800), 1 + below(random, 30), 5);
        // Rows of one leaf that share a target would not weigh alike.
        for (double& y : rows.y) y += uniform(random);
        const LeafIndex index(rows.rows(), false, 1);
        CHECK(index.bucket_counts().has_value());
        Distribution whole(index), part(index);
        for (int query_round = 0; query_round < 10; ++query_round) {
            std::vector<leaf_t> query(rows.n_trees);
            for (leaf_t& leaf : query) leaf = static_cast<leaf_t>(below(random, 6)) - 1;
            query[0] = 0;
            const std::vector<LeafEntries> leaves = entries_of(index, query);
            whole.gather(0, query.data());
            part.survey(0, leaves.data(), 1);
            const BucketRuns runs = random_runs(random);
            part.gather_buckets(0, runs);
            const Atoms expected = whole.atoms(), found = part.atoms();
            CHECK(found.total() == expected.total());
            std::size_t k = 0;
            for (std::size_t i = 0; i < found.size(); ++i) {
                if (std::isnan(found.values[i])) continue;
                while (expected.values[k] < found.values[i]) ++k;
                CHECK(expected.values[k] == found.values[i]);
                CHECK(expected.cumulative[k] == found.cumulative[i]);
                CHECK(expected.cumulative[k + 1] == found.cumulative[i + 1]);
                ++n_compared;
            }
        }
    }
    CHECK(n_compared > 10000);
}

void answers_follow_from_the_masses() {
    Random random(2);
    for (int round = 0; round < 500; ++round) {
        const Sample sample = random_sample(random, 1 + below(random, 12));
        const Atoms atoms = sample.atoms();
        const auto whole = static_cast<double>(atoms.total());
        double mean = 0;
        for (std::size_t k = 0; k < atoms.size(); ++k) {
            const auto mass = static_cast<double>(sample.cumulative[k + 1] - sample.cumulative[k]);
            mean += mass / whole * sample.values[k];
            const double upto = static_cast<double>(sample.cumulative[k + 1]) / whole;
            CHECK(atoms.cdf(sample.values[k]) == upto);
            CHECK(atoms.cdf(std::nextafter(sample.values[k], -1e300)) ==
                  static_cast<double>(sample.cumulative[k]) / whole);
            CHECK(atoms.draw(static_cast<double>(sample.cumulative[k]) / whole) ==
                  sample.values[k]);
            // A level that is the exact share of atoms is recognised.
            CHECK(atoms.needed(upto) <= sample.cumulative[k + 1]);
        }
        CHECK(std::fabs(atoms.mean() - mean) < 1e-12);
        CHECK(atoms.draw(0) == sample.values.front());
        CHECK(atoms.draw(std::nextafter(1.0, 0.0)) == sample.values.back());
        CHECK(atoms.needed(1) == atoms.total() && atoms.needed(0) == 1);
        CHECK(atoms.needed(0.5) == atoms.total() / 2 - 2);
    }
}

}  // namespace

int main() {
    gathering_sums_the_leaves();
    runs_of_buckets_have_the_exact_masses();
    answers_follow_from_the_masses();
    return check::finish();
}
