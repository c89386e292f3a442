// base/processors.cpp: affinity, control groups and OMP_NUM_THREADS
// SPDX-License-Identifier: BSD-3-Clause
#include "base/processors.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

namespace hdicore {
namespace {

// Those in the affinity mask, which hardware_concurrency looks at with some C libraries only.
unsigned processors_in_reach() noexcept {
#if defined(__linux__)
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof(mask), &mask) == 0) {
        return static_cast<unsigned>(std::max(1, CPU_COUNT(&mask)));
    }
#endif
    return std::max(1u, std::thread::hardware_concurrency());
}

std::optional<unsigned> smaller(std::optional<unsigned> a, std::optional<unsigned> b) {
    return a && b ? std::min(a, b) : a ? a : b;
}

// So much of each period: a number of processors.
std::optional<unsigned> processors(double quota, double period) {
    if (!(quota > 0 && period > 0)) return {};
    return static_cast<unsigned>(std::min(std::ceil(quota / period), 1e6));
}

// "max 100000" or "150000 100000"
std::optional<unsigned> second_kind(const std::string& folder) {
    std::ifstream file(folder + "/cpu.max");
    double limit = 0;
    double period = 0;
    if (!(file >> limit >> period)) return {};
    return processors(limit, period);
}

std::optional<unsigned> first_kind(const std::string& folder) {
    double limit = 0;
    double period = 0;
    if (!(std::ifstream(folder + "/cpu.cfs_quota_us") >> limit)) return {};
    if (!(std::ifstream(folder + "/cpu.cfs_period_us") >> period)) return {};
    return processors(limit, period);
}

// The smallest over a group and those it is part of, "/a/b", "/a" and "".
template <class Read>
std::optional<unsigned> along(const std::string& root, std::string group, Read read) {
    std::optional<unsigned> smallest = read(root);
    while (!group.empty() && group != "/") {
        smallest = smaller(smallest, read(root + group));
        group.erase(group.rfind('/'));
    }
    return smallest;
}

}  // namespace

unsigned available_threads() noexcept {
    unsigned found = processors_in_reach();
    try {
        if (const char* list = std::getenv("OMP_NUM_THREADS")) {
            found = std::min(found, first_count(list).value_or(found));
        }
#if defined(__linux__)
        if (found > 1) {
            found = std::min(found, quota("/proc/self/cgroup", "/sys/fs/cgroup").value_or(found));
        }
#endif
    } catch (...) {
        // Without memory for a few short texts, what is known is as good.
    }
    return found;
}

std::optional<unsigned> first_count(std::string_view list) noexcept {
    auto first = list.substr(0, list.find(','));
    while (!first.empty() && first.front() == ' ') first.remove_prefix(1);
    while (!first.empty() && first.back() == ' ') first.remove_suffix(1);
    unsigned count = 0;
    const auto [end, error] = std::from_chars(first.data(), first.data() + first.size(), count);
    const bool is_number = error == std::errc() && end == first.data() + first.size();
    return is_number && count > 0 ? std::optional(count) : std::nullopt;
}

std::optional<unsigned> quota(const std::string& groups, const std::string& root) {
    std::optional<unsigned> smallest;
    std::ifstream list(groups);
    // Each line is "number:controllers:/group", without controllers for the second kind.
    for (std::string line; std::getline(list, line);) {
        const std::size_t begin = line.find(':');
        const std::size_t end = begin == line.npos ? begin : line.find(":/", begin + 1);
        if (end == line.npos) continue;
        const std::string controllers = "," + line.substr(begin + 1, end - begin - 1) + ",";
        const std::string group = line.substr(end + 1);
        if (controllers == ",,") {
            smallest = smaller(smallest, along(root, group, second_kind));
        } else if (controllers.find(",cpu,") != controllers.npos) {
            smallest = smaller(smallest, along(root + "/cpu", group, first_kind));
        }
    }
    return smallest;
}

}  // namespace hdicore
