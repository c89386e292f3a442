// index/derived_tables.hpp: what follows from the arrays of an index and makes queries fast
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "base/interruption.hpp"
#include "index/leaf_checks.hpp"
#include "index/leaf_table.hpp"
#include "pmf/bucket_masses.hpp"

namespace hdicore {

// Average entries of a leaf from which bucket counts are kept.
inline constexpr double min_entries_for_bucket_counts = 32;
// The same for those of fine buckets. From half of that on they save time, but at twice the memory.
inline constexpr double min_entries_for_fine_counts = 1024;

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

struct DerivedTables {
    // Entries of the largest leaf; of the largest tree, if leaves were not checked.
    std::size_t max_leaf_size = 0;
    // Whether rows of a leaf share a target, or may, if leaves were not checked.
    bool has_ties = false;
    // Whether the leaves of all outputs begin alike, counted from the first entry of the output,
    // and have units that follow from their size. False if leaves were not checked.
    bool outputs_begin_alike = false;
    // There if rows have equal weights and leaves are large enough for it to pay.
    std::optional<BucketCounts> bucket_counts;

    std::size_t nbytes() const noexcept { return bucket_counts ? bucket_counts->nbytes() : 0; }
};

// Of leaves that were checked, or are known to be proper. O(n_entries) over n_threads threads.
DerivedTables derive_tables(const LeafTable& table, const LeafSizes& sizes, unsigned n_threads,
                            Interruption& interruption);

// Of leaves that were not checked: the bounds that sizes and offsets give. O(n_outputs * n_trees).
DerivedTables bound_tables(const LeafTable& table) noexcept;

// Entries of the largest leaf, of leaves that are known to be proper.
std::size_t max_leaf_size(const LeafTable& table) noexcept;

}  // namespace hdicore
