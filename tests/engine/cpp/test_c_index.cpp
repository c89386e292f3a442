// test_c_index.cpp: an index made in C++ answers in C
// SPDX-License-Identifier: BSD-3-Clause
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
    return check::finish();
}
