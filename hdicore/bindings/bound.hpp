// bound.hpp: what the engine's classes need beside them to be Python's, and who registers them
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "hdicore/scorer.hpp"

namespace hdicore::bindings {

// An index that remembers whether y had one dimension: its results then have no axis for outputs.
struct BoundIndex {
    std::shared_ptr<const LeafIndex> engine;
    bool scalar_output;
};

struct BoundScorer {
    BoundScorer(std::shared_ptr<Forest> the_forest, std::shared_ptr<BoundIndex> the_index)
        : forest(the_forest), index(the_index), engine(the_forest, the_index->engine) {}

    std::shared_ptr<Forest> forest;
    std::shared_ptr<BoundIndex> index;
    Scorer engine;
};

void register_forest(pybind11::module_& module);
void register_leaf_index(pybind11::module_& module);
void register_scorer(pybind11::module_& module);
void register_hdi(pybind11::module_& module);
void register_capsules(pybind11::module_& module);

}  // namespace hdicore::bindings
