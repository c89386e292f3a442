// index/leaf_table.hpp: the arrays of an index as they are stored, and where things stand in them
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/fixed_point.hpp"
#include "base/types.hpp"
#include "index/uniform_units.hpp"
#include "kernels/kernels.hpp"

namespace hdicore {

// Masses of all trees together stay below 2^62.
inline constexpr std::size_t max_trees = std::size_t{1} << (62 - wide_shift);
// Leaf ids are meant to be dense, as a table of the leaves of each tree is kept.
inline constexpr std::int64_t max_leaves_per_tree = std::int64_t{1} << 28;

// The flat arrays of an index, as stored and mapped: for each output a two-level CSR matrix of
// leaves by atoms. tree_begin finds the entries of a tree, leaf_begin those of a leaf in them;
// `ranks` are the column indices, `units` the values.
struct LeafIndexArrays {
    Array<offset_t>
        leaf_offsets;  // (n_trees + 1,) leaves of tree t: [leaf_offsets[t], leaf_offsets[t + 1])
    Array<offset_t> atom_offsets;  // (n_outputs + 1,) atoms of output o, into `atoms`
    Array<double> atoms;           // distinct targets of each output, ascending
    // (n_atoms,) 1 where the event came at an atom, 0 where rows are censored, which follow the
    // event of their time. Or empty: targets are not censored.
    Array<std::uint8_t> events;
    Array<offset_t> tree_begin;  // (n_outputs * n_trees + 1,) entries of output o, tree t
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
    Array<std::uint64_t> leaf_mask;
    // Units of all leaves are shares of one total, so that those of a leaf need not sum to
    // 2^shift; there are units.
    bool pooled = false;

    bool uniform() const noexcept { return units.index() == 0; }
    bool censored() const noexcept { return events.size() > 0; }
};

// Kept only on request, to leave a row out of its own leaves exactly.
struct RowWeights {
    Array<count_t> entries;  // (n_entries,) what the rows behind an entry weigh
    Array<rank_t> ranks;     // (n_rows, n_outputs) rank of each row's target
    Array<count_t> rows;     // (n_rows,) what each row weighs, counted once
    count_t pool;            // what all units are shares of, if pooled; else 0
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

// The units from number n on, if there are any.
template <class Unit>
const Unit* units_behind(const Unit* units, std::size_t n) noexcept {
    return units + n;
}
inline std::monostate units_behind(std::monostate, std::size_t) noexcept {
    return {};
}

// Looks things up in the arrays, which it does not check.
class LeafTable {
  public:
    explicit LeafTable(LeafIndexArrays arrays) : arrays_(std::move(arrays)) {}

    const LeafIndexArrays& arrays() const noexcept { return arrays_; }

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
    bool has_leaf_mask() const noexcept { return arrays_.leaf_mask.size() > 0; }
    // Whether queries may name this leaf.
    bool has_leaf(std::size_t tree, leaf_t leaf) const noexcept {
        if (leaf < 0 || static_cast<std::size_t>(leaf) >= n_leaves(tree)) return false;
        if (!has_leaf_mask()) return true;
        const auto bit =
            static_cast<std::size_t>(arrays_.leaf_offsets[tree]) + static_cast<std::size_t>(leaf);
        return (arrays_.leaf_mask[bit / 64] >> bit % 64 & 1) != 0;
    }
    std::size_t n_entries() const noexcept {
        return static_cast<std::size_t>(arrays_.tree_begin.view().back());
    }
    int shift() const noexcept { return arrays_.units.index() == 2 ? wide_shift : narrow_shift; }
    double entries_per_leaf() const noexcept {
        return static_cast<double>(n_entries()) / static_cast<double>(n_leaves() * n_outputs());
    }
    // Atoms of the output that has most.
    std::size_t max_atoms() const noexcept {
        std::size_t largest = 0;
        for (std::size_t o = 0; o < n_outputs(); ++o) largest = std::max(largest, atoms(o).size());
        return largest;
    }
    std::size_t nbytes() const noexcept {
        std::size_t n = arrays_.leaf_offsets.nbytes() + arrays_.atom_offsets.nbytes() +
                        arrays_.atoms.nbytes() + arrays_.events.nbytes() +
                        arrays_.tree_begin.nbytes() + arrays_.leaf_begin.nbytes() +
                        arrays_.leaf_mask.nbytes();
        const auto add = [&n](const auto& values) { n += values.nbytes(); };
        std::visit(add, arrays_.ranks);
        with_array(arrays_.units, add);
        with_array(arrays_.copies, add);
        return n;
    }
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
    // Calls use(ranks, units) with pointers to those of entry number `first` on; units may be
    // std::monostate.
    template <class Use>
    void with_entries(std::size_t first, const Use& use) const {
        std::visit(
            [&]<class Units>(const auto& ranks, const Units& units) {
                if constexpr (std::is_same_v<Units, std::monostate>) {
                    use(ranks.data() + first, units);
                } else {
                    use(ranks.data() + first, units.data() + first);
                }
            },
            arrays_.ranks, arrays_.units);
    }

    // Distinct targets of one output, ascending.
    std::span<const double> atoms(std::size_t output) const noexcept {
        const auto begin = static_cast<std::size_t>(arrays_.atom_offsets[output]);
        const auto end = static_cast<std::size_t>(arrays_.atom_offsets[output + 1]);
        return arrays_.atoms.view().subspan(begin, end - begin);
    }

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

  private:
    LeafIndexArrays arrays_;
    const UniformUnits* uniform_ = &hdicore::uniform_units();
};

}  // namespace hdicore
