// index/leaf_index.cpp: checks an index that comes from outside, and tabulates what follows from it
// SPDX-License-Identifier: BSD-3-Clause
#include "index/leaf_index.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "base/parallel.hpp"

namespace hdicore {
namespace {

[[noreturn]] void refuse(const std::string& why) {
    throw std::invalid_argument(why);
}

// Calls use(output, tree, leaf, begin, end) for each leaf, whose entries are [begin, end).
template <class Use>
void for_each_leaf(const LeafIndex& index, Interruption& interruption, const Use& use) {
    for (std::size_t o = 0; o < index.n_outputs(); ++o) {
        for (std::size_t t = 0; t < index.n_trees(); ++t) {
            const std::size_t base = index.tree_begin(o, t);
            const std::uint32_t* begin = index.leaf_begin(o, t);
            in_pieces(index.n_leaves(t), interruption, [&](std::size_t first, std::size_t last) {
                for (std::size_t leaf = first; leaf < last; ++leaf) {
                    use(o, t, leaf, base + begin[leaf], base + begin[leaf + 1]);
                }
            });
        }
    }
}

// Calls use(values) with an array, if there is one.
template <class Arrays, class Use>
void with_array(const Arrays& arrays, const Use& use) {
    std::visit(
        [&]<class Values>(const Values& values) {
            if constexpr (!std::is_same_v<Values, std::monostate>) use(values);
        },
        arrays);
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

// Checks the entries of all leaves. Returns whether some leaf has a rank twice.
template <class Rank, class Units>
bool check_entries(const LeafIndex& index, const Array<Rank>& ranks, const Units& units,
                   Interruption& interruption) {
    constexpr bool uniform = std::is_same_v<Units, std::monostate>;
    const bool pooled = index.arrays().pooled;
    const mass_t whole = mass_t{1} << index.shift();
    bool has_ties = false;
    const auto check = [&](std::size_t o, std::size_t t, std::size_t leaf, std::size_t begin,
                           std::size_t end) {
        bool proper = proper_ranks(ranks, begin, end, index.atoms(o).size(), !uniform, has_ties);
        if constexpr (uniform) {
            proper = proper && end - begin <= max_uniform_leaf;
        } else {
            proper = proper && proper_units(units, begin, end, whole, pooled);
        }
        if (proper) return;
        refuse("leaf " + std::to_string(leaf) + " of tree " + std::to_string(t) +
               " is damaged: its ranks or units are out of range");
    };
    for_each_leaf(index, interruption, check);
    return has_ties;
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

void check_atoms(std::span<const double> atoms) {
    if (atoms.size() > std::numeric_limits<rank_t>::max()) {
        refuse("atoms is damaged: an output must have fewer than 2**32");
    }
    for (std::size_t k = 0; k < atoms.size(); ++k) {
        if (!std::isfinite(atoms[k]) || (k > 0 && !(atoms[k] > atoms[k - 1]))) {
            refuse("atoms is damaged: targets must be finite and ascending");
        }
    }
}

}  // namespace

void LeafIndex::check_number_of_trees(std::size_t n_trees) {
    if (n_trees < 1 || n_trees > max_trees) {
        refuse("the number of trees must lie in [1, 2**22], got " + std::to_string(n_trees));
    }
}

LeafIndex::LeafIndex(LeafIndexArrays arrays, Interruption& interruption)
    : arrays_(std::move(arrays)) {
    validate(interruption);
    compare_outputs();
    tabulate_leaf_sizes(interruption);
    count_buckets(1, interruption);
}

void LeafIndex::tabulate_leaf_sizes(Interruption& interruption) {
    std::vector<bool> occurs(1, false);
    for_each_leaf(*this, interruption,
                  [&](std::size_t, std::size_t, std::size_t, std::size_t begin, std::size_t end) {
                      const std::size_t n = end - begin;
                      if (n >= occurs.size()) occurs.resize(n + 1, false);
                      occurs[n] = true;
                  });
    max_leaf_size_ = occurs.size() - 1;
    if (!arrays_.uniform()) return;
    uniform_begin_.assign(occurs.size(), 0);
    for (std::size_t n = 1; n < occurs.size(); ++n) {
        if (!occurs[n]) continue;
        uniform_begin_[n] = static_cast<std::uint32_t>(uniform_units_.size());
        mass_t before = 0;
        for (std::size_t k = 1; k <= n; ++k) {
            const mass_t upto = floor_units(k, n, narrow_shift);
            uniform_units_.push_back(static_cast<std::uint32_t>(upto - before));
            before = upto;
        }
    }
}

// Each row is an entry in every output, so that an index built here has outputs that begin alike;
// arrays from outside may differ. The last leaf of a tree ends where the tree does: trees begin
// alike if leaves do.
void LeafIndex::compare_outputs() noexcept {
    const std::span<const std::uint32_t> begin = arrays_.leaf_begin.view();
    const std::size_t step = n_leaves() + n_trees();
    outputs_begin_alike_ =
        arrays_.uniform() && std::equal(begin.begin() + step, begin.end(), begin.begin());
}

void LeafIndex::count_buckets(unsigned n_threads, Interruption& interruption) {
    const std::size_t n_rows = n_outputs() * n_leaves();
    if (!arrays_.uniform() || !(entries_per_leaf() >= min_entries_for_bucket_counts) ||
        n_rows > std::numeric_limits<std::uint32_t>::max()) {
        return;
    }
    BucketCounts& counts = bucket_counts_.emplace();
    for (std::size_t o = 0; o < n_outputs(); ++o) counts.edges.emplace_back(atoms(o));
    counts.ends.resize(n_rows);
    const auto count = [&]<class Ranks, class Count>(const Ranks& ranks,
                                                     std::vector<Count>& below) {
        below.resize(n_rows * n_buckets);
        const auto make_worker = [&]() -> Worker {
            return [&](std::size_t block) {
                const std::size_t o = block / n_trees();
                const std::size_t t = block % n_trees();
                for (std::size_t leaf = 0; leaf < n_leaves(t); ++leaf) {
                    const EntrySlice slice = entries(o, t, static_cast<leaf_t>(leaf));
                    if (slice.n == 0) continue;
                    const auto leaf_ranks = ranks.view().subspan(slice.begin, slice.n);
                    counts.ends[slice.leaf] = {leaf_ranks.front(), leaf_ranks.back()};
                    count_below(counts.edges[o], leaf_ranks, &below[slice.leaf * n_buckets]);
                }
            };
        };
        parallel_for(n_outputs() * n_trees(), n_threads, make_worker, interruption);
    };
    const bool narrow = max_leaf_size_ <= std::numeric_limits<std::uint8_t>::max();
    if (!narrow) counts.below = std::vector<std::uint16_t>();
    std::visit(count, arrays_.ranks, counts.below);
}

void LeafIndex::validate(Interruption& interruption) {
    check_sizes();
    for (std::size_t o = 0; o < n_outputs(); ++o) {
        check_atoms(atoms(o));
        check_leaf_begin(o);
    }
    has_ties_ = std::visit(
        [&](const auto& ranks, const auto& units) {
            return check_entries(*this, ranks, units, interruption);
        },
        arrays_.ranks, arrays_.units);
    with_array(arrays_.copies, [&](const auto& copies) {
        in_pieces(copies.size(), interruption, [&](std::size_t first, std::size_t last) {
            for (std::size_t e = first; e < last; ++e) {
                if (copies[e] == 0) {
                    refuse("copies is damaged: there must be a row behind each entry");
                }
                has_ties_ = has_ties_ || copies[e] > 1;
            }
        });
    });
    for_each_leaf(
        *this, interruption,
        [&](std::size_t, std::size_t t, std::size_t leaf, std::size_t begin, std::size_t end) {
            if (begin == end || has_leaf(t, static_cast<leaf_t>(leaf))) return;
            refuse("seen is damaged: leaf " + std::to_string(leaf) + " of tree " +
                   std::to_string(t) + " holds rows");
        });
}

// Offsets must rise, and all arrays have sizes that fit each other.
void LeafIndex::check_sizes() const {
    const std::size_t m = arrays_.leaf_offsets.size() - 1;
    if (arrays_.leaf_offsets.size() < 2) refuse("leaf_offsets is damaged: it names no tree");
    if (arrays_.atom_offsets.size() < 2) refuse("atom_offsets is damaged: it names no output");
    check_number_of_trees(m);
    const offset_t last_leaf = arrays_.leaf_offsets.view().back();
    if (last_leaf < 0) refuse("leaf_offsets is damaged: it ends below 0");
    check_offsets(arrays_.leaf_offsets.view(), static_cast<std::size_t>(last_leaf), false,
                  "leaf_offsets");
    check_offsets(arrays_.atom_offsets.view(), arrays_.atoms.size(), true, "atom_offsets");
    const std::size_t n_ranks =
        std::visit([](const auto& ranks) { return ranks.size(); }, arrays_.ranks);
    check_offsets(arrays_.tree_begin.view(), n_ranks, false, "tree_begin");
    const auto check_size = [n_ranks](const char* name) {
        return [n_ranks, name](const auto& values) {
            if (values.size() == n_ranks) return;
            refuse(std::string(name) + " must have as many elements as ranks");
        };
    };
    with_array(arrays_.units, check_size("units"));
    with_array(arrays_.copies, check_size("copies"));
    if (arrays_.uniform() && (arrays_.pooled || arrays_.copies.index() != 0)) {
        refuse("an index that is pooled or has copies must have units");
    }
    if (arrays_.tree_begin.size() - 1 != n_outputs() * m) {
        refuse("tree_begin must have one element for each output and tree, and one more");
    }
    if (n_leaves() > std::numeric_limits<std::uint32_t>::max() * max_trees ||
        arrays_.leaf_begin.size() % (n_leaves() + m) != 0 ||
        arrays_.leaf_begin.size() / (n_leaves() + m) != n_outputs()) {
        refuse("leaf_begin must have an element for each output and leaf, and one more per tree");
    }
    if (only_known_leaves() && arrays_.known_leaves.size() != (n_leaves() + 63) / 64) {
        refuse("seen must have a bit for each leaf, 64 to an element");
    }
}

// The leaves of each tree must share out its entries.
void LeafIndex::check_leaf_begin(std::size_t output) const {
    for (std::size_t t = 0; t < n_trees(); ++t) {
        const std::size_t block = output * n_trees() + t;
        const std::size_t n = n_leaves(t);
        const std::uint32_t* begin = leaf_begin(output, t);
        bool proper = n <= max_leaves_per_tree && begin[0] == 0 &&
                      begin[n] == arrays_.tree_begin[block + 1] - arrays_.tree_begin[block];
        for (std::size_t l = 0; l < n && proper; ++l) proper = begin[l] <= begin[l + 1];
        if (!proper) refuse("leaf_begin of tree " + std::to_string(t) + " is damaged");
    }
}

std::span<const double> LeafIndex::atoms(std::size_t output) const noexcept {
    return arrays_.atoms.view().subspan(
        static_cast<std::size_t>(arrays_.atom_offsets[output]),
        static_cast<std::size_t>(arrays_.atom_offsets[output + 1] - arrays_.atom_offsets[output]));
}

std::size_t LeafIndex::max_atoms() const noexcept {
    std::size_t largest = 0;
    for (std::size_t o = 0; o < n_outputs(); ++o) largest = std::max(largest, atoms(o).size());
    return largest;
}

std::size_t LeafIndex::nbytes() const noexcept {
    std::size_t n = arrays_.leaf_offsets.nbytes() + arrays_.atom_offsets.nbytes() +
                    arrays_.atoms.nbytes() + arrays_.tree_begin.nbytes() +
                    arrays_.leaf_begin.nbytes() + arrays_.known_leaves.nbytes() +
                    (uniform_units_.size() + uniform_begin_.size()) * sizeof(std::uint32_t) +
                    (bucket_counts_ ? bucket_counts_->nbytes() : 0);
    const auto add = [&n](const auto& values) { n += values.nbytes(); };
    std::visit(add, arrays_.ranks);
    with_array(arrays_.units, add);
    with_array(arrays_.copies, add);
    return n;
}

}  // namespace hdicore
