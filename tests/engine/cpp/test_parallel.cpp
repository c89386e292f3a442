// test_parallel.cpp: every block once, scratch memory per thread, errors carried home
// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/parallel.hpp"
#include "base/processors.hpp"
#include "check.hpp"

using namespace hdicore;

namespace {

void every_block_runs_exactly_once() {
    for (const unsigned n_threads : {0u, 1u, 2u, 3u, 16u}) {
        for (const std::size_t n_blocks : {0, 1, 2, 7, 1000}) {
            std::vector<std::atomic<int>> seen(n_blocks);
            std::atomic<unsigned> n_workers{0};
            parallel_for(n_blocks, n_threads, [&]() -> Worker {
                ++n_workers;
                return [&](std::size_t block) { ++seen[block]; };
            });
            for (const auto& times : seen) CHECK(times == 1);
            CHECK(n_workers <= std::max<std::size_t>(1, n_blocks));
            CHECK(n_workers <= (n_threads == 0 ? available_threads() : n_threads));
        }
    }
}

void workers_are_made_by_the_caller_and_used_by_one_thread() {
    const auto caller = std::this_thread::get_id();
    std::mutex mutex;
    std::set<std::thread::id> threads;
    std::atomic<int> wrong{0};
    parallel_for(64, 4, [&]() -> Worker {
        if (std::this_thread::get_id() != caller) ++wrong;
        const auto user = std::make_shared<std::thread::id>();
        return [&, user](std::size_t) {
            if (*user == std::thread::id()) *user = std::this_thread::get_id();
            if (*user != std::this_thread::get_id()) ++wrong;
            const std::lock_guard lock(mutex);
            threads.insert(*user);
        };
    });
    CHECK(wrong == 0 && threads.size() <= 4);
}

std::string message_of(std::size_t n_blocks, unsigned n_threads,
                       const std::function<Worker()>& make_worker) {
    try {
        parallel_for(n_blocks, n_threads, make_worker);
    } catch (const std::exception& error) {
        return error.what();
    }
    return "none";
}

void errors_are_carried_home() {
    for (const unsigned n_threads : {1u, 2u, 8u}) {
        std::atomic<std::size_t> n_run{0};
        const auto failing = [&]() -> Worker {
            return [&](std::size_t block) {
                ++n_run;
                if (block == 3) throw std::runtime_error("block 3");
            };
        };
        CHECK(message_of(1'000'000, n_threads, failing) == "block 3");
        CHECK(n_run < 1'000'000);  // the blocks not yet begun are dropped

        const auto all_fail = []() -> Worker {
            return [](std::size_t) { throw std::logic_error("each"); };
        };
        CHECK(message_of(100, n_threads, all_fail) == "each");

        const auto no_worker = []() -> Worker { throw std::bad_alloc(); };
        CHECK(message_of(100, n_threads, no_worker) != "none");

        std::atomic<int> n_after{0};
        parallel_for(10, n_threads, [&]() -> Worker { return [&](std::size_t) { ++n_after; }; });
        CHECK(n_after == 10);
    }
}

void calls_may_nest() {
    std::atomic<int> n_run{0};
    parallel_for(4, 2, [&]() -> Worker {
        return [&](std::size_t) {
            parallel_for(5, 2, [&]() -> Worker { return [&](std::size_t) { ++n_run; }; });
        };
    });
    CHECK(n_run == 20);
}

}  // namespace

int main() {
    every_block_runs_exactly_once();
    workers_are_made_by_the_caller_and_used_by_one_thread();
    errors_are_carried_home();
    calls_may_nest();
    return check::finish();
}
