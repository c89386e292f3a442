// scoring/row_blocks.cpp: how many threads, and blocks of which size
// SPDX-License-Identifier: BSD-3-Clause
#include "scoring/row_blocks.hpp"

#include "scoring/leaf_source.hpp"

namespace hdicore {

unsigned threads_for(std::size_t n_rows, std::size_t n_trees, const Execution& execution) {
    const std::size_t worth = n_rows * n_trees / 10000;
    if (worth <= 1) return 1;  // finding out how many there are takes as long as some rows
    return static_cast<unsigned>(std::min<std::size_t>(worth, usable_threads(execution.n_threads)));
}

std::vector<std::size_t> cut_rows(std::size_t n_rows, std::size_t preferred_rows,
                                  unsigned n_threads, std::size_t block_rows) {
    const std::size_t min_rows = preferred_rows / 4;
    std::vector<std::size_t> begins{0};
    while (begins.back() < n_rows) {
        const std::size_t rest = n_rows - begins.back();
        std::size_t block = block_rows;
        if (block == 0 && n_threads == 1) block = stride_of(preferred_rows);
        if (block == 0) {
            const std::size_t share = rest / (2 * n_threads) + 1;
            block = stride_of(std::min(preferred_rows,
                                       std::max(share, std::min(min_rows, rest / n_threads + 1))));
        }
        begins.push_back(begins.back() + std::min(block, rest));
    }
    return begins;
}

}  // namespace hdicore
