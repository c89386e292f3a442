// index/leaf_index.hpp: leaves -> weighted ranks of y; which training targets lie in each leaf
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/fixed_point.hpp"
#include "base/interruption.hpp"
#include "base/spare.hpp"
#include "base/types.hpp"
#include "index/bucket_counts.hpp"
#include "index/training_rows.hpp"
#include "index/uniform_units.hpp"
#include "kernels/kernels.hpp"

namespace hdicore {

// Masses of all trees together stay below 2^62.
inline constexpr std::size_t max_trees = std::size_t{1} << (62 - wide_shift);
// Leaf ids are meant to be dense, as a table of the leaves of each tree is kept.
inline constexpr std::int64_t max_leaves_per_tree = std::int64_t{1} << 28;
// Average entries of a leaf from which bucket counts are kept.
inline constexpr double min_entries_for_bucket_counts = 32;
// The same for those of fine buckets. From half of that on they save time, but at twice the memory.
inline constexpr double min_entries_for_fine_counts = 1024;

// The flat arrays of an index, as stored and mapped: for each output a two-level CSR matrix of
// leaves by atoms. tree_begin finds the entries of a tree, leaf_begin those of a leaf in them;
// `ranks` are the column indices, `units` the values.
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
    // (n_entries,) of shift 31 or 40. Or none: the rows of a leaf have equal weights, and each is
    // an entry as often as it counts.
    std::variant<std::monostate, Array<std::uint32_t>, Array<std::uint64_t>> units;
    // (n_entries,) rows behind each entry, as often as they count. Or none: one behind each.
    std::variant<std::monostate, Array<std::uint8_t>, Array<std::uint32_t>> copies;
    // (n_leaves / 64, rounded up) bit leaf_offsets[t] + l tells whether a row lies in leaf l of
    // tree t, so that queries may name it. Or empty: they may name all.
    Array<std::uint64_t> known_leaves;
    // Units of all leaves are shares of one total, so that those of a leaf need not sum to
    // 2^shift; there are units.
    bool pooled = false;

    bool uniform() const noexcept { return units.index() == 0; }
};

// Calls use(values) with an array, if there is one.
template <class Arrays, class Use>
void with_array(const Arrays& arrays, const Use& use) {
    std::visit(
        [&]<class Values>(const Values& values) {
            if constexpr (!std::is_same_v<Values, std::monostate>) use(values);
        },
        arrays);
}

// Kept only on request, to leave a row out of its own leaves exactly.
struct RowWeights {
    Array<count_t> entries;  // (n_entries,) what the rows behind an entry weigh
    Array<rank_t> ranks;     // (n_rows, n_outputs) rank of each row's target
    Array<count_t> rows;     // (n_rows,) what each row weighs, counted once
    count_t pool;            // what all units are shares of, if pooled; else 0
};

class LeafIndexBuilder;

// Immutable after construction: safe to share between threads.
class LeafIndex {
  public:
    // O(n_outputs * n_rows * (log n_rows + n_trees)) over n_threads threads. Rows that count or
    // weigh nothing leave no entry. Throws std::invalid_argument at input that is out of range.
    LeafIndex(const TrainingRows& rows, bool keep_row_weights, unsigned n_threads,
              Interruption& interruption = Interruption::never());

    // From a builder that wants no more trees.
    explicit LeafIndex(LeafIndexBuilder builder);

    // The arrays are not copied; everything is checked, and the bucket counts are made. Throws
    // std::invalid_argument.
    explicit LeafIndex(LeafIndexArrays arrays, Interruption& interruption = Interruption::never(),
                       unsigned n_threads = 1);

    // The same, but what is checked are sizes, offsets and atoms: O(n_outputs * n_trees + n_atoms).
    // Each query checks the leaves that it reads. There are no bucket counts, which alter no
    // result. Errors begin with `source`, which says where the arrays come from.
    LeafIndex(LeafIndexArrays arrays, std::string source);

    bool is_checked() const noexcept { return is_checked_; }
    // The same index, checked whole.
    LeafIndex checked(unsigned n_threads, Interruption& interruption) const;
    // Throws std::invalid_argument unless the entries of a leaf are those of an index.
    void check_leaf(std::size_t output, std::size_t tree, leaf_t leaf) const;

    std::size_t n_trees() const noexcept { return arrays_.leaf_offsets.size() - 1; }
    std::size_t n_outputs() const noexcept { return arrays_.atom_offsets.size() - 1; }
    std::size_t n_leaves() const noexcept {
        return static_cast<std::size_t>(arrays_.leaf_offsets.view().back());
    }
    std::size_t n_leaves(std::size_t tree) const noexcept {
        return static_cast<std::size_t>(arrays_.leaf_offsets[tree + 1] -
                                        arrays_.leaf_offsets[tree]);
    }
    // Whether queries may only name leaves in which a training row lies.
    bool only_known_leaves() const noexcept { return arrays_.known_leaves.size() > 0; }
    // Whether queries may name this leaf.
    bool has_leaf(std::size_t tree, leaf_t leaf) const noexcept {
        if (leaf < 0 || static_cast<std::size_t>(leaf) >= n_leaves(tree)) return false;
        if (!only_known_leaves()) return true;
        const auto bit =
            static_cast<std::size_t>(arrays_.leaf_offsets[tree]) + static_cast<std::size_t>(leaf);
        return (arrays_.known_leaves[bit / 64] >> bit % 64 & 1) != 0;
    }
    std::size_t n_entries() const noexcept {
        return static_cast<std::size_t>(arrays_.tree_begin.view().back());
    }
    int shift() const noexcept { return arrays_.units.index() == 2 ? wide_shift : narrow_shift; }
    double entries_per_leaf() const noexcept {
        return static_cast<double>(n_entries()) / static_cast<double>(n_leaves() * n_outputs());
    }
    // Entries of the largest leaf; of the largest tree, if it is not checked.
    std::size_t max_leaf_size() const noexcept { return max_leaf_size_; }
    // Atoms of the output that has most.
    std::size_t max_atoms() const noexcept;
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
    // Whether the leaves of all outputs begin alike, counted from the first entry of the output,
    // and have units that follow from their size. False if it is not checked.
    bool outputs_begin_alike() const noexcept { return outputs_begin_alike_; }
    // Whether rows of a leaf share a target, or may, if it is not checked.
    bool has_ties() const noexcept { return has_ties_; }
    std::size_t nbytes() const noexcept;

    // Distinct targets of one output, ascending.
    std::span<const double> atoms(std::size_t output) const noexcept;

    // Units of leaves of equally weighted rows: see UniformUnits. The second is null if units are
    // stored.
    std::span<const std::uint32_t> uniform_units() const noexcept { return uniform_->units; }
    const UniformUnits* uniform() const noexcept { return arrays_.uniform() ? uniform_ : nullptr; }

    // Leaf offsets of one tree, (n_leaves(tree) + 1,), counted from tree_begin.
    const std::uint32_t* leaf_begin(std::size_t output, std::size_t tree) const noexcept {
        return arrays_.leaf_begin.data() + output * (n_leaves() + n_trees()) +
               static_cast<std::size_t>(arrays_.leaf_offsets[tree]) + tree;
    }
    std::size_t tree_begin(std::size_t output, std::size_t tree) const noexcept {
        return static_cast<std::size_t>(arrays_.tree_begin[output * n_trees() + tree]);
    }
    // Row of the bucket counts for the first leaf of a tree, if there are any: then it fits 32
    // bits.
    std::uint32_t first_count_row(std::size_t output, std::size_t tree) const noexcept {
        return static_cast<std::uint32_t>(output * n_leaves() +
                                          static_cast<std::size_t>(arrays_.leaf_offsets[tree]));
    }

    // The entries of one leaf, which may be none.
    EntrySlice entries(std::size_t output, std::size_t tree, leaf_t leaf) const noexcept {
        const std::uint32_t* begin = leaf_begin(output, tree) + leaf;
        const std::size_t first = tree_begin(output, tree) + begin[0];
        const std::uint32_t n = begin[1] - begin[0];
        return {first, arrays_.uniform() ? uniform_->begin(n) : first, n,
                first_count_row(output, tree) + static_cast<std::uint32_t>(leaf)};
    }

    // Kept if rows have equal weights and leaves are large enough for it to pay.
    const std::optional<BucketCounts>& bucket_counts() const noexcept { return bucket_counts_; }

    const LeafIndexArrays& arrays() const noexcept { return arrays_; }
    const std::optional<RowWeights>& row_weights() const noexcept { return row_weights_; }
    // Memory for merging, which has the size of the index.
    Spare& spare() const noexcept { return *spare_; }

    static void check_number_of_trees(std::size_t n_trees);

  private:
    void check_sizes() const;
    // Checks the leaves of all trees, and finds has_ties_ and max_leaf_size_.
    void check_leaves(unsigned n_threads, Interruption& interruption);
    [[noreturn]] void refuse(const std::string& why) const;
    // Finds max_leaf_size_ of leaves that are known to be proper.
    void measure_leaves() noexcept;
    // Finds outputs_begin_alike_.
    void compare_outputs() noexcept;
    // Fills bucket_counts_, if they pay.
    void count_buckets(unsigned n_threads, Interruption& interruption);

    LeafIndexArrays arrays_;
    std::size_t max_leaf_size_ = 0;
    bool has_ties_ = false;
    bool is_checked_ = true;
    std::string source_;  // of what is not checked
    std::shared_ptr<Spare> spare_ = std::make_shared<Spare>();
    const UniformUnits* uniform_ = &hdicore::uniform_units();
    bool outputs_begin_alike_ = false;
    std::optional<BucketCounts> bucket_counts_;
    std::optional<RowWeights> row_weights_;
};

}  // namespace hdicore
