// test_leaf_index.cpp: exact shares in every leaf, and leaves without rows
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <type_traits>

#include "check.hpp"
#include "index/leaf_index.hpp"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

// Entries of a leaf by brute force: target -> whole weight.
std::map<double, count_t> members(const Training& rows, std::size_t output, std::size_t tree,
                                  leaf_t leaf, const std::vector<count_t>& weights) {
    std::map<double, count_t> found;
    for (std::size_t i = 0; i < rows.n_rows; ++i) {
        const std::size_t at = i * rows.n_trees + tree;
        if (rows.leaves[at] != leaf) continue;
        const auto count = rows.counts.empty() ? 1 : static_cast<count_t>(rows.counts[at]);
        const count_t weight = count * (weights.empty() ? 1 : weights[i]);
        if (weight > 0) found[rows.y[i * rows.n_outputs + output]] += weight;
    }
    return found;
}

// Units of the entries of one leaf.
std::vector<mass_t> units_of(const LeafIndex& index, const EntrySlice& slice) {
    std::vector<mass_t> found;
    std::visit(
        [&]<class Units>(const Units& units) {
            for (std::size_t e = 0; e < slice.n; ++e) {
                if constexpr (std::is_same_v<Units, std::monostate>) {
                    found.push_back(index.uniform_units()[slice.units + e]);
                } else {
                    found.push_back(static_cast<mass_t>(units[slice.units + e]));
                }
            }
        },
        index.arrays().units);
    return found;
}

void check_against_brute_force(const Training& rows, unsigned n_threads) {
    const LeafIndex index(rows.rows(), true, n_threads);
    std::vector<count_t> weights;
    if (!rows.weights.empty()) {
        const auto most =
            rows.counts.empty() ? 1 : *std::max_element(rows.counts.begin(), rows.counts.end());
        weights = integer_weights(rows.weights, static_cast<std::size_t>(std::max(most, 1)));
    }
    for (std::size_t o = 0; o < index.n_outputs(); ++o) {
        for (std::size_t t = 0; t < index.n_trees(); ++t) {
            for (leaf_t leaf = 0; static_cast<std::size_t>(leaf) < index.n_leaves(t); ++leaf) {
                const auto expected = members(rows, o, t, leaf, weights);
                const EntrySlice slice = index.entries(o, t, leaf);
                const std::vector<mass_t> units = units_of(index, slice);
                CHECK(slice.n == expected.size());
                std::size_t k = 0;
                count_t total = 0;
                for (const auto& [z, weight] : expected) total += weight;
                count_t part = 0;
                mass_t given = 0;
                for (const auto& [z, weight] : expected) {
                    part += weight;
                    const mass_t upto = floor_units(part, total, index.shift());
                    CHECK(index.atoms(o)[index.rank(slice.begin + k)] == z);
                    CHECK(index.row_weights()->entries[slice.begin + k] == weight);
                    CHECK(units[k++] == upto - given);
                    given = upto;
                }
                CHECK(expected.empty() || given == mass_t{1} << index.shift());
            }
        }
    }
}

void random_rows_are_indexed_exactly() {
    Random random(3);
    for (int round = 0; round < 100; ++round) {
        Training rows = random_training(random, 1 + below(random, 60), 1 + below(random, 5),
                                        1 + below(random, 8), 1 + below(random, 2));
        if (below(random, 2) == 0) {
            rows.counts.resize(rows.leaves.size());
            const std::size_t most = below(random, 4) == 0 ? std::size_t{1} << 27 : 4;
            for (auto& count : rows.counts) count = static_cast<std::int32_t>(below(random, most));
        }
        if (below(random, 2) == 0) {
            rows.weights.resize(rows.n_rows);
            for (double& w : rows.weights) w = 0.5 + uniform(random);
        }
        check_against_brute_force(rows, static_cast<unsigned>(1 + below(random, 3)));
    }
}

// Rows of equal weight are stored without units; any run of them weighs as if they had some.
void uniform_rows_weigh_as_with_units() {
    Random random(7);
    int n_uniform = 0;
    for (int round = 0; round < 100; ++round) {
        Training rows = random_training(random, 1 + below(random, 300), 1 + below(random, 5),
                                        1 + below(random, 8), 1 + below(random, 2));
        if (below(random, 2) == 0) {
            for (double& y : rows.y) y = uniform(random);
        }
        if (below(random, 2) == 0) {
            rows.counts.resize(rows.leaves.size());
            for (auto& count : rows.counts) count = static_cast<std::int32_t>(below(random, 4));
        }
        const LeafIndex with_units(rows.rows(), true, 1);
        const LeafIndex index(rows.rows(), false, 2);
        const bool uniform = index.arrays().uniform();
        n_uniform += uniform;
        CHECK(uniform || index.n_entries() == with_units.n_entries());
        for (std::size_t o = 0; o < index.n_outputs(); ++o) {
            for (std::size_t t = 0; t < index.n_trees(); ++t) {
                for (leaf_t leaf = 0; static_cast<std::size_t>(leaf) < index.n_leaves(t); ++leaf) {
                    const EntrySlice slice = index.entries(o, t, leaf);
                    const EntrySlice own = with_units.entries(o, t, leaf);
                    const std::vector<mass_t> units = units_of(index, slice);
                    const std::vector<mass_t> own_units = units_of(with_units, own);
                    std::size_t k = 0;
                    for (std::size_t u = 0; u < own.n; ++u) {
                        mass_t sum = 0;
                        const rank_t rank = with_units.rank(own.begin + u);
                        for (; k < slice.n && index.rank(slice.begin + k) == rank; ++k) {
                            sum += units[k];
                        }
                        CHECK(sum == own_units[u]);
                    }
                    CHECK(k == slice.n);
                }
            }
        }
    }
    CHECK(n_uniform > 20 && n_uniform < 80);
}

bool same(const LeafIndexArrays& a, const LeafIndexArrays& b) {
    const auto equal = [](const auto& x, const auto& y) {
        return std::equal(x.view().begin(), x.view().end(), y.view().begin(), y.view().end());
    };
    return equal(a.leaf_offsets, b.leaf_offsets) && equal(a.atoms, b.atoms) &&
           equal(a.atom_offsets, b.atom_offsets) && equal(a.tree_begin, b.tree_begin) &&
           equal(a.leaf_begin, b.leaf_begin) && a.ranks.index() == 0 &&
           equal(std::get<0>(a.ranks), std::get<0>(b.ranks)) &&
           a.units.index() == b.units.index() &&
           (a.units.index() == 0 || equal(std::get<1>(a.units), std::get<1>(b.units)));
}

void thread_counts_change_nothing() {
    Random random(4);
    Training rows = random_training(random, 500, 20, 30, 2);
    for (const bool weighted : {false, true}) {
        if (weighted) rows.weights.assign(rows.n_rows, 0.5);
        const LeafIndex index(rows.rows(), false, 1);
        for (const unsigned n_threads : {0u, 2u, 7u, 100u}) {
            CHECK(same(index.arrays(), LeafIndex(rows.rows(), false, n_threads).arrays()));
        }
    }
}

// Without a row, a leaf does not exist; with rows that do not count, it does.
void leaves_without_rows_do_not_exist() {
    Random random(8);
    Training rows = random_training(random, 40, 3, 5);
    for (leaf_t& leaf : rows.leaves) leaf *= 50;
    rows.counts.assign(rows.leaves.size(), 1);
    for (std::size_t i = 0; i < rows.leaves.size(); i += 2) rows.counts[i] = 0;
    TrainingRows given = rows.rows();
    CHECK(LeafIndex(given, false, 1).has_leaf(1, 49));
    given.mask_leaves = true;
    const LeafIndex index(given, false, 1);
    for (std::size_t t = 0; t < 3; ++t) {
        for (std::size_t l = 0; l < index.n_leaves(t); ++l) {
            bool seen = false;
            for (std::size_t i = 0; i < 40; ++i) {
                seen = seen || rows.leaves[i * 3 + t] == static_cast<leaf_t>(l);
            }
            CHECK(index.has_leaf(t, static_cast<leaf_t>(l)) == seen);
        }
    }
    LeafIndexArrays bad = index.arrays();
    bad.leaf_mask = Array(std::vector<std::uint64_t>(bad.leaf_mask.size(), 0));
    CHECK_REFUSED(LeafIndex(bad), "seen is damaged");
    bad.leaf_mask = Array(std::vector<std::uint64_t>(bad.leaf_mask.size() + 1, 0));
    CHECK_REFUSED(LeafIndex(bad), "a bit for each leaf");
}

void builds_and_checks_stop_when_asked() {
    Random random(11);
    const Training rows = random_training(random, 200, 5, 4);
    const LeafIndexArrays arrays = LeafIndex(rows.rows(), false, 1).arrays();
    const auto stopping = [](const auto& call) {
        Interruption interruption([] { throw std::invalid_argument("enough"); });
        std::this_thread::sleep_for(Interruption::interval);
        call(interruption);
    };
    for (const unsigned n_threads : {1u, 3u}) {
        CHECK_REFUSED(
            stopping([&](Interruption& i) { LeafIndex(rows.rows(), false, n_threads, i); }),
            "enough");
    }
    CHECK_REFUSED(stopping([&](Interruption& i) { LeafIndex(arrays, "", Checks::now, 1, i); }),
                  "enough");
}

}  // namespace

int main() {
    random_rows_are_indexed_exactly();
    uniform_rows_weigh_as_with_units();
    thread_counts_change_nothing();
    leaves_without_rows_do_not_exist();
    builds_and_checks_stop_when_asked();
    return check::finish();
}
