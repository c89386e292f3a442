// c_api/c_index.hpp: what the index of the C table is in C++
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "index/leaf_index.hpp"

struct hdicore_index {
    std::shared_ptr<const hdicore::LeafIndex> engine;  // never null
};
