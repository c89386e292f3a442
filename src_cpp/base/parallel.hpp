// base/parallel.hpp: run independent blocks of work on threads that live for one call
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>

#include "base/interruption.hpp"

namespace hdicore {

// Threads to use when n_threads are asked for: 0 means available_threads(), and no more than 64 or
// four times as many as there are processors, as more only cost memory.
unsigned usable_threads(unsigned n_threads) noexcept;

// Work on blocks, one at a time: a worker is made once per thread, so that it can own scratch
// memory, and is then called with each block number it is given.
using Worker = std::function<void(std::size_t block)>;

// Calls workers for blocks 0 .. n_blocks - 1, each exactly once, in no fixed order, on at most
// usable_threads(n_threads) threads. The calling thread works too. If a worker throws or the work
// is interrupted, the blocks not yet begun are dropped and the first exception is rethrown here,
// after all threads ended. If the system refuses a thread, the work goes on with those already
// there.
//
// The calling thread makes all workers: what they allocate then cannot fail on another thread,
// where a first exception needs memory of its own and without it ends the process.
void parallel_for(std::size_t n_blocks, unsigned n_threads,
                  const std::function<Worker()>& make_worker,
                  Interruption& interruption = Interruption::never());

// The same of work that needs no memory of its own.
inline void parallel_for(std::size_t n_blocks, unsigned n_threads, const Worker& work,
                         Interruption& interruption = Interruption::never()) {
    parallel_for(n_blocks, n_threads, [&] { return work; }, interruption);
}

}  // namespace hdicore
