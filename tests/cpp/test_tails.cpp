// test_tails.cpp: what is picked from both ends of leaves, with each set of instructions
// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include "check.hpp"
#include "merge/tails.hpp"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

using Entries = std::vector<std::pair<rank_t, std::uint32_t>>;

template <class Rank>
void picks_are_the_entries_of_the_tails() {
    Random random(1);
    for (int round = 0; round < 300; ++round) {
        const std::size_t most = below(random, 2) == 0 ? 20 : 200;
        std::vector<Rank> ranks;
        std::vector<std::uint32_t> units;
        std::vector<Leaf> leaves;
        for (std::size_t l = 1 + below(random, 60); l > 0; --l) {
            const auto n = static_cast<std::uint32_t>(1 + below(random, most));
            leaves.push_back({ranks.size(), units.size(), n});
            for (std::uint32_t e = 0; e < n; ++e) {
                ranks.push_back(static_cast<Rank>(below(random, 1000)));
                units.push_back(static_cast<std::uint32_t>(random()));
            }
            std::sort(ranks.end() - n, ranks.end());
        }
        const auto low = static_cast<rank_t>(below(random, 600));
        const auto high = static_cast<rank_t>(low + 1 + below(random, 500));
        Tails expected{low, high};
        Entries entries;
        for (std::size_t e = 0; e < ranks.size(); ++e) {
            if (ranks[e] <= low) expected.low_mass += units[e];
            if (ranks[e] >= high) expected.high_mass += units[e];
            if (ranks[e] <= low || ranks[e] >= high) entries.emplace_back(ranks[e], units[e]);
        }
        std::sort(entries.begin(), entries.end());
        for (const auto instructions : {Instructions::portable, widest_instructions()}) {
            Tails tails{low, high};
            Entries found;
            std::vector<rank_t> picked_ranks(Picked::enough + 2 * most + 16);
            std::vector<std::uint32_t> picked_units(picked_ranks.size());
            for (std::size_t read = 0; read < leaves.size();) {
                Picked picked{picked_ranks.data(), picked_units.data()};
                const std::size_t now =
                    pick_tails(std::span<const Leaf>(leaves).subspan(read), ranks.data(),
                               units.data(), instructions, tails, picked);
                CHECK(now > 0);
                if (now == 0) return;
                read += now;
                for (std::size_t k = 0; k < picked.n; ++k) {
                    found.emplace_back(picked_ranks[k], picked_units[k]);
                }
            }
            std::sort(found.begin(), found.end());
            CHECK(found == entries);
            CHECK(tails.low_mass == expected.low_mass && tails.high_mass == expected.high_mass);
            CHECK(tails.first == *std::min_element(ranks.begin(), ranks.end()));
            CHECK(tails.last == *std::max_element(ranks.begin(), ranks.end()));
        }
    }
}

// Some leaves are empty, some longer than a list should get; the last one ends the arrays.
template <class Rank>
void all_entries_are_picked_in_order() {
    Random random(3);
    for (int round = 0; round < 300; ++round) {
        const std::size_t most = round % 10 == 0 ? 3000 : 40;
        std::vector<Rank> ranks;
        std::vector<std::uint32_t> units;
        std::vector<Leaf> leaves;
        for (std::size_t l = 1 + below(random, 60); l > 0; --l) {
            const auto n = static_cast<std::uint32_t>(below(random, 3) * below(random, most));
            leaves.push_back({ranks.size(), units.size(), n});
            for (std::uint32_t e = 0; e < n; ++e) {
                ranks.push_back(static_cast<Rank>(random()));
                units.push_back(static_cast<std::uint32_t>(random()));
            }
        }
        for (const auto instructions : {Instructions::portable, widest_instructions()}) {
            std::vector<rank_t> found_ranks;
            std::vector<std::uint32_t> found_units;
            std::vector<rank_t> picked_ranks(Picked::enough + 2 * most + 16);
            std::vector<std::uint32_t> picked_units(picked_ranks.size());
            for (std::size_t read = 0; read < leaves.size();) {
                Picked picked{picked_ranks.data(), picked_units.data()};
                const std::size_t now = pick_all<Rank>(std::span<const Leaf>(leaves).subspan(read),
                                                       ranks, units, instructions, picked);
                CHECK(now > 0);
                if (now == 0) return;
                read += now;
                const auto n = static_cast<std::ptrdiff_t>(picked.n);
                found_ranks.insert(found_ranks.end(), picked_ranks.begin(),
                                   picked_ranks.begin() + n);
                found_units.insert(found_units.end(), picked_units.begin(),
                                   picked_units.begin() + n);
            }
            CHECK(std::equal(ranks.begin(), ranks.end(), found_ranks.begin(), found_ranks.end()));
            CHECK(found_units == units);
        }
    }
}

void guesses_are_near_the_share() {
    Random random(2);
    for (const std::uint32_t n : {1u, 3u, 10u, 100u}) {
        TailGuess guess(0.1);
        std::vector<std::uint16_t> ranks(n);
        for (int leaf = 0; leaf < 1000; ++leaf) {
            for (auto& rank : ranks) rank = static_cast<std::uint16_t>(below(random, 10000));
            std::sort(ranks.begin(), ranks.end());
            guess.add(ranks.data(), n);
        }
        const Tails tails = guess.tails();
        if (n >= 10) CHECK(tails.low > 1000 && tails.low < 2000);
        if (n >= 10) CHECK(tails.high < 9000 && tails.high > 8000);
        CHECK(tails.low_mass == 0 && tails.high_mass == 0);
    }
}

}  // namespace

int main() {
    picks_are_the_entries_of_the_tails<std::uint16_t>();
    picks_are_the_entries_of_the_tails<rank_t>();
    all_entries_are_picked_in_order<std::uint16_t>();
    all_entries_are_picked_in_order<rank_t>();
    guesses_are_near_the_share();
    return check::finish();
}
