// test_bucket_counts.cpp: rows of counts for leaves of all sizes
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <vector>

#include "check.hpp"
#include "index/bucket_counts.hpp"

using namespace hdicore;

namespace {

// Rows hold what was written, whatever was written to others.
void rows_are_apart(const std::vector<std::uint32_t>& sizes, CountRows::Width width) {
    CountRows rows(sizes);
    CHECK(rows.width() == width);
    const auto n = static_cast<std::uint32_t>(sizes.size());
    for (std::uint32_t leaf = 0; leaf < n; ++leaf) {
        for (std::size_t b = 0; b < n_buckets; ++b) {
            if (rows.is_wide(sizes[leaf])) {
                rows.wide_row(leaf)[b] = static_cast<std::uint16_t>(sizes[leaf]);
            } else {
                rows.narrow_row(leaf)[b] = static_cast<std::uint8_t>(sizes[leaf]);
            }
        }
    }
    for (std::uint32_t leaf = 0; leaf < n; ++leaf) {
        for (std::size_t b = 0; b < n_buckets; ++b) {
            const std::size_t place = rows.place(leaf);
            CHECK(sizes[leaf] == (rows.is_wide(sizes[leaf])
                                      ? rows.wide()[place * (n_buckets / 2) + b]
                                      : rows.narrow()[place * n_buckets + b]));
        }
    }
}

}  // namespace

int main() {
    std::vector<std::uint32_t> sizes(600);
    for (std::size_t leaf = 0; leaf < sizes.size(); ++leaf) sizes[leaf] = leaf % 256;
    rows_are_apart(sizes, CountRows::Width::narrow);
    const std::size_t n_bytes = CountRows(sizes).nbytes();
    CHECK(n_bytes == sizes.size() * n_buckets);

    for (std::size_t leaf = 0; leaf < sizes.size(); leaf += 9) sizes[leaf] = 256 + leaf * 7;
    rows_are_apart(sizes, CountRows::Width::mixed);
    CHECK(CountRows(sizes).nbytes() < 1.2 * n_bytes);

    for (std::size_t leaf = 0; leaf < sizes.size(); leaf += 7) sizes[leaf] = 65535;
    rows_are_apart(sizes, CountRows::Width::wide);
    CHECK(CountRows(sizes).nbytes() == 2 * n_bytes);
    return check::finish();
}
