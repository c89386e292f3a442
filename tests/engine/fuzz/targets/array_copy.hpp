// array_copy.hpp: the arrays of an index as vectors, which a target may change
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <type_traits>
#include <variant>
#include <vector>

#include "index/leaf_index.hpp"
#include "input.hpp"

namespace fuzz {

using namespace hdicore;

// The arrays of an index, to be changed. Units of a variant stand in the vector that is not empty.
struct ArrayCopy {
    std::vector<offset_t> leaf_offsets, atom_offsets, tree_begin;
    std::vector<double> atoms;
    std::vector<std::uint32_t> leaf_begin;
    std::variant<std::vector<std::uint16_t>, std::vector<rank_t>> ranks;
    std::variant<std::monostate, std::vector<std::uint32_t>, std::vector<std::uint64_t>> units;
    std::variant<std::monostate, std::vector<std::uint8_t>, std::vector<std::uint32_t>> copies;
    std::vector<std::uint64_t> leaf_mask;
    bool pooled;

    explicit ArrayCopy(const LeafIndexArrays& from)
        : leaf_offsets(copy(from.leaf_offsets)),
          atom_offsets(copy(from.atom_offsets)),
          tree_begin(copy(from.tree_begin)),
          atoms(copy(from.atoms)),
          leaf_begin(copy(from.leaf_begin)),
          leaf_mask(copy(from.leaf_mask)),
          pooled(from.pooled) {
        std::visit([&](const auto& given) { ranks = copy(given); }, from.ranks);
        const auto copy_to = [](auto& to) {
            return [&]<class Given>(const Given& given) {
                if constexpr (!std::is_same_v<Given, std::monostate>) to = copy(given);
            };
        };
        std::visit(copy_to(units), from.units);
        std::visit(copy_to(copies), from.copies);
    }

    LeafIndexArrays arrays() const {
        LeafIndexArrays made;
        made.leaf_offsets = Array(leaf_offsets);
        made.atom_offsets = Array(atom_offsets);
        made.atoms = Array(atoms);
        made.tree_begin = Array(tree_begin);
        made.leaf_begin = Array(leaf_begin);
        made.leaf_mask = Array(leaf_mask);
        made.pooled = pooled;
        std::visit([&](const auto& values) { made.ranks = Array(values); }, ranks);
        const auto move_to = [](auto& to) {
            return [&]<class Values>(const Values& values) {
                if constexpr (!std::is_same_v<Values, std::monostate>) to = Array(values);
            };
        };
        std::visit(move_to(made.units), units);
        std::visit(move_to(made.copies), copies);
        return made;
    }

    friend bool operator==(const ArrayCopy& a, const ArrayCopy& b) {
        return a.leaf_offsets == b.leaf_offsets && a.atom_offsets == b.atom_offsets &&
               same_bits(a.atoms, b.atoms) && a.tree_begin == b.tree_begin &&
               a.leaf_begin == b.leaf_begin && a.ranks == b.ranks && a.units == b.units &&
               a.copies == b.copies && a.leaf_mask == b.leaf_mask && a.pooled == b.pooled;
    }

  private:
    template <class T>
    static std::vector<T> copy(const Array<T>& array) {
        return {array.view().begin(), array.view().end()};
    }
};

}  // namespace fuzz
