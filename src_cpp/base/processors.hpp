// base/processors.hpp: how many threads this process was given
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hdicore {

// Processors this process may run on (its affinity mask where the platform has one), but no more
// than the quota of its control groups pays for, nor than OMP_NUM_THREADS says; at least 1. Asked
// anew at each call, as all of them may change.
unsigned available_threads() noexcept;

// The first number of a list such as that of OMP_NUM_THREADS, "4" or "4,2"; nothing unless it is a
// number from 1 on.
std::optional<unsigned> first_count(std::string_view list) noexcept;

// Processors that the quotas of a process's control groups pay for, of Linux's first or second
// kind, rounded up; nothing if there is no quota. `groups` is its list, /proc/self/cgroup; `root`
// is where they are mounted, /sys/fs/cgroup.
std::optional<unsigned> quota(const std::string& groups, const std::string& root);

}  // namespace hdicore
