// test_kernels.cpp: each instruction set against a loop, and the choice of one
// SPDX-License-Identifier: BSD-3-Clause
#include <string_view>
#include <utility>

#include "check.hpp"
#include "kernels/kernels.hpp"
#include "merge/rank_set.hpp"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

using Entries = std::vector<std::pair<rank_t, std::uint32_t>>;

template <class Rank>
void copies_are_the_entries_of_the_tails() {
    Random random(1);
    for (int round = 0; round < 150; ++round) {
        const std::size_t most = below(random, 2) == 0 ? 20 : 200;
        std::vector<Rank> ranks;
        std::vector<std::uint32_t> units;
        std::vector<EntrySlice> leaves;
        for (std::size_t l = 1 + below(random, 60); l > 0; --l) {
            const auto n = static_cast<std::uint32_t>(1 + below(random, most));
            leaves.push_back({ranks.size(), units.size(), n, 0});
            for (std::uint32_t e = 0; e < n; ++e) {
                ranks.push_back(static_cast<Rank>(below(random, 1000)));
                units.push_back(static_cast<std::uint32_t>(random()) / 2 / n);
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
        for (const Kernels* kernels : available_kernels()) {
            Tails tails{low, high};
            Entries found;
            std::vector<rank_t> buffer_ranks(EntryBuffer::enough + 2 * most + EntryBuffer::slack);
            std::vector<std::uint32_t> buffer_units(buffer_ranks.size());
            for (std::size_t read = 0; read < leaves.size();) {
                EntryBuffer buffer{buffer_ranks.data(), buffer_units.data()};
                const std::size_t now = kernels->entries<Rank>().copy_tails(
                    std::span<const EntrySlice>(leaves).subspan(read), ranks, units, tails, buffer);
                CHECK(now > 0);
                if (now == 0) return;
                read += now;
                for (std::size_t k = 0; k < buffer.n; ++k) {
                    found.emplace_back(buffer_ranks[k], buffer_units[k]);
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
void all_entries_are_copied_in_order() {
    Random random(3);
    for (int round = 0; round < 150; ++round) {
        const std::size_t most = round % 10 == 0 ? 3000 : 40;
        std::vector<Rank> ranks;
        std::vector<std::uint32_t> units;
        std::vector<EntrySlice> leaves;
        for (std::size_t l = 1 + below(random, 60); l > 0; --l) {
            const auto n = static_cast<std::uint32_t>(below(random, 3) * below(random, most));
            leaves.push_back({ranks.size(), units.size(), n, 0});
            for (std::uint32_t e = 0; e < n; ++e) {
                ranks.push_back(static_cast<Rank>(random()));
                units.push_back(static_cast<std::uint32_t>(random()));
            }
        }
        for (const Kernels* kernels : available_kernels()) {
            std::vector<rank_t> found_ranks;
            std::vector<std::uint32_t> found_units;
            std::vector<rank_t> buffer_ranks(EntryBuffer::enough + 2 * most + EntryBuffer::slack);
            std::vector<std::uint32_t> buffer_units(buffer_ranks.size());
            for (std::size_t read = 0; read < leaves.size();) {
                EntryBuffer buffer{buffer_ranks.data(), buffer_units.data()};
                const std::size_t now = kernels->entries<Rank>().copy(
                    std::span<const EntrySlice>(leaves).subspan(read), ranks, units, buffer);
                CHECK(now > 0);
                if (now == 0) return;
                read += now;
                const auto n = static_cast<std::ptrdiff_t>(buffer.n);
                found_ranks.insert(found_ranks.end(), buffer_ranks.begin(),
                                   buffer_ranks.begin() + n);
                found_units.insert(found_units.end(), buffer_units.begin(),
                                   buffer_units.begin() + n);
            }
            CHECK(std::equal(ranks.begin(), ranks.end(), found_ranks.begin(), found_ranks.end()));
            CHECK(found_units == units);
        }
    }
}

void masses_are_listed_in_order() {
    Random random(5);
    for (int round = 0; round < 150; ++round) {
        std::vector<mass_t> masses(1 + below(random, 300));
        for (mass_t& mass : masses) {
            if (below(random, 3) > 0) mass = mass_t{1} << below(random, 62);
        }
        const auto first = static_cast<rank_t>(below(random, masses.size()));
        const auto last = static_cast<rank_t>(first + below(random, masses.size() - first));
        std::vector<rank_t> expected;
        for (rank_t rank = first; rank <= last; ++rank) {
            if (masses[rank] != 0) expected.push_back(rank);
        }
        for (const Kernels* kernels : available_kernels()) {
            std::vector<rank_t> found(masses.size() + RankSet::slack);
            found.resize(kernels->list_masses(masses.data(), first, last, found.data()));
            CHECK(found == expected);
        }
    }
}

void a_set_is_found_by_its_name_or_all_are_listed() {
    for (const Kernels* kernels : available_kernels()) {
        CHECK(&kernels_named(kernels->name) == kernels);
    }
    CHECK_REFUSED(kernels_named("sse9"), "HDICORE_INSTRUCTIONS must be portable");
    CHECK_REFUSED(kernels_named("sse9"), available_kernels().back()->name);
    CHECK_REFUSED(kernels_named("Portable"), "on this processor, got 'Portable'");
}

void each_set_is_listed_once_and_portable_first() {
    const auto all = available_kernels();
    CHECK(all.front() == &portable_kernels);
    for (const Kernels* one : all) {
        std::printf("%s\n", one->name);
        for (const Kernels* other : all) {
            CHECK((one == other) == (std::string_view(one->name) == other->name));
        }
    }
}

}  // namespace

int main() {
    copies_are_the_entries_of_the_tails<std::uint16_t>();
    copies_are_the_entries_of_the_tails<rank_t>();
    all_entries_are_copied_in_order<std::uint16_t>();
    all_entries_are_copied_in_order<rank_t>();
    masses_are_listed_in_order();
    a_set_is_found_by_its_name_or_all_are_listed();
    each_set_is_listed_once_and_portable_first();
    return check::finish();
}
