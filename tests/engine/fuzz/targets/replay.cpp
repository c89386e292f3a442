// replay.cpp: runs a target on the files of a folder, and on seeds, without a fuzzer
// SPDX-License-Identifier: BSD-3-Clause
//
// `replay FOLDER N` takes each file of the folder, and then the numbers 0 to N - 1 as four bytes
// each, which Input makes whole random objects of. Prints how many inputs it ran.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

// The last name printed is that of the input that ended the program.
void run(const std::string& name, const std::vector<char>& bytes) {
    std::fprintf(stderr, "%s\n", name.c_str());
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

}  // namespace

int main(int n_arguments, char** arguments) {
    if (n_arguments != 3) return 2;
    std::size_t n_run = 0;
    for (const auto& entry : std::filesystem::directory_iterator(arguments[1])) {
        std::ifstream file(entry.path(), std::ios::binary);
        run(entry.path().string(), {std::istreambuf_iterator<char>(file), {}});
        ++n_run;
    }
    const auto n_seeds = static_cast<std::uint32_t>(std::atoi(arguments[2]));
    for (std::uint32_t seed = 0; seed < n_seeds; ++seed, ++n_run) {
        std::vector<char> bytes(sizeof(seed));
        std::memcpy(bytes.data(), &seed, sizeof(seed));
        run("seed " + std::to_string(seed), bytes);
    }
    std::printf("%zu\n", n_run);
}
