// index/derived_tables.hpp: what follows from the arrays of an index and makes queries fast
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>

#include "base/interruption.hpp"
#include "index/bucket_counts.hpp"
#include "index/leaf_checks.hpp"
#include "index/leaf_table.hpp"

namespace hdicore {

// Average entries of a leaf from which bucket counts are kept.
inline constexpr double min_entries_for_bucket_counts = 32;
// The same for those of fine buckets. From half of that on they save time, but at twice the memory.
inline constexpr double min_entries_for_fine_counts = 1024;

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
