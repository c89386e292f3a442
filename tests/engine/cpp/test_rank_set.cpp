// test_rank_set.cpp: what is taken is sorted, each once, and what stays is taken later
// SPDX-License-Identifier: BSD-3-Clause
#include <set>

#include "check.hpp"
#include "merge/rank_set.hpp"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

// Sparse and dense, in ranges that begin and end anywhere in a word.
void ranges_are_taken_in_order(const Kernels& kernels) {
    Random random(1);
    for (int round = 0; round < 400; ++round) {
        const std::size_t n_ranks = 1 + below(random, 3000);
        RankSet members(n_ranks);
        std::set<rank_t> expected;
        for (std::size_t k = below(random, round % 2 == 0 ? 50 : 2 * n_ranks); k > 0; --k) {
            const auto rank = static_cast<rank_t>(below(random, n_ranks));
            members.insert(rank);
            expected.insert(rank);
        }
        std::vector<rank_t> out(n_ranks + RankSet::slack);
        for (int part = 0; part < 5; ++part) {
            auto first = static_cast<rank_t>(below(random, n_ranks));
            auto last = static_cast<rank_t>(below(random, n_ranks));
            if (first > last) std::swap(first, last);
            if (part == 4) {
                first = 0;
                last = static_cast<rank_t>(n_ranks - 1);
            }
            const auto begin = expected.lower_bound(first);
            const auto end = expected.upper_bound(last);
            const std::vector<rank_t> in_range(begin, end);
            expected.erase(begin, end);
            const std::size_t n = members.take(first, last, kernels, out.data());
            CHECK(std::vector<rank_t>(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n)) ==
                  in_range);
        }
    }
}

}  // namespace

int main() {
    for (const Kernels* kernels : available_kernels()) ranges_are_taken_in_order(*kernels);
    return check::finish();
}
