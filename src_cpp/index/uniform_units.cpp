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
    table.begins.reserve(max_tabulated_leaf + 1);
    table.begins.push_back(0);
    // Behind the last are zeros, for kernels that read several at once.
    table.units.resize(max_tabulated_leaf * (max_tabulated_leaf + 1) / 2 + EntryBuffer::slack);
    std::uint32_t* next = table.units.data();
    for (std::uint64_t n = 1; n <= max_tabulated_leaf; ++n) {
        table.begins.push_back(static_cast<std::uint32_t>(next - table.units.data()));
        // Entry k has floor(whole (k + 1) / n) - floor(whole k / n) units.
        const std::uint64_t share = whole / n;
        const std::uint64_t rest = whole % n;
        std::uint64_t fraction = 0;
        for (std::uint64_t k = 0; k < n; ++k) {
            fraction += rest;
            const bool full = fraction >= n;
            if (full) fraction -= n;
            *next++ = static_cast<std::uint32_t>(share + full);
        }
    }
    return table;
}

}  // namespace

const UniformUnits& uniform_units() {
    static const UniformUnits table = all_sizes();
    return table;
}

}  // namespace hdicore
