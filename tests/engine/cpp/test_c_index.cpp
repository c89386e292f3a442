// test_c_index.cpp: an index made in C++ answers in C, while the file whose bytes it has stays
// SPDX-License-Identifier: BSD-3-Clause
#include <filesystem>
#include <fstream>

#include "c_api/c_index.hpp"
#include "check.hpp"
#include "hdicore/c_api.h"
#include "samples.hpp"

int main() {
    samples::Random random(1);
    const samples::Training rows = samples::random_training(random, 20, 4, 3);
    const hdicore_index index{std::make_shared<hdicore::LeafIndex>(rows.rows(), false, 1)};
    const hdicore_api& api = *hdicore_get_api();
    CHECK(api.index_n_trees(&index) == 4);
    std::vector<double> means(20);
    CHECK(api.index_mean(&index, rows.leaves.data(), 20, 1, means.data(), nullptr) == hdicore_ok);
    for (const double mean : means) CHECK(mean == mean);

    const auto path = std::filesystem::temp_directory_path() / "hdicore_c_index";
    const auto write = [&](const char* text) { std::ofstream(path) << text; };
    write("some bytes");
    const hdicore_index of_file{index.engine,
                                std::make_shared<hdicore::FileBytes>(path.string(), true)};
    hdicore_index* shared = api.index_share(&of_file);
    const auto ask = [&] {
        return api.index_mean(shared, rows.leaves.data(), 20, 1, means.data(), nullptr);
    };
    CHECK(ask() == hdicore_ok);
    write("other bytes");
#if !defined(_WIN32)
    CHECK(ask() == hdicore_failed);
#endif
    api.index_release(shared);
    std::filesystem::remove(path);
    return check::finish();
}
