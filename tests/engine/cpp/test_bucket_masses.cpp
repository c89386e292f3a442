// test_bucket_masses.cpp: every end that an enumeration finds lies in a marked bucket
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include "base/fixed_point.hpp"
#include "check.hpp"
#include "index/derived_tables.hpp"
#include "kernels/kernels.hpp"
#include "pmf/bucket_masses.hpp"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

// Leaves of equally weighted rows, and the mass of each atom in all of them.
struct Leaves {
    std::vector<double> atoms;
    std::vector<EntrySlice> slices;
    std::vector<double> entry_mass;
    std::vector<std::uint16_t> below;
    std::vector<std::uint16_t> fine_below;
    std::vector<mass_t> masses;
    rank_t first = std::numeric_limits<rank_t>::max();
    rank_t last = 0;
};

Leaves random_leaves(Random& random) {
    Leaves leaves;
    const std::size_t n_atoms = 1 + below(random, below(random, 2) == 0 ? 60 : 2000);
    const bool lattice = below(random, 2) == 0;
    double at = -20;
    for (std::size_t k = 0; k < n_atoms; ++k) {
        at += lattice ? 0.1 : uniform(random);
        leaves.atoms.push_back(at);
    }
    const BucketEdges edges(leaves.atoms);
    const BucketEdges fine(leaves.atoms, n_fine_buckets);
    // Many trees of few rows make the error of the sums large.
    const bool many = below(random, 10) == 0;
    const std::size_t n_trees = 1 + below(random, many ? 3000 : 20);
    leaves.masses.resize(n_atoms);
    for (std::size_t t = 0; t < n_trees; ++t) {
        const std::size_t n = 1 + below(random, many ? 40 : 300);
        const std::size_t low = below(random, n_atoms);
        std::vector<rank_t> ranks(n);
        for (rank_t& rank : ranks) {
            rank = static_cast<rank_t>(low + below(random, n_atoms - low));
        }
        std::sort(ranks.begin(), ranks.end());
        leaves.first = std::min(leaves.first, ranks.front());
        leaves.last = std::max(leaves.last, ranks.back());
        leaves.slices.push_back(
            {0, 0, static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(t)});
        leaves.entry_mass.push_back(0x1p31 / static_cast<double>(n));
        leaves.below.resize((t + 1) * n_buckets);
        count_below(edges, std::span<const rank_t>(ranks), &leaves.below[t * n_buckets]);
        leaves.fine_below.resize((t + 1) * n_fine_buckets);
        count_below(fine, std::span<const rank_t>(ranks), &leaves.fine_below[t * n_fine_buckets]);
        for (std::size_t e = 0; e < n; ++e) {
            leaves.masses[ranks[e]] +=
                floor_units(e + 1, n, narrow_shift) - floor_units(e, n, narrow_shift);
        }
    }
    return leaves;
}

template <class Count>
BucketMasses sum(const Leaves& leaves, const BucketEdges& edges, const std::vector<Count>& below,
                 const Kernels& kernels) {
    BucketMasses masses;
    masses.assign(edges, leaves.slices.size(), leaves.first, leaves.last,
                  [&](std::size_t b, float* sums) {
                      kernels.sum_counts<Count>()(below.data() + b, n_buckets, leaves.slices,
                                                  leaves.entry_mass.data(), sums);
                  });
    return masses;
}

void edges_enclose_their_atoms(std::size_t n_edges) {
    Random random(1);
    for (const std::size_t n_atoms : {1u, 5u, 127u, 128u, 129u, 1023u, 1025u, 5000u}) {
        std::vector<double> atoms(n_atoms);
        for (double& z : atoms) z = uniform(random);
        std::sort(atoms.begin(), atoms.end());
        const BucketEdges edges(atoms, n_edges);
        CHECK(edges.size() == n_edges);
        CHECK(edges.begin[0] == 0 && edges.begin[n_edges] == n_atoms);
        const BucketEdges coarse(atoms);
        for (std::size_t b = 0; b < n_edges; b += n_edges / n_buckets) {
            CHECK(edges.begin[b] == coarse.begin[b * n_buckets / n_edges]);
        }
        for (rank_t rank = 0; rank < n_atoms; ++rank) {
            const std::size_t b = edges.bucket_of(rank);
            CHECK(edges.begin[b] <= rank && rank < edges.begin[b + 1]);
            CHECK(edges.lower[b] <= atoms[rank] && atoms[rank] <= edges.upper[b]);
        }
        std::vector<rank_t> ranks;
        for (std::size_t k = below(random, 200); k > 0; --k) {
            ranks.push_back(static_cast<rank_t>(below(random, n_atoms)));
        }
        std::sort(ranks.begin(), ranks.end());
        std::vector<std::uint8_t> n_below(n_edges);
        count_below(edges, std::span<const rank_t>(ranks), n_below.data());
        for (std::size_t b = 0; b < n_edges; ++b) {
            const auto at = std::lower_bound(ranks.begin(), ranks.end(), edges.begin[b]);
            CHECK(n_below[b] == at - ranks.begin());
        }
    }
}

void no_end_is_missed(const Kernels& kernels) {
    Random random(2);
    for (int round = 0; round < 150; ++round) {
        const Leaves leaves = random_leaves(random);
        const BucketEdges edges(leaves.atoms);
        const std::vector<std::uint8_t> narrow(leaves.below.begin(), leaves.below.end());
        const bool fits = *std::max_element(leaves.below.begin(), leaves.below.end()) < 256;
        BucketMasses masses =
            fits ? sum(leaves, edges, narrow, kernels) : sum(leaves, edges, leaves.below, kernels);
        CHECK(masses.needed(1) == static_cast<mass_t>(leaves.slices.size()) << narrow_shift);
        std::vector<mass_t> cumulative{0};
        for (const mass_t mass : leaves.masses) cumulative.push_back(cumulative.back() + mass);
        const mass_t total = cumulative.back();
        const mass_t needed =
            round % 5 == 0
                ? total
                : std::max<mass_t>(
                      1, static_cast<mass_t>(static_cast<double>(total) * uniform(random)));
        BucketSet reaching{};
        masses.mark_reaching(needed, reaching);
        const auto at = std::lower_bound(cumulative.begin() + 1, cumulative.end(), needed);
        CHECK(reaching[edges.bucket_of(static_cast<rank_t>(at - cumulative.begin() - 1))]);

        BucketSet marked{};
        masses.mark_shortest(needed, marked);
        // The buckets that are marked, and then those parts of them that are.
        const BucketEdges fine(leaves.atoms, n_fine_buckets);
        masses.refine(fine, marked, [&](std::size_t b, float* sums) {
            kernels.sum_counts<std::uint16_t>()(leaves.fine_below.data() + b, n_fine_buckets,
                                                leaves.slices, leaves.entry_mass.data(), sums);
        });
        CHECK(masses.fine(0) == 0 && masses.fine(masses.size()) == n_fine_buckets);
        BucketSet parts{};
        masses.mark_shortest(needed, parts);
        BucketSet parts_reaching{};
        masses.mark_reaching(needed, parts_reaching);
        const auto ranks_in = [&](const BucketSet& set) {
            std::vector<bool> inside(leaves.atoms.size());
            for (std::size_t b = 0; b < masses.size(); ++b) {
                const rank_t end = fine.begin[masses.fine(b + 1)];
                for (rank_t k = fine.begin[masses.fine(b)]; k < end; ++k) inside[k] = set[b];
            }
            return inside;
        };
        CHECK(ranks_in(parts_reaching)[static_cast<std::size_t>(at - cumulative.begin() - 1)]);
        const std::vector<bool> in_parts = ranks_in(parts);
        std::vector<std::pair<rank_t, rank_t>> windows;
        double shortest = std::numeric_limits<double>::infinity();
        for (rank_t i = 0; i < leaves.atoms.size(); ++i) {
            if (leaves.masses[i] == 0 || total - cumulative[i] < needed) continue;
            const auto end =
                std::lower_bound(cumulative.begin() + 1, cumulative.end(), cumulative[i] + needed);
            windows.emplace_back(i, static_cast<rank_t>(end - cumulative.begin() - 1));
            shortest = std::min(shortest, leaves.atoms[windows.back().second] - leaves.atoms[i]);
        }
        const double limit = shortest + 0x1p-48 * std::max(std::fabs(leaves.atoms[leaves.first]),
                                                           std::fabs(leaves.atoms[leaves.last]));
        for (const auto& [i, j] : windows) {
            if (leaves.atoms[j] - leaves.atoms[i] > limit) continue;
            CHECK(marked[edges.bucket_of(i)] && marked[edges.bucket_of(j)]);
            CHECK(in_parts[i] && in_parts[j]);
        }
    }
}

void runs_hold_the_marked_buckets() {
    Random random(3);
    for (int round = 0; round < 200; ++round) {
        const Leaves leaves = random_leaves(random);
        const BucketEdges edges(leaves.atoms);
        const BucketMasses masses = sum(leaves, edges, leaves.below, portable_kernels);
        BucketSet marked{};
        for (bool& mark : marked) mark = below(random, 1 + round % 7) == 0;
        BucketRuns found;
        masses.list_runs(marked, round % 2 == 0 ? 0.0f : 0.01f, found);
        BucketSet listed{};
        std::size_t end = 0;
        for (std::size_t r = 0; r < found.n; ++r) {
            const auto run = found.runs[r];
            CHECK((r == 0 || run.first > end) && run.first < run.end && run.end <= n_buckets);
            CHECK(marked[run.first] && marked[run.end - 1]);
            end = run.end;
            for (std::size_t b = run.first; b < run.end; ++b) listed[b] = true;
        }
        for (std::size_t b = 0; b < n_buckets; ++b) CHECK(listed[b] || !marked[b]);
        masses.list_runs(marked, 1, found);
        CHECK(found.n <= 1);
    }
}

}  // namespace

int main() {
    edges_enclose_their_atoms(n_buckets);
    edges_enclose_their_atoms(n_fine_buckets);
    for (const Kernels* kernels : available_kernels()) no_end_is_missed(*kernels);
    runs_hold_the_marked_buckets();
    return check::finish();
}
