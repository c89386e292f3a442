// index/leaf_table.cpp: atoms and sizes of the arrays of an index
// SPDX-License-Identifier: BSD-3-Clause
#include "index/leaf_table.hpp"

#include <algorithm>

namespace hdicore {

std::span<const double> LeafTable::atoms(std::size_t output) const noexcept {
    return arrays_.atoms.view().subspan(
        static_cast<std::size_t>(arrays_.atom_offsets[output]),
        static_cast<std::size_t>(arrays_.atom_offsets[output + 1] - arrays_.atom_offsets[output]));
}

std::size_t LeafTable::max_atoms() const noexcept {
    std::size_t largest = 0;
    for (std::size_t o = 0; o < n_outputs(); ++o) largest = std::max(largest, atoms(o).size());
    return largest;
}

std::size_t LeafTable::nbytes() const noexcept {
    std::size_t n = arrays_.leaf_offsets.nbytes() + arrays_.atom_offsets.nbytes() +
                    arrays_.atoms.nbytes() + arrays_.tree_begin.nbytes() +
                    arrays_.leaf_begin.nbytes() + arrays_.leaf_mask.nbytes();
    const auto add = [&n](const auto& values) { n += values.nbytes(); };
    std::visit(add, arrays_.ranks);
    with_array(arrays_.units, add);
    with_array(arrays_.copies, add);
    return n;
}

}  // namespace hdicore
