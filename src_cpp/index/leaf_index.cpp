// index/leaf_index.cpp: checks an index that comes from outside, and tabulates what follows from
// its leaves SPDX-License-Identifier: BSD-3-Clause
#include "index/leaf_index.hpp"

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

// Calls use(output, tree, leaf, range) for each leaf.
template <class Use>
void for_each_leaf(const LeafIndex& index, Interruption& interruption, const Use& use) {
    for (std::size_t o = 0; o < index.n_outputs(); ++o) {
        for (std::size_t t = 0; t < index.n_trees(); ++t) {
            in_pieces(index.n_leaves(t), interruption, [&](std::size_t first, std::size_t last) {
                for (std::size_t leaf = first; leaf < last; ++leaf) {
                    use(o, t, leaf, index.entries(o, t, static_cast<leaf_t>(leaf)));
                }
            });
        }
    }
}

// Ranks of a leaf must be those of atoms and ascend, strictly if each has units of its own; units
// must sum to the whole, or to no more of it if they are shares of a pool. Returns whether some
// leaf has a rank twice.
template <class Rank, class Units>
bool check_entries(const LeafIndex& index, const Array<Rank>& ranks, const Units& units,
                   Interruption& interruption) {
    constexpr bool alike = std::is_same_v<Units, std::monostate>;
    const bool pooled = index.arrays().pooled;
    const mass_t whole = mass_t{1} << index.shift();
    bool has_ties = false;
    for_each_leaf(index, interruption,
                  [&](std::size_t o, std::size_t t, std::size_t leaf, LeafIndex::Range range) {
                      const auto [begin, end] = range;
                      const std::size_t n_atoms = index.atoms(o).size();
                      bool proper = !alike || end - begin <= most_alike;
                      for (std::size_t e = begin; e < end && proper; ++e) {
                          const bool tied = e > begin && ranks[e] == ranks[e - 1];
                          proper = ranks[e] < n_atoms &&
                                   (e == begin || ranks[e] > ranks[e - 1] || (alike && tied));
                          has_ties = has_ties || tied;
                      }
                      if constexpr (!alike) {
                          mass_t left = whole;
                          for (std::size_t e = begin; e < end && proper; ++e) {
                              proper = units[e] > 0 && units[e] <= static_cast<std::uint64_t>(left);
                              if (proper) left -= static_cast<mass_t>(units[e]);
                          }
                          proper = proper && (end == begin || left == 0 || pooled);
                      }
                      if (!proper) {
                          refuse("leaf " + std::to_string(leaf) + " of tree " + std::to_string(t) +
                                 " is damaged: its ranks or units are out of range");
                      }
                  });
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
    if (!proper)
        refuse(std::string(name) + " is damaged: it must rise from 0 to " + std::to_string(last));
}

}  // namespace

void LeafIndex::check_number_of_trees(std::size_t n_trees) {
    if (n_trees < 1 || n_trees > most_trees) {
        refuse("the number of trees must lie in [1, 2**22], got " + std::to_string(n_trees));
    }
}

LeafIndex::LeafIndex(LeafIndexArrays arrays, Interruption& interruption)
    : arrays_(std::move(arrays)) {
    validate(interruption);
    note_leaf_sizes(interruption);
    count_buckets(1, interruption);
}

void LeafIndex::note_leaf_sizes(Interruption& interruption) {
    std::vector<bool> found(1, false);
    for_each_leaf(*this, interruption, [&](std::size_t, std::size_t, std::size_t, Range range) {
        const std::size_t n = range.end - range.begin;
        if (n >= found.size()) found.resize(n + 1, false);
        found[n] = true;
    });
    largest_leaf_ = found.size() - 1;
    if (arrays_.units.index() != 0) return;
    alike_begin_.assign(found.size(), 0);
    for (std::size_t n = 1; n < found.size(); ++n) {
        if (!found[n]) continue;
        alike_begin_[n] = static_cast<std::uint32_t>(alike_units_.size());
        mass_t given = 0;
        for (std::size_t k = 1; k <= n; ++k) {
            const mass_t upto = share(k, n, narrow_shift);
            alike_units_.push_back(static_cast<std::uint32_t>(upto - given));
            given = upto;
        }
    }
}

void LeafIndex::count_buckets(unsigned n_threads, Interruption& interruption) {
    if (arrays_.units.index() != 0 || !(entries_per_leaf() >= least_for_buckets)) return;
    BucketCounts& counts = bucket_counts_.emplace();
    for (std::size_t o = 0; o < n_outputs(); ++o) counts.edges.emplace_back(atoms(o));
    const std::size_t n_rows = n_outputs() * n_leaves();
    counts.ends.resize(n_rows);
    const auto count = [&]<class Ranks, class Count>(const Ranks& ranks,
                                                     std::vector<Count>& below) {
        below.resize(n_rows * n_buckets);
        const auto make_worker = [&]() -> Worker {
            return [&](std::size_t block) {
                const std::size_t o = block / n_trees();
                const std::size_t t = block % n_trees();
                std::size_t row =
                    o * n_leaves() + static_cast<std::size_t>(arrays_.leaf_offsets[t]);
                for (std::size_t leaf = 0; leaf < n_leaves(t); ++leaf, ++row) {
                    const auto [begin, end] = entries(o, t, static_cast<leaf_t>(leaf));
                    if (begin == end) continue;
                    counts.ends[row] = {ranks[begin], ranks[end - 1]};
                    counts.edges[o].count_below(ranks.view().subspan(begin, end - begin),
                                                &below[row * n_buckets]);
                }
            };
        };
        parallel_for(n_outputs() * n_trees(), n_threads, make_worker, interruption);
    };
    const bool narrow = largest_leaf_ <= std::numeric_limits<std::uint8_t>::max();
    if (!narrow) counts.below = std::vector<std::uint16_t>();
    std::visit(count, arrays_.ranks, counts.below);
}

void LeafIndex::validate(Interruption& interruption) {
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
    const auto size_or = [](const auto& held, std::size_t otherwise) {
        return std::visit(
            [&]<class Values>(const Values& values) {
                if constexpr (std::is_same_v<Values, std::monostate>)
                    return otherwise;
                else
                    return values.size();
            },
            held);
    };
    if (size_or(arrays_.units, n_ranks) != n_ranks) {
        refuse("units must have as many elements as ranks");
    }
    if (size_or(arrays_.copies, n_ranks) != n_ranks) {
        refuse("copies must have as many elements as ranks");
    }
    if (arrays_.units.index() == 0 && (arrays_.pooled || arrays_.copies.index() != 0)) {
        refuse("an index that is pooled or has copies must have units");
    }
    if (arrays_.tree_begin.size() - 1 != n_outputs() * m) {
        refuse("tree_begin must have one element for each output and tree, and one more");
    }
    if (n_leaves() > std::numeric_limits<std::uint32_t>::max() * most_trees ||
        arrays_.leaf_begin.size() % (n_leaves() + m) != 0 ||
        arrays_.leaf_begin.size() / (n_leaves() + m) != n_outputs()) {
        refuse("leaf_begin must have an element for each output and leaf, and one more per tree");
    }
    if (arrays_.seen.size() != 0 && arrays_.seen.size() != (n_leaves() + 63) / 64) {
        refuse("seen must have a bit for each leaf, 64 to an element");
    }
    for (std::size_t o = 0; o < n_outputs(); ++o) {
        const std::span<const double> z = atoms(o);
        if (z.size() > std::numeric_limits<rank_t>::max()) {
            refuse("atoms is damaged: an output must have fewer than 2**32");
        }
        for (std::size_t k = 0; k < z.size(); ++k) {
            if (!std::isfinite(z[k]) || (k > 0 && !(z[k] > z[k - 1]))) {
                refuse("atoms is damaged: targets must be finite and ascending");
            }
        }
        for (std::size_t t = 0; t < m; ++t) {
            const std::size_t slot =
                o * (n_leaves() + m) + static_cast<std::size_t>(arrays_.leaf_offsets[t]) + t;
            const std::size_t n = n_leaves(t);
            const offset_t n_tree_entries =
                arrays_.tree_begin[o * m + t + 1] - arrays_.tree_begin[o * m + t];
            bool proper = n <= most_leaves && arrays_.leaf_begin[slot] == 0 &&
                          arrays_.leaf_begin[slot + n] == n_tree_entries;
            for (std::size_t l = 0; l < n && proper; ++l) {
                proper = arrays_.leaf_begin[slot + l] <= arrays_.leaf_begin[slot + l + 1];
            }
            if (!proper) refuse("leaf_begin of tree " + std::to_string(t) + " is damaged");
        }
    }
    has_ties_ = std::visit(
        [&](const auto& ranks, const auto& units) {
            return check_entries(*this, ranks, units, interruption);
        },
        arrays_.ranks, arrays_.units);
    in_pieces(n_ranks, interruption, [&](std::size_t first, std::size_t last) {
        for (std::size_t e = first; e < last && arrays_.copies.index() != 0; ++e) {
            if (copies(e) == 0) refuse("copies is damaged: there must be a row behind each entry");
            has_ties_ = has_ties_ || copies(e) > 1;
        }
    });
    for_each_leaf(*this, interruption,
                  [&](std::size_t, std::size_t t, std::size_t leaf, Range range) {
                      if (range.begin == range.end || exists(t, static_cast<leaf_t>(leaf))) return;
                      refuse("seen is damaged: leaf " + std::to_string(leaf) + " of tree " +
                             std::to_string(t) + " holds rows");
                  });
}

std::span<const double> LeafIndex::atoms(std::size_t output) const noexcept {
    return arrays_.atoms.view().subspan(
        static_cast<std::size_t>(arrays_.atom_offsets[output]),
        static_cast<std::size_t>(arrays_.atom_offsets[output + 1] - arrays_.atom_offsets[output]));
}

std::size_t LeafIndex::nbytes() const noexcept {
    const std::size_t ranks =
        std::visit([](const auto& values) { return values.nbytes(); }, arrays_.ranks);
    const auto nbytes_of = []<class Values>(const Values& values) {
        if constexpr (std::is_same_v<Values, std::monostate>)
            return std::size_t{0};
        else
            return values.nbytes();
    };
    const std::size_t units =
        std::visit(nbytes_of, arrays_.units) + std::visit(nbytes_of, arrays_.copies);
    return arrays_.leaf_offsets.nbytes() + arrays_.atom_offsets.nbytes() + arrays_.atoms.nbytes() +
           arrays_.tree_begin.nbytes() + arrays_.leaf_begin.nbytes() + ranks + units +
           arrays_.seen.nbytes() +
           (alike_units_.size() + alike_begin_.size()) * sizeof(std::uint32_t) +
           (bucket_counts_ ? bucket_counts_->nbytes() : 0);
}

}  // namespace hdicore
