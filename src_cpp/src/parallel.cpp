// parallel.cpp: threads are started per call and joined before it returns, so a fork finds none
// SPDX-License-Identifier: BSD-3-Clause
#include "hdicore/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "hdicore/processors.hpp"

namespace hdicore {

unsigned usable_threads(unsigned n_threads) noexcept {
    if (n_threads == 0) return available_threads();
    return std::min(n_threads, std::max(64u, 4 * std::thread::hardware_concurrency()));
}

void parallel_for(std::size_t n_blocks, unsigned n_threads,
                  const std::function<Worker()>& make_worker) {
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex failure_mutex;

    const auto run = [&] {
        try {
            const Worker worker = make_worker();
            for (std::size_t block; (block = next.fetch_add(1)) < n_blocks;) worker(block);
        } catch (...) {
            const std::lock_guard lock(failure_mutex);
            if (!failure) failure = std::current_exception();
            next.store(n_blocks);
        }
    };

    const std::size_t wanted = usable_threads(n_threads);
    const std::size_t n_helpers = std::min(wanted, n_blocks) - (n_blocks > 0 ? 1 : 0);
    std::vector<std::thread> helpers;
    helpers.reserve(n_helpers);
    try {
        while (helpers.size() < n_helpers) helpers.emplace_back(run);
    } catch (...) {
        // The system or memory gives no more threads: those that run share the blocks.
    }
    run();
    for (std::thread& helper : helpers) helper.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace hdicore
