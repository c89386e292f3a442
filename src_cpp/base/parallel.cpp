// base/parallel.cpp: threads are started per call and joined before it returns
// SPDX-License-Identifier: BSD-3-Clause
#include "base/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/processors.hpp"

namespace hdicore {

unsigned usable_threads(unsigned n_threads) noexcept {
    if (n_threads == 0) return available_threads();
    if (n_threads == 1) return 1;  // counting processors opens a file
    return std::min(n_threads, std::max(64u, 4 * std::thread::hardware_concurrency()));
}

void parallel_for(std::size_t n_blocks, unsigned n_threads,
                  const std::function<Worker()>& make_worker, Interruption& interruption) {
    if (n_blocks == 0) return;
    const std::size_t n_workers = std::min<std::size_t>(usable_threads(n_threads), n_blocks);
    std::vector<Worker> workers;
    workers.reserve(n_workers);
    while (workers.size() < n_workers) workers.push_back(make_worker());

    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex failure_mutex;
    bool interrupted = false;

    const auto run = [&](const Worker& worker) {
        try {
            for (std::size_t block; (block = next.fetch_add(1)) < n_blocks;) {
                interruption.check();
                worker(block);
            }
        } catch (const Interrupted&) {
            // The calling thread has the reason.
            const std::lock_guard lock(failure_mutex);
            interrupted = true;
            next.store(n_blocks);
        } catch (...) {
            const std::lock_guard lock(failure_mutex);
            if (!failure) failure = std::current_exception();
            next.store(n_blocks);
        }
    };

    std::vector<std::thread> helpers;
    helpers.reserve(n_workers - 1);
    try {
        while (helpers.size() + 1 < n_workers) {
            helpers.emplace_back(run, std::cref(workers[helpers.size() + 1]));
        }
    } catch (...) {
        // The system or memory gives no more threads: those that run share the blocks.
    }
    run(workers.front());
    for (std::thread& helper : helpers) helper.join();
    if (failure) std::rethrow_exception(failure);
    if (interrupted) throw Interrupted();
}

}  // namespace hdicore
