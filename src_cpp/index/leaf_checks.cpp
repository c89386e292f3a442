// index/leaf_checks.cpp: sizes and offsets first, then the entries of each leaf
// SPDX-License-Identifier: BSD-3-Clause
#include "index/leaf_checks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "base/refusal.hpp"

namespace hdicore {
namespace {

constexpr const char* no_copies = "copies is damaged: there must be a row behind each entry";

// Ranks of a leaf must be those of atoms and ascend, strictly if each entry has units of its own.
template <class Rank>
bool proper_ranks(const Array<Rank>& ranks, std::size_t begin, std::size_t end, std::size_t n_atoms,
                  bool strict, bool& has_ties) {
    for (std::size_t e = begin; e < end; ++e) {
        if (ranks[e] >= n_atoms) return false;
        if (e == begin || ranks[e] > ranks[e - 1]) continue;
        if (strict || ranks[e] < ranks[e - 1]) return false;
        has_ties = true;
    }
    return true;
}

// Units of a leaf must sum to `whole`, or to no more of it if they are shares of a pool.
template <class Unit>
bool proper_units(const Array<Unit>& units, std::size_t begin, std::size_t end, mass_t whole,
                  bool pooled) {
    mass_t left = whole;
    for (std::size_t e = begin; e < end; ++e) {
        if (units[e] == 0 || units[e] > static_cast<std::uint64_t>(left)) return false;
        left -= static_cast<mass_t>(units[e]);
    }
    return end == begin || left == 0 || pooled;
}

// Whether entries [begin, end) of an output may be those of a leaf. Sets has_ties if it has a rank
// twice.
template <class Rank, class Units>
bool proper_entries(const LeafTable& table, const Array<Rank>& ranks, const Units& units,
                    std::size_t output, std::size_t begin, std::size_t end, bool& has_ties) {
    constexpr bool uniform = std::is_same_v<Units, std::monostate>;
    if (!proper_ranks(ranks, begin, end, table.atoms(output).size(), !uniform, has_ties)) {
        return false;
    }
    if constexpr (uniform) {
        return end - begin <= max_uniform_leaf;
    } else {
        const mass_t whole = mass_t{1} << table.shift();
        return proper_units(units, begin, end, whole, table.arrays().pooled);
    }
}

// Whether there is a row behind each of the entries. Sets has_ties if there are two behind one.
bool proper_copies(const LeafTable& table, std::size_t begin, std::size_t end, bool& has_ties) {
    bool proper = true;
    with_array(table.arrays().copies, [&](const auto& copies) {
        for (std::size_t e = begin; e < end; ++e) {
            proper = proper && copies[e] > 0;
            has_ties = has_ties || copies[e] > 1;
        }
    });
    return proper;
}

std::string damaged_leaf(std::size_t tree, std::size_t leaf) {
    return "leaf " + std::to_string(leaf) + " of tree " + std::to_string(tree) +
           " is damaged: its ranks or units are out of range";
}

std::string damaged_tree(std::size_t tree) {
    return "leaf_begin of tree " + std::to_string(tree) + " is damaged";
}

// Offsets from 0 to `last` that never fall (or, if strict, always rise).
void check_offsets(std::span<const offset_t> offsets, std::size_t last, bool strict,
                   const char* name) {
    bool proper =
        !offsets.empty() && offsets.front() == 0 && offsets.back() == static_cast<offset_t>(last);
    for (std::size_t i = 1; i < offsets.size(); ++i) {
        proper = proper && (strict ? offsets[i] > offsets[i - 1] : offsets[i] >= offsets[i - 1]);
    }
    if (!proper) {
        refuse(std::string(name) + " is damaged: it must rise from 0 to " + std::to_string(last));
    }
}

// Of a censored index: events first, then the censored rows of their time.
void check_events(const LeafIndexArrays& arrays, std::size_t n_outputs) {
    const auto [atoms, events] = std::pair(arrays.atoms.view(), arrays.events.view());
    bool proper = events.size() == atoms.size() && n_outputs == 1 && !arrays.pooled &&
                  std::ranges::find(events, 1) != events.end();
    for (const std::uint8_t event : events) proper &= event <= 1;
    if (!proper) refuse("events is damaged: it must be 0 or 1 for each atom of the one output");
}

void check_atoms(std::span<const double> atoms, std::span<const std::uint8_t> events) {
    if (atoms.size() > std::numeric_limits<rank_t>::max()) {
        refuse("atoms is damaged: an output must have fewer than 2**32");
    }
    // Whoever lies between finite ones is finite.
    bool proper = std::isfinite(atoms.front()) && std::isfinite(atoms.back());
    for (std::size_t k = 1; k < atoms.size(); ++k) {
        const bool is_pair = !events.empty() && events[k - 1] > events[k];
        proper &= atoms[k] > atoms[k - 1] || (is_pair && atoms[k] == atoms[k - 1]);
    }
    if (!proper) refuse("atoms is damaged: targets must be finite and ascending");
}

// Checks the leaves of one output in one tree, and measures them.
template <class Rank, class Units>
LeafSizes check_tree(const LeafTable& table, const Array<Rank>& ranks, const Units& units,
                     std::size_t output, std::size_t tree, Interruption& interruption) {
    LeafSizes sizes;
    const std::uint32_t* begin = table.leaf_begin(output, tree);
    const std::size_t base = table.tree_begin(output, tree);
    const std::size_t n_entries = table.tree_begin(output, tree + 1) - base;
    const std::size_t n_leaves = table.n_leaves(tree);
    if (begin[0] != 0 || begin[n_leaves] != n_entries) refuse(damaged_tree(tree));
    in_pieces(n_leaves, interruption, [&](std::size_t first, std::size_t last) {
        for (std::size_t leaf = first; leaf < last; ++leaf) {
            if (begin[leaf] > begin[leaf + 1] || begin[leaf + 1] > n_entries) {
                refuse(damaged_tree(tree));
            }
            const std::size_t size = begin[leaf + 1] - begin[leaf];
            const std::size_t at = base + begin[leaf];
            sizes.max_leaf_size = std::max(sizes.max_leaf_size, size);
            if (!proper_entries(table, ranks, units, output, at, at + size, sizes.has_ties)) {
                refuse(damaged_leaf(tree, leaf));
            }
            if (!proper_copies(table, at, at + size, sizes.has_ties)) refuse(no_copies);
            if (size == 0 || table.has_leaf(tree, static_cast<leaf_t>(leaf))) continue;
            refuse("seen is damaged: leaf " + std::to_string(leaf) + " of tree " +
                   std::to_string(tree) + " holds rows");
        }
    });
    return sizes;
}

// Sizes of the arrays with an element for each entry.
void check_entry_arrays(const LeafIndexArrays& arrays) {
    const std::size_t n_ranks =
        std::visit([](const auto& ranks) { return ranks.size(); }, arrays.ranks);
    check_offsets(arrays.tree_begin.view(), n_ranks, false, "tree_begin");
    const auto check_size = [n_ranks](const char* name) {
        return [n_ranks, name](const auto& values) {
            if (values.size() == n_ranks) return;
            refuse(std::string(name) + " must have as many elements as ranks");
        };
    };
    with_array(arrays.units, check_size("units"));
    with_array(arrays.copies, check_size("copies"));
    if (arrays.uniform() && (arrays.pooled || arrays.copies.index() != 0)) {
        refuse("an index that is pooled or has copies must have units");
    }
}

}  // namespace

void check_number_of_trees(std::size_t n_trees) {
    if (n_trees < 1 || n_trees > max_trees) {
        refuse("the number of trees must lie in [1, 2**22], got " + std::to_string(n_trees));
    }
}

// Offsets must rise, all arrays have sizes that fit each other, and targets are in order.
void check_sizes(const LeafTable& table) {
    const LeafIndexArrays& arrays = table.arrays();
    if (arrays.leaf_offsets.size() < 2) refuse("leaf_offsets is damaged: it names no tree");
    if (arrays.atom_offsets.size() < 2) refuse("atom_offsets is damaged: it names no output");
    const std::size_t n_trees = table.n_trees();
    check_number_of_trees(n_trees);
    const offset_t last_leaf = arrays.leaf_offsets.view().back();
    if (last_leaf < 0) refuse("leaf_offsets is damaged: it ends below 0");
    const auto n_leaves = static_cast<std::size_t>(last_leaf);
    check_offsets(arrays.leaf_offsets.view(), n_leaves, false, "leaf_offsets");
    for (std::size_t t = 0; t < n_trees; ++t) {
        if (table.n_leaves(t) <= max_leaves_per_tree) continue;
        refuse("leaf_offsets is damaged: tree " + std::to_string(t) +
               " has more than 2**28 leaves");
    }
    check_offsets(arrays.atom_offsets.view(), arrays.atoms.size(), true, "atom_offsets");
    check_entry_arrays(arrays);
    if (arrays.tree_begin.size() - 1 != table.n_outputs() * n_trees) {
        refuse("tree_begin must have one element for each output and tree, and one more");
    }
    if (n_leaves > std::numeric_limits<std::uint32_t>::max() * max_trees ||
        arrays.leaf_begin.size() % (n_leaves + n_trees) != 0 ||
        arrays.leaf_begin.size() / (n_leaves + n_trees) != table.n_outputs()) {
        refuse("leaf_begin must have an element for each output and leaf, and one more per tree");
    }
    if (table.has_leaf_mask() && arrays.leaf_mask.size() != (n_leaves + 63) / 64) {
        refuse("seen must have a bit for each leaf, 64 to an element");
    }
    if (arrays.censored()) check_events(arrays, table.n_outputs());
    for (std::size_t o = 0; o < table.n_outputs(); ++o) {
        check_atoms(table.atoms(o), arrays.events.view());
    }
}

LeafSizes check_leaves(const LeafTable& table, unsigned n_threads, Interruption& interruption) {
    std::vector<LeafSizes> of_trees(table.n_outputs() * table.n_trees());
    const auto work = [&](std::size_t block) {
        const std::size_t output = block / table.n_trees();
        const std::size_t tree = block % table.n_trees();
        std::visit(
            [&](const auto& ranks, const auto& units) {
                of_trees[block] = check_tree(table, ranks, units, output, tree, interruption);
            },
            table.arrays().ranks, table.arrays().units);
    };
    parallel_for(of_trees.size(), n_threads, work, interruption);
    LeafSizes all;
    for (const LeafSizes& tree : of_trees) {
        all.max_leaf_size = std::max(all.max_leaf_size, tree.max_leaf_size);
        all.has_ties = all.has_ties || tree.has_ties;
    }
    return all;
}

void check_leaf(const LeafTable& table, std::size_t output, std::size_t tree, leaf_t leaf) {
    const std::uint32_t* offsets = table.leaf_begin(output, tree) + leaf;
    const std::size_t base = table.tree_begin(output, tree);
    if (offsets[0] > offsets[1] || offsets[1] > table.tree_begin(output, tree + 1) - base) {
        refuse(damaged_tree(tree));
    }
    const std::size_t begin = base + offsets[0];
    const std::size_t end = base + offsets[1];
    bool has_ties = false;
    const bool proper = std::visit(
        [&](const auto& ranks, const auto& units) {
            return proper_entries(table, ranks, units, output, begin, end, has_ties);
        },
        table.arrays().ranks, table.arrays().units);
    if (!proper) refuse(damaged_leaf(tree, static_cast<std::size_t>(leaf)));
    if (!proper_copies(table, begin, end, has_ties)) refuse(no_copies);
}

}  // namespace hdicore
