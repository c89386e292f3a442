// index/uniform_units.cpp: fills the table without a division for each entry
// SPDX-License-Identifier: BSD-3-Clause
#include "index/uniform_units.hpp"

#include "kernels/kernels.hpp"

namespace hdicore {
namespace {

UniformUnits all_sizes() {
    UniformUnits table;
    table.begins.reserve(max_tabulated_leaf + 1);
    table.begins.push_back(0);
    // Behind the last are zeros, for kernels that read several at once.
    table.units.resize(max_tabulated_leaf * (max_tabulated_leaf + 1) / 2 + EntryBuffer::slack);
    std::uint32_t* next = table.units.data();
    for (std::uint32_t n = 1; n <= max_tabulated_leaf; ++n) {
        table.begins.push_back(static_cast<std::uint32_t>(next - table.units.data()));
        EqualUnits units(EqualUnits::step(n), 0);
        for (std::uint32_t k = 0; k < n; ++k) *next++ = static_cast<std::uint32_t>(units.next());
    }
    return table;
}

}  // namespace

const UniformUnits& uniform_units() {
    static const UniformUnits table = all_sizes();
    return table;
}

}  // namespace hdicore
