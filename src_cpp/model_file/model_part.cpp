// model_file/model_part.cpp: arrays by their names
// SPDX-License-Identifier: BSD-3-Clause
#include "model_file/model_part.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "base/lazily_checked.hpp"
#include "base/refusal.hpp"
#include "calibrated/stored_calibration.hpp"
#include "scoring/scorer.hpp"

namespace hdicore {
namespace {

constexpr const char* misfit = "the calibration does not fit the folds of the model";

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

    // With one axis, or rows of so many columns.
    template <class T>
    Array<T> array(const std::string& name, std::size_t n_columns = 0) {
        return name_source(name, [&] {
            const Tensor& found = tensor(name, n_columns == 0 ? 1 : 2);
            if (n_columns > 0 && found.shape[1] != n_columns) {
                refuse("must have " + std::to_string(n_columns) + " columns");
            }
            return file_.array<T>(found);
        });
    }

    // An array of a narrow or a wide type.
    template <class Narrow, class Wide, class Held>
    void either(const std::string& name, Held& held) {
        name_source(name, [&] {
            const Tensor& found = tensor(name, 1);
            if (found.type == type_name<Narrow>()) {
                held = file_.array<Narrow>(found);
            } else {
                held = file_.array<Wide>(found);
            }
        });
    }

    Nodes nodes() {
        return name_source("nodes", [&]() -> Nodes {
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
    return name_source(name, [&] {
        Group group(file, name);
        Nodes nodes = group.nodes();
        auto tree_offsets = group.array<offset_t>("tree_offsets");
        auto leaf_nodes = group.array<std::int32_t>("leaf_nodes");
        group.require_none();
        return Forest(std::move(nodes), std::move(tree_offsets), std::move(leaf_nodes), n_features);
    });
}

LeafIndex read_index(const TensorFile& file, const std::string& name) {
    return name_source(name, [&] {
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

// The forests of folds, or the trees that did not draw each row left out, and the scores of rows.
void read_folds(const TensorFile& file, const std::string& prefix, const ModelFacts& facts,
                const StoredCalibration& stored, CalibratedForest& part) {
    const std::size_t k = stored.levels.size();
    Group group(file, prefix + "calibration");
    const auto own_sizes = group.array<std::int64_t>("sizes");
    const auto scores = group.array<double>("scores", k);
    Array<double> weights;
    if (group.has("weights")) {
        weights = group.array<double>("weights", k);
        if (weights.size() != scores.size()) refuse("weights must be as many as scores");
    }
    // Those below 0 become too large.
    const std::vector<std::size_t> sizes(own_sizes.view().begin(), own_sizes.view().end());
    std::vector<double> needed;
    for (const CalibratedLevel& level : stored.levels) needed.push_back(level.q_hat);
    part.cross.emplace(sizes, Matrix(scores.data(), scores.size() / k, k),
                       Matrix(weights.data(), weights.size() / k, k), needed, stored.postprocess());

    if (stored.method == Method::jackknife_plus) {
        const std::string name = prefix + "jackknife";
        part.of_draws = read_index(file, name + ".index");
        check_same_trees(part.forest, *part.of_draws);
        part.drawn = Group(file, name).array<std::uint8_t>("drawn", part.forest.n_trees());
        const bool is_one_each = part.drawn.size() == sizes.size() * part.forest.n_trees();
        if (!is_one_each || part.of_draws->n_outputs() != 1) refuse(misfit);
        return;
    }
    if (sizes.size() != facts.n_folds) refuse(misfit);
    for (std::size_t f = 0; f < facts.n_folds; ++f) {
        const std::string name = "fold" + std::to_string(f) + ".";
        CalibratedForest fold = read_part(file, name, ModelFacts::read(file, name));
        if (fold.cross || fold.index->n_outputs() != 1) refuse(misfit);
        if (!fold.calibration) {
            const PostProcess none(stored.low, stored.high, false, std::nullopt, {});
            fold.calibration.emplace(Calibration{stored.levels, none});
            for (CalibratedLevel& level : fold.calibration->levels) level.q_hat = 0;
        }
        if (!have_same_coverages(*fold.calibration, *part.calibration)) refuse(misfit);
        part.folds.push_back(std::move(fold));
    }
}

void read_residuals(const TensorFile& file, const std::string& prefix, Family family,
                    CalibratedForest& part) {
    part.residuals = read_index(file, prefix + "centred.index");
    check_same_trees(part.forest, *part.residuals);
    part.centres = Group(file, prefix + "centred").array<double>("leaf_means");
    if (part.residuals->n_outputs() != 1 || part.centres.size() != part.forest.n_leaves()) {
        refuse("the residuals do not fit the forest");
    }
    if (family != Family::stacked) return;
    const auto share = Group(file, prefix + "mean").array<double>("share");
    if (share.size() != 1 || !(share[0] >= 0 && share[0] <= 1)) refuse("share must be in [0, 1]");
    part.share = share[0];
    std::vector<double> centres(part.centres.view().begin(), part.centres.view().end());
    for (double& centre : centres) centre *= 1 - part.share;
    part.centres = Array(std::move(centres));
}

}  // namespace

bool have_same_coverages(const Calibration& a, const Calibration& b) {
    return std::ranges::equal(a.levels, b.levels, {}, &CalibratedLevel::coverage,
                              &CalibratedLevel::coverage);
}

CalibratedForest read_part(const TensorFile& file, const std::string& prefix,
                           const ModelFacts& facts) {
    CalibratedForest part{
        .forest = read_forest(file, prefix + "forest", facts.n_features),
        .index = std::make_shared<const LeafIndex>(read_index(file, prefix + "index")),
        .rounds_labels = !facts.feature_names.empty()};
    const LeafIndex& index = *part.index;
    check_same_trees(part.forest, index);
    if (!facts.moved && index.max_atoms() > facts.n_training_rows) {
        refuse("leaves hold more distinct targets than there were training rows");
    }
    if (facts.scalar_output && index.n_outputs() != 1) {
        refuse("scalar_output must be false for an index of several outputs");
    }
    if (facts.n_target_names && *facts.n_target_names != index.n_outputs()) {
        refuse("it names " + std::to_string(*facts.n_target_names) + " targets of " +
               std::to_string(index.n_outputs()));
    }
    Group group(file, prefix + "calibration");
    if (!group.has("numbers")) {
        if (facts.n_folds > 0) refuse(misfit);
        return part;
    }
    const auto numbers = group.array<double>("numbers");
    auto stored =
        name_source("calibration", [&] { return StoredCalibration::read(numbers.view()); });
    if ((stored.method == Method::cv_plus) != (facts.n_folds > 0)) refuse(misfit);
    if (index.n_outputs() != 1) refuse("the calibration does not fit the outputs of the model");
    if (stored.groups && stored.groups->feature.value_or(0) >= part.forest.n_features()) {
        refuse("the feature of groups must be one of the model");
    }
    part.calibration.emplace(Calibration{stored.levels, stored.postprocess()});
    part.groups = std::move(stored.groups);
    if (stored.is_by_folds()) {
        read_folds(file, prefix, facts, stored, part);
    } else if (stored.family != Family::raw) {
        read_residuals(file, prefix, stored.family, part);
    }
    return part;
}

}  // namespace hdicore
