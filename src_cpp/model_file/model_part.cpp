// model_file/model_part.cpp: arrays by their names, and what they answer
// SPDX-License-Identifier: BSD-3-Clause
#include "model_file/model_part.hpp"

#include <cmath>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "base/refusal.hpp"
#include "scoring/scorer.hpp"

namespace hdicore {
namespace {

// Calls make(), and says in errors which part of the file they are of.
template <class Make>
auto of_part(const std::string& name, const Make& make) {
    try {
        return make();
    } catch (const std::invalid_argument& error) {
        throw std::invalid_argument(name + ": " + error.what());
    }
}

// The arrays of a compiled object, each of which must be known.
class Group {
  public:
    Group(const TensorFile& file, const std::string& name) : file_(file), name_(name + ".") {
        const auto& all = file.tensors;
        for (auto at = all.lower_bound(name_); at != all.end(); ++at) {
            if (!at->first.starts_with(name_)) break;
            left_.insert(at->first);
        }
    }

    bool has(const std::string& name) const { return left_.contains(name_ + name); }

    template <class T>
    Array<T> array(const std::string& name) {
        return of_part(name, [&] { return file_.array<T>(tensor(name, 1)); });
    }

    // An array of a narrow or a wide type.
    template <class Narrow, class Wide, class Held>
    void either(const std::string& name, Held& held) {
        of_part(name, [&] {
            const Tensor& found = tensor(name, 1);
            if (found.type == type_name<Narrow>()) {
                held = file_.array<Narrow>(found);
            } else {
                held = file_.array<Wide>(found);
            }
        });
    }

    Nodes nodes() {
        return of_part("nodes", [&]() -> Nodes {
            const Tensor& found = tensor("nodes", 2);
            constexpr std::size_t narrow = sizeof(NarrowNode) / sizeof(std::uint32_t);
            constexpr std::size_t wide = sizeof(WideNode) / sizeof(std::uint32_t);
            if (found.shape[1] == wide) return file_.array<std::uint32_t, WideNode>(found);
            if (found.shape[1] != narrow) refuse("must have 2 or 4 columns");
            return file_.array<std::uint32_t, NarrowNode>(found);
        });
    }

    void require_none() const {
        if (left_.empty()) return;
        refuse("it has the tensor " + printable(*left_.begin()) +
               ", which this version does not know");
    }

  private:
    const Tensor& tensor(const std::string& name, std::size_t n_axes) {
        if (left_.erase(name_ + name) == 0) refuse("the tensor is missing");
        const Tensor& found = file_.tensors.at(name_ + name);
        if (found.shape.size() != n_axes) refuse("must have " + std::to_string(n_axes) + " axes");
        return found;
    }

    const TensorFile& file_;
    std::string name_;
    std::set<std::string> left_;
};

Forest read_forest(const TensorFile& file, const std::string& name, std::int64_t n_features) {
    return of_part(name, [&] {
        Group group(file, name);
        Nodes nodes = group.nodes();
        auto tree_offsets = group.array<offset_t>("tree_offsets");
        auto leaf_nodes = group.array<std::int32_t>("leaf_nodes");
        group.require_none();
        return Forest(std::move(nodes), std::move(tree_offsets), std::move(leaf_nodes), n_features);
    });
}

LeafIndex read_index(const TensorFile& file, const std::string& name) {
    return of_part(name, [&] {
        Group group(file, name);
        LeafIndexArrays arrays;
        arrays.leaf_offsets = group.array<offset_t>("leaf_offsets");
        arrays.atom_offsets = group.array<offset_t>("atom_offsets");
        arrays.atoms = group.array<double>("atoms");
        arrays.tree_begin = group.array<offset_t>("tree_begin");
        arrays.leaf_begin = group.array<std::uint32_t>("leaf_begin");
        group.either<std::uint16_t, rank_t>("ranks", arrays.ranks);
        if (group.has("units")) group.either<std::uint32_t, std::uint64_t>("units", arrays.units);
        if (group.has("copies")) group.either<std::uint8_t, std::uint32_t>("copies", arrays.copies);
        if (group.has("seen")) arrays.leaf_mask = group.array<std::uint64_t>("seen");
        group.require_none();
        return LeafIndex(std::move(arrays));
    });
}

// What a calibration is made of; errors begin with its name.
PartCalibration read_calibration(const TensorFile& file, const std::string& name,
                                 const ModelFacts& facts, Family& family) {
    PartCalibration found;
    const auto at = file.tensors.find(name);
    const char* const misfit = "the calibration does not fit the folds of the model";
    if (at == file.tensors.end()) {
        if (facts.n_folds > 0) refuse(misfit);
        return found;
    }
    of_part("calibration", [&] {
        if (at->second.shape.size() != 1) refuse("must have 1 axis");
        const auto numbers = file.array<double>(at->second);
        auto stored = StoredCalibration::read(numbers.view());
        if ((stored.method == Method::cv_plus) != (facts.n_folds > 0)) {
            refuse(misfit);
        }
        family = stored.family;
        if (stored.is_by_folds()) {
            const bool is_cv = stored.method == Method::cv_plus;
            found.why_not = std::string("they were calibrated by ") +
                            (is_cv ? "cv+" : "jackknife+") +
                            ", and are read from a forest for each of its folds or rows";
        } else if (family == Family::stacked) {
            found.why_not = "the mean of another regressor is in them";
        } else if (stored.groups && !stored.groups->feature) {
            found.why_not = "groups of rows have quantiles of their own, and are no feature";
        } else {
            found.calibration.emplace(Calibration{std::move(stored.levels), stored.postprocess()});
            if (!stored.groups) return;
            auto& [feature, labels, q_hat] = *stored.groups;
            if (*feature >= static_cast<std::size_t>(facts.n_features)) {
                refuse("the feature of groups must be one of the model");
            }
            found.groups.emplace(*feature, std::move(labels), std::move(q_hat));
        }
    });
    return found;
}

}  // namespace

ModelPart::ModelPart(const TensorFile& file, const std::string& prefix, const ModelFacts& facts)
    : forest_(read_forest(file, prefix + "forest", facts.n_features)),
      index_(std::make_shared<const LeafIndex>(read_index(file, prefix + "index"))),
      rounds_labels_(!facts.feature_names.empty()) {
    check_same_trees(forest_, *index_);
    if (!facts.moved && index_->max_atoms() > facts.n_training_rows) {
        refuse("leaves hold more distinct targets than there were training rows");
    }
    if (facts.scalar_output && index_->n_outputs() != 1) {
        refuse("scalar_output must be false for an index of several outputs");
    }
    if (facts.n_target_names && *facts.n_target_names != index_->n_outputs()) {
        refuse("it names " + std::to_string(*facts.n_target_names) + " targets of " +
               std::to_string(index_->n_outputs()));
    }
    Family family = Family::raw;
    stored_ = read_calibration(file, prefix + "calibration.numbers", facts, family);
    if (!stored_.calibration) return;
    if (index_->n_outputs() != 1) refuse("the calibration does not fit the outputs of the model");
    if (family == Family::raw) return;
    residuals_ = read_index(file, prefix + "centred.index");
    check_same_trees(forest_, *residuals_);
    Group centred(file, prefix + "centred");
    leaf_means_ = centred.array<double>("leaf_means");
    if (residuals_->n_outputs() != 1 || leaf_means_.size() != forest_.n_leaves()) {
        refuse("the residuals do not fit the forest");
    }
}

void ModelPart::calibrated(const RowMatrix& rows, std::span<const std::size_t> positions,
                           unsigned n_threads, Matrix<double> results) const {
    const Calibration& calibration = *stored_.calibration;
    const std::size_t k = calibration.levels.size();
    std::vector<double> q_hat;
    const CalibrationGroups* const groups = stored_.groups ? &*stored_.groups : nullptr;
    for (std::size_t i = 0; groups && i < rows.n_rows(); ++i) {
        const double label =
            std::visit([&](const auto& X) { return static_cast<double>(X(i, groups->feature)); },
                       rows.features);
        const double rounded = static_cast<float>(label);
        const std::size_t group = groups->find(rounds_labels_ ? rounded : label);
        for (std::size_t j = 0; j < k; ++j) {
            q_hat.push_back(groups->quantile(group, j, calibration.levels[j].q_hat));
        }
    }
    calibrated_intervals(residuals_ ? *residuals_ : *index_, RoutedRows(forest_, rows), calibration,
                         {.positions = positions,
                          .centres = leaf_means_.view(),
                          .q_hat = {q_hat.data(), q_hat.size() / k, k},
                          .results = results},
                         {.n_threads = n_threads});
}

}  // namespace hdicore
