// scoring/row_blocks.hpp: rows cut into blocks, which threads work on
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/interruption.hpp"
#include "base/parallel.hpp"
#include "kernels/kernels.hpp"
#include "merge/merger.hpp"
#include "scoring/leaf_source.hpp"

namespace hdicore {

// How to run: nothing of it changes a bit of the results. An interrupted run leaves some written.
struct Execution {
    unsigned n_threads = 0;      // 0: all this process may use
    std::size_t block_rows = 0;  // 0: as the size of the trees suggests
    Strategy strategy = Strategy::automatic;
    const Kernels& kernels = default_kernels();
    Interruption& interruption = Interruption::never();
};

// Threads for so many rows: starting one takes as long as walking some thousand trees.
inline unsigned threads_for(std::size_t n_rows, std::size_t n_trees, const Execution& execution) {
    const std::size_t worth = n_rows * n_trees / 10000;
    if (worth <= 1) return 1;  // finding out how many there are takes as long as some rows
    return static_cast<unsigned>(std::min<std::size_t>(worth, usable_threads(execution.n_threads)));
}

// Where the blocks of rows begin, and the end. Blocks have preferred_rows at most, and fewer
// towards the end, so that threads finish at about the same time.
inline std::vector<std::size_t> cut_rows(std::size_t n_rows, std::size_t preferred_rows,
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

// Calls workers with each block of rows, work(begin, end). make_block_worker(max_rows) makes one
// for each thread.
template <class MakeBlockWorker>
void for_each_block(std::size_t n_rows, std::size_t n_trees, std::size_t preferred_rows,
                    const Execution& execution, const MakeBlockWorker& make_block_worker) {
    const unsigned n_threads = threads_for(n_rows, n_trees, execution);
    const std::vector<std::size_t> begins =
        cut_rows(n_rows, preferred_rows, n_threads, execution.block_rows);
    std::size_t max_rows = 0;
    for (std::size_t b = 1; b < begins.size(); ++b) {
        max_rows = std::max(max_rows, begins[b] - begins[b - 1]);
    }
    const auto make_worker = [&]() -> Worker {
        return [&, work = make_block_worker(max_rows)](std::size_t b) mutable {
            work(begins[b], begins[b + 1]);
        };
    };
    parallel_for(begins.size() - 1, n_threads, make_worker, execution.interruption);
}

}  // namespace hdicore
