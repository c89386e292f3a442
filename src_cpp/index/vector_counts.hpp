// index/vector_counts.hpp: the atoms of several outputs in large leaves, and their bucket counts
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "base/interruption.hpp"
#include "base/types.hpp"
#include "index/bucket_counts.hpp"
#include "index/leaf_table.hpp"

namespace hdicore {

// For an index of several outputs in whose leaves rows weigh alike: what leaves hold in each output
// by itself, as an index of one output has it.
struct VectorCounts {
    std::vector<BucketEdges> edges;  // (n_outputs,)
    // (n_outputs, n_entries) ranks of atoms, ascending within a leaf; as wide as those of vectors.
    std::variant<std::vector<std::uint16_t>, std::vector<rank_t>> ranks;
    // (n_leaves, n_outputs, n_buckets) entries below each bucket; 8 bits each if no leaf has more
    // than 255.
    std::variant<Lines<std::uint8_t>, Lines<std::uint16_t>> below;

    std::size_t nbytes() const noexcept;
};

// Whether leaves are so large that it pays.
bool do_vector_counts_pay(const LeafTable& table) noexcept;

// Of leaves that are known to be proper. O(n_outputs * n_entries * log(entries of a leaf)) over
// n_threads threads.
VectorCounts count_vectors(const LeafTable& table, std::size_t max_leaf_size, unsigned n_threads,
                           Interruption& interruption);

}  // namespace hdicore
