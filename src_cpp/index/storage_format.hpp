// index/storage_format.hpp: which arrays the entries of an index take, and of which width
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interruption.hpp"
#include "base/types.hpp"
#include "index/leaf_table.hpp"

namespace hdicore {

// What the leaves of all trees amount to.
struct LeafTotals {
    count_t n_counted = 0;    // rows, as often as they count, in all outputs
    count_t n_distinct = 0;   // pairs of a leaf and a target in it, in all outputs
    count_t max_counted = 0;  // rows of one leaf, as often as they count
    count_t max_weight = 0;   // of the rows of one leaf together

    // Whether a unit in each tree could amount to a row.
    bool need_wide_units(std::size_t n_trees) const noexcept {
        return max_counted >= ((count_t{1} << 26) + n_trees - 1) / n_trees;
    }
};

struct StorageFormat {
    count_t pool = 0;          // what units are shares of; 0: of the total of each leaf
    bool short_ranks = false;  // every output has at most 2^16 atoms
    bool uniform = false;      // rows of a leaf weigh alike, so that there are no units
    bool wide_units = false;
    bool has_ties = false;  // rows of a leaf share a target
    bool short_copies = false;
    bool keeps_weights = false;  // those of the rows behind each entry, to leave a row out

    bool has_copies() const noexcept { return has_ties && !uniform; }
    int shift() const noexcept { return wide_units ? wide_shift : narrow_shift; }
};

// The entries of one tree and output. Of columns that are not stored the spans may be empty.
struct EntryColumns {
    std::span<const rank_t> ranks;     // (n_entries,)
    std::span<const mass_t> units;     // (n_entries,)
    std::span<const count_t> copies;   // (n_entries,) rows behind each entry
    std::span<const count_t> weights;  // (n_entries,) what these weigh together
};

// The arrays with an element for each entry, while they are filled. Of each pair the one that the
// format says has elements, or none.
struct EntryArrays {
    std::vector<std::uint16_t> short_ranks;
    std::vector<rank_t> ranks;
    std::vector<std::uint32_t> narrow_units;
    std::vector<std::uint64_t> wide_units;
    std::vector<std::uint8_t> short_copies;
    std::vector<std::uint32_t> copies;
    std::vector<count_t> weights;

    // Makes room for n entries.
    void allocate(std::size_t n, const StorageFormat& format, Interruption& interruption);
    // Copies the entries of a tree to the arrays that there are, from number `at` on.
    void store(const EntryColumns& entries, offset_t at);
    // Moves all but the weights to the arrays of an index.
    void move_to(LeafIndexArrays& arrays, const StorageFormat& format, Interruption& interruption);
};

}  // namespace hdicore
