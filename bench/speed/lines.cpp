// bench/speed/lines.cpp: what reading a cache line at random costs, by the size of the memory
// SPDX-License-Identifier: BSD-3-Clause

//     c++ -O3 -o build/lines bench/speed/lines.cpp && build/lines
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

constexpr std::size_t line = 64;

double seconds() {
    using clock = std::chrono::steady_clock;
    return std::chrono::duration<double>(clock::now().time_since_epoch()).count();
}

}  // namespace

int main() {
    std::printf("| MB | ns a line, read at random | GB/s, read in order |\n|---:|---:|---:|\n");
    std::uint64_t sum = 0;
    for (const std::size_t megabytes : {1, 4, 16, 110}) {
        const std::size_t n_lines = megabytes * 1'000'000 / line;
        const std::vector<std::uint64_t> memory(n_lines * line / sizeof(std::uint64_t), 1);
        double random = 1e9, in_order = 1e9;
        for (int turn = 0; turn < 15; ++turn) {
            // Addresses do not depend on what was read, so that reads overlap as they do in
            // scoring.
            constexpr std::size_t n_reads = 2'000'000;
            std::uint64_t state = 1;
            double start = seconds();
            for (std::size_t i = 0; i < n_reads; ++i) {
                state = state * 6364136223846793005U + 1442695040888963407U;
                sum += memory[(state >> 33) % n_lines * (line / sizeof(std::uint64_t))];
            }
            const double took = (seconds() - start) / n_reads;
            random = took < random ? took : random;
            start = seconds();
            for (const std::uint64_t word : memory) sum += word;
            const double all = (seconds() - start) / static_cast<double>(n_lines * line);
            in_order = all < in_order ? all : in_order;
        }
        std::printf("| %zu | %.1f | %.0f |\n", megabytes, random * 1e9, 1e-9 / in_order);
    }
    return sum == 0;  // so that nothing is left out
}
