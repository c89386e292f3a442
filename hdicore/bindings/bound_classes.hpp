// bound_classes.hpp: what objects of Python's classes hold
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>
#include <utility>

#include "base/lazily_checked.hpp"
#include "calibrated/calibrated_scorer.hpp"
#include "calibrated/cross_calibration.hpp"
#include "calibrated/distribution.hpp"
#include "calibrated/groups.hpp"
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

// Objects of what is calibrated keep what they were made of, to be pickled.
struct BoundPostProcess {
    PostProcess engine;
    pybind11::tuple made_of;
};

struct BoundCross {
    CrossCalibration engine;
    pybind11::tuple made_of;
};

struct BoundGroups {
    CalibrationGroups engine;
    pybind11::tuple made_of;
};

struct BoundDistribution {
    PredictiveDistribution engine;
    pybind11::tuple made_of;
};

struct BoundCalibrated {
    const BoundScorer* scorer;  // that made_of keeps
    Calibration calibration;
    pybind11::array_t<double> centres;  // none: empty
    pybind11::tuple made_of;
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
template <>
class type_caster<hdicore::bindings::BoundPostProcess>
    : public hdicore::bindings::InitialisedCaster<hdicore::bindings::BoundPostProcess> {};
template <>
class type_caster<hdicore::bindings::BoundCross>
    : public hdicore::bindings::InitialisedCaster<hdicore::bindings::BoundCross> {};
template <>
class type_caster<hdicore::bindings::BoundGroups>
    : public hdicore::bindings::InitialisedCaster<hdicore::bindings::BoundGroups> {};
template <>
class type_caster<hdicore::bindings::BoundDistribution>
    : public hdicore::bindings::InitialisedCaster<hdicore::bindings::BoundDistribution> {};
template <>
class type_caster<hdicore::bindings::BoundCalibrated>
    : public hdicore::bindings::InitialisedCaster<hdicore::bindings::BoundCalibrated> {};

}  // namespace pybind11::detail
