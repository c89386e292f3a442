// index/bucket_counts.hpp: how the entries of large leaves are spread over the buckets of atoms
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "pmf/bucket_masses.hpp"

namespace hdicore {

// How many entries of each leaf lie below each bucket. Leaves have numbers: those of output o begin
// at o * n_leaves.
class CountRows {
  public:
    // Numbers of 8 bits are enough for so many entries.
    static constexpr std::uint32_t max_narrow = 255;
    // How many bits a number has.
    enum class Width { narrow, wide, mixed };

    // Rows of zeros. sizes (n,) are the entries of each leaf.
    explicit CountRows(std::span<const std::uint32_t> sizes);

    // Of `mixed` rows, those of leaves with more than max_narrow entries are wide.
    Width width() const noexcept { return width_; }
    bool is_wide(std::uint32_t n_entries) const noexcept {
        return width_ == Width::wide || (width_ == Width::mixed && n_entries > max_narrow);
    }
    // Position of the row of a leaf, in units of n_buckets bytes.
    std::uint32_t place(std::uint32_t leaf) const noexcept {
        switch (width_) {
            case Width::narrow:
                return leaf;
            case Width::wide:
                return 2 * leaf;
            default:
                return leaf + wide_before_group_[leaf / group] + wide_before_[leaf];
        }
    }
    // All rows as numbers of one width, which those of some leaves are not.
    const std::uint8_t* narrow() const noexcept {
        return reinterpret_cast<const std::uint8_t*>(words_.data());
    }
    const std::uint16_t* wide() const noexcept { return words_.data(); }
    std::uint8_t* narrow_row(std::uint32_t leaf) noexcept {
        return reinterpret_cast<std::uint8_t*>(words_.data()) + place(leaf) * n_buckets;
    }
    std::uint16_t* wide_row(std::uint32_t leaf) noexcept {
        return words_.data() + place(leaf) * (n_buckets / 2);
    }

    std::size_t nbytes() const noexcept {
        return words_.size() * sizeof(words_[0]) + wide_before_.size() +
               wide_before_group_.size() * sizeof(wide_before_group_[0]);
    }

  private:
    static constexpr std::size_t group = 256;

    Width width_ = Width::narrow;
    std::vector<std::uint16_t> words_;  // narrow rows have two numbers in each
    // If mixed: wide rows before the one of each leaf, in its group of leaves and in those before.
    std::vector<std::uint8_t> wide_before_;         // (n,)
    std::vector<std::uint32_t> wide_before_group_;  // (n / group, rounded up)
};

struct BucketCounts {
    std::vector<BucketEdges> edges;  // (n_outputs,)
    CountRows below;
    // The same for fine buckets, if leaves are large enough for it to pay; or empty.
    std::vector<BucketEdges> fine_edges;
    std::vector<std::uint16_t> fine_below;  // (n, n_fine_buckets)
    // Buckets of the outermost entries.
    struct Ends {
        std::uint8_t first;
        std::uint8_t last;
    };
    std::vector<Ends> ends;  // (n,)

    std::size_t nbytes() const noexcept {
        std::size_t n =
            below.nbytes() + ends.size() * sizeof(Ends) + fine_below.size() * sizeof(fine_below[0]);
        for (const BucketEdges& of_output : edges) n += of_output.nbytes();
        for (const BucketEdges& of_output : fine_edges) n += of_output.nbytes();
        return n;
    }
};

// Writes how many of the ranks of a leaf, ascending, lie below each bucket, (edges.size(),).
template <class Rank, class Count>
void count_below(const BucketEdges& edges, std::span<const Rank> ranks, Count* below) noexcept {
    std::size_t b = 0;
    for (std::size_t e = 0; e < ranks.size(); ++e) {
        while (edges.begin[b] <= ranks[e]) below[b++] = static_cast<Count>(e);
    }
    std::fill(below + b, below + edges.size(), static_cast<Count>(ranks.size()));
}

}  // namespace hdicore
