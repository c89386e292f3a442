// index/uniform_units.cpp: fills the table without a division for each entry
// SPDX-License-Identifier: BSD-3-Clause
#include "index/uniform_units.hpp"

#include "base/fixed_point.hpp"
#include "kernels/kernels.hpp"

namespace hdicore {
namespace {

UniformUnits all_sizes() {
    constexpr std::uint64_t whole = std::uint64_t{1} << narrow_shift;
    UniformUnits table;
    table.units.reserve(max_tabulated_leaf * (max_tabulated_leaf + 1) / 2 + EntryBuffer::slack);
    table.begins.reserve(max_tabulated_leaf + 1);
    table.begins.push_back(0);
    for (std::uint64_t n = 1; n <= max_tabulated_leaf; ++n) {
        table.begins.push_back(static_cast<std::uint32_t>(table.units.size()));
        // Entry k has floor(whole k / n) - floor(whole (k - 1) / n) units.
        const std::uint64_t share = whole / n;
        const std::uint64_t rest = whole % n;
        std::uint64_t fraction = 0;
        for (std::uint64_t k = 0; k < n; ++k) {
            fraction += rest;
            const bool full = fraction >= n;
            if (full) fraction -= n;
            table.units.push_back(static_cast<std::uint32_t>(share + full));
        }
    }
    // Kernels that read several at once may do so here too.
    table.units.resize(table.units.size() + EntryBuffer::slack, 0);
    return table;
}

}  // namespace

const UniformUnits& uniform_units() {
    static const UniformUnits table = all_sizes();
    return table;
}

}  // namespace hdicore
