// index/bucket_counts.hpp: how the entries of large leaves are spread over the buckets of atoms
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <variant>
#include <vector>

#include "base/types.hpp"
#include "pmf/bucket_masses.hpp"

namespace hdicore {

// Allocates from the beginning of a cache line: the 128 counts of a row then touch two lines, not
// three.
template <class T>
struct LineAllocator {
    using value_type = T;
    static constexpr std::align_val_t line{64};

    LineAllocator() = default;
    template <class U>
    explicit LineAllocator(const LineAllocator<U>&) noexcept {}
    T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), line)); }
    void deallocate(T* memory, std::size_t) noexcept { ::operator delete(memory, line); }
    bool operator==(const LineAllocator&) const = default;
};
template <class T>
using Lines = std::vector<T, LineAllocator<T>>;

// One row for each leaf; those of output o begin at row o * n_leaves.
struct BucketCounts {
    std::vector<BucketEdges> edges;  // (n_outputs,)
    // (n_rows, n_buckets) entries below each bucket; 8 bits each if no leaf has more than 255.
    std::variant<Lines<std::uint8_t>, Lines<std::uint16_t>> below;
    // The same for fine buckets, if leaves are large enough for it to pay; or empty.
    std::vector<BucketEdges> fine_edges;
    Lines<std::uint16_t> fine_below;  // (n_rows, n_fine_buckets)

    std::size_t nbytes() const noexcept {
        std::size_t n = fine_below.size() * sizeof(fine_below[0]);
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
