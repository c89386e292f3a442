// build_leaf_index.hpp: what the class LeafIndex is built from, in Python
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pybind11/pybind11.h>

#include "bound_classes.hpp"

namespace hdicore::bindings {

BoundIndex from_numbers(const pybind11::object& leaves, const pybind11::object& y,
                        const pybind11::object& event, const pybind11::object& counts,
                        const pybind11::object& sample_weight, const pybind11::object& n_leaves,
                        bool keep_row_weights, bool pooled,
                        const pybind11::object& max_samples_leaf, const pybind11::object& seed,
                        const pybind11::object& n_threads);

BoundIndex from_leaves(const pybind11::object& leaves, const pybind11::object& y,
                       const pybind11::object& event, const pybind11::object& counts,
                       const pybind11::object& sample_weight, bool keep_row_weights, bool pooled,
                       const pybind11::object& max_samples_leaf, const pybind11::object& seed,
                       const pybind11::object& n_threads);

// `blocks` is iterated as often as the builder wants the trees; a callable is called each time.
BoundIndex from_blocks(const pybind11::object& blocks, const pybind11::object& y,
                       const pybind11::object& n_leaves, const pybind11::object& event,
                       const pybind11::object& sample_weight, bool keep_row_weights, bool pooled,
                       const pybind11::object& max_samples_leaf, const pybind11::object& seed,
                       const pybind11::object& n_threads);

}  // namespace hdicore::bindings
