// index/leaf_index.hpp: leaves -> weighted ranks of y; which training targets lie in each leaf
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/interruption.hpp"
#include "base/shares.hpp"
#include "base/types.hpp"
#include "pmf/buckets.hpp"

namespace hdicore {

// Masses of all trees together stay below 2^62.
inline constexpr std::size_t most_trees = std::size_t{1} << (62 - wide_shift);
// Leaf ids are meant to be dense, as a table of the leaves of each tree is kept.
inline constexpr std::int64_t most_leaves = std::int64_t{1} << 28;

// What an index is built from.
struct TrainingRows {
    std::size_t n_rows;
    std::size_t n_trees;
    std::size_t n_outputs;
    const leaf_t* leaves;                    // (n_rows, n_trees) leaf of each row in each tree
    const double* y;                         // (n_rows, n_outputs) finite
    const std::int32_t* counts;              // (n_rows, n_trees) times a row counts, or null: once
    const double* sample_weight;             // (n_rows,) weight of each row, or null: 1
    std::span<const std::int64_t> n_leaves;  // (n_trees,), or empty: largest leaf seen + 1
    bool only_seen = false;  // leaves in which no row lies, whether it counts or not, do not exist
    bool pooled = false;     // rows weigh alike in all leaves: a leaf counts by its total
    // Rows to keep in a leaf, chosen by a hash of seed, tree and row; 0: all.
    std::size_t max_samples_leaf = 0;
    std::uint64_t seed = 0;
};

// The flat arrays of an index, as stored and mapped.
struct LeafIndexArrays {
    Array<offset_t>
        leaf_offsets;  // (n_trees + 1,) leaves of tree t: [leaf_offsets[t], leaf_offsets[t + 1])
    Array<offset_t> atom_offsets;  // (n_outputs + 1,) atoms of output o, into `atoms`
    Array<double> atoms;           // distinct targets of each output, ascending
    Array<offset_t> tree_begin;    // (n_outputs * n_trees + 1,) entries of output o, tree t
    // (n_outputs * (n_leaves + n_trees),) entries of leaf l of tree t, counted from tree_begin of
    // (o, t), are [leaf_begin[s + l], leaf_begin[s + l + 1]) with
    // s = o * (n_leaves + n_trees) + leaf_offsets[t] + t.
    Array<std::uint32_t> leaf_begin;
    // (n_entries,) ascending within a leaf; 16 bits each if every output has at most 2^16 atoms
    std::variant<Array<std::uint16_t>, Array<rank_t>> ranks;
    // (n_entries,) of shift 31 or 40. Or none: the entries of a leaf weigh alike, and a target
    // stands as often as it counts.
    std::variant<std::monostate, Array<std::uint32_t>, Array<std::uint64_t>> units;
    // (n_entries,) rows behind each entry, as often as they count. Or none: one behind each.
    std::variant<std::monostate, Array<std::uint8_t>, Array<std::uint32_t>> copies;
    // (n_leaves / 64, rounded up) bit leaf_offsets[t] + l tells whether leaf l of tree t exists. Or
    // empty: all do.
    Array<std::uint64_t> seen;
    // Units of all leaves are shares of one total, so that those of a leaf need not sum to
    // 2^shift; there are units.
    bool pooled = false;
};

// Entries that a leaf may have if their units are to follow from their number.
inline constexpr std::size_t most_alike = 1024;

// Entries of a leaf, in the mean, from which bucket counts are kept.
inline constexpr double least_for_buckets = 32;

// Kept only on request, to leave a row out of its own leaves exactly.
struct RowWeights {
    Array<count_t> entries;  // (n_entries,) what the rows behind an entry weigh
    Array<rank_t> ranks;     // (n_rows, n_outputs) rank of each row's target
    Array<count_t> rows;     // (n_rows,) what each row weighs, counted once
    count_t pool;            // what all units are shares of, if pooled; else 0
};

// Immutable after construction: safe to share between threads.
class LeafIndex {
  public:
    // O(n_outputs * n_rows * (log n_rows + n_trees)) over n_threads threads. Rows that count or
    // weigh nothing leave no entry. Throws std::invalid_argument at input that is out of range.
    LeafIndex(const TrainingRows& rows, bool keep_row_weights, unsigned n_threads,
              Interruption& interruption = Interruption::never());

    // The arrays are not copied; everything is checked, and tables are made: the units of each size
    // that a leaf has, if units follow from it, and the bucket counts. Throws
    // std::invalid_argument.
    explicit LeafIndex(LeafIndexArrays arrays, Interruption& interruption = Interruption::never());

    std::size_t n_trees() const noexcept { return arrays_.leaf_offsets.size() - 1; }
    std::size_t n_outputs() const noexcept { return arrays_.atom_offsets.size() - 1; }
    std::size_t n_leaves() const noexcept {
        return static_cast<std::size_t>(arrays_.leaf_offsets.view().back());
    }
    std::size_t n_leaves(std::size_t tree) const noexcept {
        return static_cast<std::size_t>(arrays_.leaf_offsets[tree + 1] -
                                        arrays_.leaf_offsets[tree]);
    }
    // Whether leaves in which no training row lies do not exist.
    bool only_seen() const noexcept { return arrays_.seen.size() > 0; }
    // Whether a number is a leaf of a tree.
    bool exists(std::size_t tree, leaf_t leaf) const noexcept {
        if (leaf < 0 || static_cast<std::size_t>(leaf) >= n_leaves(tree)) return false;
        if (!only_seen()) return true;
        const auto bit =
            static_cast<std::size_t>(arrays_.leaf_offsets[tree]) + static_cast<std::size_t>(leaf);
        return (arrays_.seen[bit / 64] >> bit % 64 & 1) != 0;
    }
    std::size_t n_entries() const noexcept {
        return static_cast<std::size_t>(arrays_.tree_begin.view().back());
    }
    int shift() const noexcept { return arrays_.units.index() == 2 ? wide_shift : narrow_shift; }
    double entries_per_leaf() const noexcept {
        return static_cast<double>(n_entries()) / static_cast<double>(n_leaves() * n_outputs());
    }
    // Entries of the largest leaf.
    std::size_t largest_leaf() const noexcept { return largest_leaf_; }
    rank_t rank(std::size_t entry) const noexcept {
        return std::visit([&](const auto& ranks) { return rank_t{ranks[entry]}; }, arrays_.ranks);
    }
    // Rows behind an entry, as often as they count.
    std::size_t copies(std::size_t entry) const noexcept {
        return std::visit(
            [&]<class Copies>(const Copies& copies) -> std::size_t {
                if constexpr (std::is_same_v<Copies, std::monostate>)
                    return 1;
                else
                    return copies[entry];
            },
            arrays_.copies);
    }
    // Whether rows of a leaf share a target.
    bool has_ties() const noexcept { return has_ties_; }
    std::size_t nbytes() const noexcept;

    // Distinct targets of one output, ascending.
    std::span<const double> atoms(std::size_t output) const noexcept;

    // Half-open range of entries of one leaf.
    struct Range {
        std::size_t begin;
        std::size_t end;
    };
    Range entries(std::size_t output, std::size_t tree, leaf_t leaf) const noexcept {
        const std::uint32_t* begin = leaf_begin(output, tree) + leaf;
        const std::size_t base = tree_begin(output, tree);
        return {base + begin[0], base + begin[1]};
    }

    // Units of entries that weigh alike: those of n that fill a leaf of this index are n numbers of
    // alike_units from alike_begin(n) on.
    std::span<const std::uint32_t> alike_units() const noexcept { return alike_units_; }
    std::size_t alike_begin(std::size_t n) const noexcept { return alike_begin_[n]; }
    // Where the leaves of one tree begin, (n_leaves(tree) + 1,), counted from tree_begin.
    const std::uint32_t* leaf_begin(std::size_t output, std::size_t tree) const noexcept {
        return arrays_.leaf_begin.data() + output * (n_leaves() + n_trees()) +
               static_cast<std::size_t>(arrays_.leaf_offsets[tree]) + tree;
    }
    std::size_t tree_begin(std::size_t output, std::size_t tree) const noexcept {
        return static_cast<std::size_t>(arrays_.tree_begin[output * n_trees() + tree]);
    }

    // Kept if entries weigh alike and leaves are large enough for it to pay.
    const std::optional<BucketCounts>& bucket_counts() const noexcept { return bucket_counts_; }

    const LeafIndexArrays& arrays() const noexcept { return arrays_; }
    const std::optional<RowWeights>& row_weights() const noexcept { return row_weights_; }

  private:
    static void check_number_of_trees(std::size_t n_trees);
    void validate(Interruption& interruption);
    // Tabulates what follows from the sizes of the leaves.
    void note_leaf_sizes(Interruption& interruption);
    // Fills bucket_counts_, if they pay.
    void count_buckets(unsigned n_threads, Interruption& interruption);

    LeafIndexArrays arrays_;
    std::size_t largest_leaf_ = 0;
    bool has_ties_ = false;
    std::vector<std::uint32_t> alike_units_;  // of each number of entries that a leaf has
    std::vector<std::uint32_t> alike_begin_;  // (largest_leaf + 1,) if there are no units
    std::optional<BucketCounts> bucket_counts_;
    std::optional<RowWeights> row_weights_;
};

}  // namespace hdicore
