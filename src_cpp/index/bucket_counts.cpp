// index/bucket_counts.cpp: which leaves need wide numbers, and where that leaves the rows
// SPDX-License-Identifier: BSD-3-Clause
#include "index/bucket_counts.hpp"

namespace hdicore {

CountRows::CountRows(std::span<const std::uint32_t> sizes) {
    const auto n_wide = static_cast<std::size_t>(std::ranges::count_if(
        sizes, [](std::uint32_t n_entries) { return n_entries > max_narrow; }));
    // Mixed rows take longer to find.
    if (n_wide > 0) width_ = 8 * n_wide > sizes.size() ? Width::wide : Width::mixed;
    const std::size_t n_places = sizes.size() + (width_ == Width::wide ? sizes.size() : n_wide);
    words_.resize(n_places * (n_buckets / 2));
    if (width_ != Width::mixed) return;
    wide_before_.resize(sizes.size());
    std::uint32_t n_before = 0;
    for (std::size_t leaf = 0; leaf < sizes.size(); ++leaf) {
        if (leaf % group == 0) wide_before_group_.push_back(n_before);
        wide_before_[leaf] = static_cast<std::uint8_t>(n_before - wide_before_group_.back());
        n_before += sizes[leaf] > max_narrow;
    }
}

}  // namespace hdicore
