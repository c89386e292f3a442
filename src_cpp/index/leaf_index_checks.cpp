// index/leaf_index_checks.cpp: checks an index that comes from outside, whole or leaf by leaf
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "index/leaf_index.hpp"

namespace hdicore {
namespace {

constexpr const char* no_copies = "copies is damaged: there must be a row behind each entry";

[[noreturn]] void refuse_array(const std::string& why) {
    throw std::invalid_argument(why);
}

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
bool proper_entries(const LeafIndex& index, const Array<Rank>& ranks, const Units& units,
                    std::size_t output, std::size_t begin, std::size_t end, bool& has_ties) {
    constexpr bool uniform = std::is_same_v<Units, std::monostate>;
    if (!proper_ranks(ranks, begin, end, index.atoms(output).size(), !uniform, has_ties)) {
        return false;
    }
    if constexpr (uniform) {
        return end - begin <= max_uniform_leaf;
    } else {
        const mass_t whole = mass_t{1} << index.shift();
        return proper_units(units, begin, end, whole, index.arrays().pooled);
    }
}

// Whether there is a row behind each of the entries. Sets has_ties if there are two behind one.
bool proper_copies(const LeafIndex& index, std::size_t begin, std::size_t end, bool& has_ties) {
    bool proper = true;
    with_array(index.arrays().copies, [&](const auto& copies) {
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
        refuse_array(std::string(name) + " is damaged: it must rise from 0 to " +
                     std::to_string(last));
    }
}

void check_atoms(std::span<const double> atoms) {
    if (atoms.size() > std::numeric_limits<rank_t>::max()) {
        refuse_array("atoms is damaged: an output must have fewer than 2**32");
    }
    // Whoever lies between finite ones is finite.
    bool proper = std::isfinite(atoms.front()) && std::isfinite(atoms.back());
    for (std::size_t k = 1; k < atoms.size(); ++k) proper &= atoms[k] > atoms[k - 1];
    if (!proper) refuse_array("atoms is damaged: targets must be finite and ascending");
}

// What the leaves of one output in one tree amount to.
struct TreeLeaves {
    std::size_t max_size = 0;
    bool has_ties = false;
};

}  // namespace

void LeafIndex::check_number_of_trees(std::size_t n_trees) {
    if (n_trees < 1 || n_trees > max_trees) {
        refuse_array("the number of trees must lie in [1, 2**22], got " + std::to_string(n_trees));
    }
}

LeafIndex::LeafIndex(LeafIndexArrays arrays, Interruption& interruption, unsigned n_threads)
    : arrays_(std::move(arrays)) {
    check_sizes();
    check_leaves(n_threads, interruption);
    compare_outputs();
    count_buckets(n_threads, interruption);
}

LeafIndex::LeafIndex(LeafIndexArrays arrays, std::string source)
    : arrays_(std::move(arrays)), has_ties_(true), is_checked_(false), source_(std::move(source)) {
    try {
        check_sizes();
    } catch (const std::invalid_argument& error) {
        refuse(error.what());
    }
    const std::span<const offset_t> begins = arrays_.tree_begin.view();
    for (std::size_t block = 0; block + 1 < begins.size(); ++block) {
        max_leaf_size_ =
            std::max(max_leaf_size_, static_cast<std::size_t>(begins[block + 1] - begins[block]));
    }
    if (arrays_.uniform()) max_leaf_size_ = std::min(max_leaf_size_, max_uniform_leaf);
}

LeafIndex LeafIndex::checked(unsigned n_threads, Interruption& interruption) const {
    try {
        return LeafIndex(arrays_, interruption, n_threads);
    } catch (const std::invalid_argument& error) {
        refuse(error.what());
    }
}

void LeafIndex::refuse(const std::string& why) const {
    throw std::invalid_argument(source_ + ": " + why);
}

void LeafIndex::check_leaf(std::size_t output, std::size_t tree, leaf_t leaf) const {
    const std::uint32_t* offsets = leaf_begin(output, tree) + leaf;
    const std::size_t base = tree_begin(output, tree);
    if (offsets[0] > offsets[1] || offsets[1] > tree_begin(output, tree + 1) - base) {
        refuse(damaged_tree(tree));
    }
    const std::size_t begin = base + offsets[0];
    const std::size_t end = base + offsets[1];
    bool has_ties = false;
    const bool proper = std::visit(
        [&](const auto& ranks, const auto& units) {
            return proper_entries(*this, ranks, units, output, begin, end, has_ties);
        },
        arrays_.ranks, arrays_.units);
    if (!proper) refuse(damaged_leaf(tree, static_cast<std::size_t>(leaf)));
    if (!proper_copies(*this, begin, end, has_ties)) refuse(no_copies);
}

void LeafIndex::check_leaves(unsigned n_threads, Interruption& interruption) {
    std::vector<TreeLeaves> found(n_outputs() * n_trees());
    const auto check = [&](const auto& ranks, const auto& units, std::size_t o, std::size_t t,
                           TreeLeaves& tree) {
        const std::uint32_t* begin = leaf_begin(o, t);
        const std::size_t base = tree_begin(o, t);
        const std::size_t n_entries = tree_begin(o, t + 1) - base;
        if (begin[0] != 0 || begin[n_leaves(t)] != n_entries) refuse_array(damaged_tree(t));
        in_pieces(n_leaves(t), interruption, [&](std::size_t first, std::size_t last) {
            for (std::size_t leaf = first; leaf < last; ++leaf) {
                if (begin[leaf] > begin[leaf + 1] || begin[leaf + 1] > n_entries) {
                    refuse_array(damaged_tree(t));
                }
                const std::size_t size = begin[leaf + 1] - begin[leaf];
                const std::size_t at = base + begin[leaf];
                tree.max_size = std::max(tree.max_size, size);
                if (!proper_entries(*this, ranks, units, o, at, at + size, tree.has_ties)) {
                    refuse_array(damaged_leaf(t, leaf));
                }
                if (!proper_copies(*this, at, at + size, tree.has_ties)) refuse_array(no_copies);
                if (size == 0 || has_leaf(t, static_cast<leaf_t>(leaf))) continue;
                refuse_array("seen is damaged: leaf " + std::to_string(leaf) + " of tree " +
                             std::to_string(t) + " holds rows");
            }
        });
    };
    const auto make_worker = [&]() -> Worker {
        return [&](std::size_t block) {
            std::visit(
                [&](const auto& ranks, const auto& units) {
                    check(ranks, units, block / n_trees(), block % n_trees(), found[block]);
                },
                arrays_.ranks, arrays_.units);
        };
    };
    parallel_for(found.size(), n_threads, make_worker, interruption);
    for (const TreeLeaves& tree : found) {
        max_leaf_size_ = std::max(max_leaf_size_, tree.max_size);
        has_ties_ = has_ties_ || tree.has_ties;
    }
}

// Offsets must rise, all arrays have sizes that fit each other, and targets are in order.
void LeafIndex::check_sizes() const {
    const std::size_t m = arrays_.leaf_offsets.size() - 1;
    if (arrays_.leaf_offsets.size() < 2) refuse_array("leaf_offsets is damaged: it names no tree");
    if (arrays_.atom_offsets.size() < 2) {
        refuse_array("atom_offsets is damaged: it names no output");
    }
    check_number_of_trees(m);
    const offset_t last_leaf = arrays_.leaf_offsets.view().back();
    if (last_leaf < 0) refuse_array("leaf_offsets is damaged: it ends below 0");
    check_offsets(arrays_.leaf_offsets.view(), static_cast<std::size_t>(last_leaf), false,
                  "leaf_offsets");
    for (std::size_t t = 0; t < m; ++t) {
        if (n_leaves(t) <= max_leaves_per_tree) continue;
        refuse_array("leaf_offsets is damaged: tree " + std::to_string(t) +
                     " has more than 2**28 leaves");
    }
    check_offsets(arrays_.atom_offsets.view(), arrays_.atoms.size(), true, "atom_offsets");
    const std::size_t n_ranks =
        std::visit([](const auto& ranks) { return ranks.size(); }, arrays_.ranks);
    check_offsets(arrays_.tree_begin.view(), n_ranks, false, "tree_begin");
    const auto check_size = [n_ranks](const char* name) {
        return [n_ranks, name](const auto& values) {
            if (values.size() == n_ranks) return;
            refuse_array(std::string(name) + " must have as many elements as ranks");
        };
    };
    with_array(arrays_.units, check_size("units"));
    with_array(arrays_.copies, check_size("copies"));
    if (arrays_.uniform() && (arrays_.pooled || arrays_.copies.index() != 0)) {
        refuse_array("an index that is pooled or has copies must have units");
    }
    if (arrays_.tree_begin.size() - 1 != n_outputs() * m) {
        refuse_array("tree_begin must have one element for each output and tree, and one more");
    }
    if (n_leaves() > std::numeric_limits<std::uint32_t>::max() * max_trees ||
        arrays_.leaf_begin.size() % (n_leaves() + m) != 0 ||
        arrays_.leaf_begin.size() / (n_leaves() + m) != n_outputs()) {
        refuse_array(
            "leaf_begin must have an element for each output and leaf, and one more per tree");
    }
    if (only_known_leaves() && arrays_.known_leaves.size() != (n_leaves() + 63) / 64) {
        refuse_array("seen must have a bit for each leaf, 64 to an element");
    }
    for (std::size_t o = 0; o < n_outputs(); ++o) check_atoms(atoms(o));
}

}  // namespace hdicore
