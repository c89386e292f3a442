// bound_classes.hpp: what objects of Python's classes hold
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <utility>

#include "base/lazily_checked.hpp"
#include "forest/forest.hpp"
#include "index/leaf_index.hpp"
#include "pybind_internals.hpp"

namespace hdicore::bindings {

// Trees or an index; if they come from a file, checked as needed.
template <class Value>
using Engine = std::shared_ptr<const LazilyChecked<Value>>;

template <class Value>
Engine<Value> engine_of(Value value) {
    return std::make_shared<const LazilyChecked<Value>>(std::move(value));
}

struct BoundForest {
    Engine<Forest> engine;

    // For what is checked at once, such as sizes.
    const Forest& current() const noexcept { return engine->current(); }
};

// An index that remembers whether y had one dimension: its results then have no axis for outputs.
struct BoundIndex {
    Engine<LeafIndex> engine;
    bool scalar_output;

    const LeafIndex& current() const noexcept { return engine->current(); }
};

struct BoundScorer {
    pybind11::object forest;
    pybind11::object index;
    Engine<Forest> forest_engine;
    BoundIndex bound_index;
};

}  // namespace hdicore::bindings

namespace pybind11::detail {

template <>
class type_caster<hdicore::bindings::BoundForest>
    : public hdicore::bindings::InitialisedCaster<hdicore::bindings::BoundForest> {};
template <>
class type_caster<hdicore::bindings::BoundIndex>
    : public hdicore::bindings::InitialisedCaster<hdicore::bindings::BoundIndex> {};
template <>
class type_caster<hdicore::bindings::BoundScorer>
    : public hdicore::bindings::InitialisedCaster<hdicore::bindings::BoundScorer> {};

}  // namespace pybind11::detail
