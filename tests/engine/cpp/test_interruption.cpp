// test_interruption.cpp: the caller is asked now and then, and its answer reaches every thread
// SPDX-License-Identifier: BSD-3-Clause
#include <stdexcept>
#include <thread>

#include "base/interruption.hpp"
#include "base/parallel.hpp"
#include "check.hpp"

using namespace hdicore;

namespace {

template <class Call>
bool interrupts(const Call& call) {
    try {
        call();
    } catch (const Interrupted&) {
        return true;
    }
    return false;
}

void nobody_is_asked_before_the_interval_ends() {
    int n_asked = 0;
    Interruption interruption([&] { ++n_asked; });
    interruption.check();
    CHECK(n_asked == 0);
    std::this_thread::sleep_for(Interruption::interval);
    interruption.check();
    interruption.check();
    CHECK(n_asked == 1);
}

void other_threads_only_hear_of_it() {
    int n_asked = 0;
    Interruption interruption([&] {
        ++n_asked;
        throw std::invalid_argument("enough");
    });
    std::this_thread::sleep_for(Interruption::interval);
    bool stopped = false;
    const auto check = [&] { stopped = interrupts([&] { interruption.check(); }); };
    std::thread(check).join();
    CHECK(!stopped && n_asked == 0);
    CHECK_REFUSED(interruption.check(), "enough");
    std::thread(check).join();
    CHECK(stopped && n_asked == 1);
    CHECK(interrupts([&] { interruption.check(); }));
}

void the_reason_comes_home_from_threads() {
    for (const unsigned n_threads : {1u, 2u, 8u}) {
        Interruption interruption([] { throw std::invalid_argument("enough"); });
        const auto make_worker = [&]() -> Worker {
            return [&](std::size_t) {
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
                interruption.check();
            };
        };
        CHECK_REFUSED(parallel_for(1'000'000, n_threads, make_worker, interruption), "enough");
        // Whoever goes on with it afterwards stops at once.
        CHECK(interrupts([&] { parallel_for(4, n_threads, make_worker, interruption); }));
    }
}

void pieces_cover_everything_once() {
    for (const std::size_t n : {0, 1, 65535, 65536, 65537, 200000}) {
        std::size_t next = 0;
        in_pieces(n, Interruption::never(), [&](std::size_t begin, std::size_t end) {
            CHECK(begin == next && end > begin);
            next = end;
        });
        CHECK(next == n);
    }
}

}  // namespace

int main() {
    nobody_is_asked_before_the_interval_ends();
    other_threads_only_hear_of_it();
    the_reason_comes_home_from_threads();
    pieces_cover_everything_once();
    return check::finish();
}
