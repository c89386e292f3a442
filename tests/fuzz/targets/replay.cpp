// replay.cpp: runs a target on files and on all files of folders, without a fuzzer
// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::size_t n_run = 0;

void run(const std::filesystem::path& path) {
    // The last one named is the one that ends the program.
    std::fprintf(stderr, "%s\n", path.string().c_str());
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    ++n_run;
}

}  // namespace

int main(int n_arguments, char** arguments) {
    for (int k = 1; k < n_arguments; ++k) {
        if (!std::filesystem::is_directory(arguments[k])) {
            run(arguments[k]);
            continue;
        }
        for (const auto& entry : std::filesystem::directory_iterator(arguments[k])) {
            run(entry.path());
        }
    }
    std::printf("%zu\n", n_run);
}
