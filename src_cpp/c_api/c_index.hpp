// c_api/c_index.hpp: what the index of the C table is in C++
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "index/leaf_index.hpp"
#include "model_file/file_bytes.hpp"

struct hdicore_index {
    std::shared_ptr<const hdicore::LeafIndex> engine;          // never null
    std::shared_ptr<const hdicore::FileBytes> file = nullptr;  // whose bytes it has, if any
};
