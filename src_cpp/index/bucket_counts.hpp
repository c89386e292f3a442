// index/bucket_counts.hpp: how the entries of large leaves are spread over the buckets of atoms
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "base/types.hpp"
#include "pmf/bucket_masses.hpp"

namespace hdicore {

// One row for each leaf; those of output o begin at row o * n_leaves.
struct BucketCounts {
    std::vector<BucketEdges> edges;  // (n_outputs,)
    // (n_rows, n_buckets) entries below each bucket; 8 bits each if no leaf has more than 255.
    std::variant<std::vector<std::uint8_t>, std::vector<std::uint16_t>> below;
    // The same for fine buckets, if leaves are large enough for it to pay; or empty.
    std::vector<BucketEdges> fine_edges;
    std::vector<std::uint16_t> fine_below;  // (n_rows, n_fine_buckets)
    struct Ends {
        rank_t first;
        rank_t last;
    };
    std::vector<Ends> ends;  // (n_rows,) outermost ranks

    std::size_t nbytes() const noexcept {
        std::size_t n = ends.size() * sizeof(Ends) + fine_below.size() * sizeof(fine_below[0]);
        for (const BucketEdges& of_output : edges) n += of_output.nbytes();
        for (const BucketEdges& of_output : fine_edges) n += of_output.nbytes();
        return n + std::visit([](const auto& counts) { return counts.size() * sizeof(counts[0]); },
                              below);
    }
};

// Writes how many of the ranks of a leaf, ascending, lie below each bucket, (edges.size(),).
template <class Rank, class Count>
void count_below(const BucketEdges& edges, std::span<const Rank> ranks, Count* below) noexcept {
    std::size_t b = 0;
    for (std::size_t e = 0; e < ranks.size(); ++e) {
        while (edges.begin[b] <= ranks[e]) below[b++] = static_cast<Count>(e);
    }
    std::fill(below + b, below + edges.size(), static_cast<Count>(ranks.size()));
}

}  // namespace hdicore
