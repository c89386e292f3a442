// model_file/facts.cpp: what a model consists of, by its facts and by its arrays
// SPDX-License-Identifier: BSD-3-Clause
#include "model_file/facts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include "base/refusal.hpp"
#include "model_file/stored_calibration.hpp"

namespace hdicore {
namespace {

std::vector<std::string> names_of(const Json& json) {
    std::vector<std::string> names;
    if (json.is_null()) return names;
    for (const Json& name : json.items()) names.push_back(name.text());
    return names;
}

// Refuses columns whose features are not the numbers that they hold.
void check_encoder(const Json& json, const std::vector<std::string>& feature_names) {
    if (json.is_null()) return;
    std::vector<std::string> names;
    for (const Json& column : items(entries(json, {"columns", "ids"}), "columns")) {
        const Members members = column.members();
        if (!members.contains("name") || !members.contains("kind")) {
            refuse("a column must have a name and a kind");
        }
        const std::string kind = text(members, "kind");
        names.push_back(text(members, "name"));
        if (kind == "number" || kind == "boolean") continue;
        refuse("the file holds a model of tables whose column " + printable(names.back()) +
               " is a " + printable(kind) +
               ": only columns of numbers and booleans are read from C");
    }
    if (names != feature_names) refuse("the encoder does not fit the features of the model");
}

std::optional<Json> object_or_null(const Members& members, const char* name) {
    return is_there(members, name) ? std::optional(members.at(name)) : std::nullopt;
}

bool is_digest(const std::string& text) {
    return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// Takes away the versions of a whole model.
void take_versions(Members& facts) {
    for (const char* name : {"format_version", "hdicore", "scikit_learn"}) {
        const auto version = facts.extract(name);
        if (version.empty()) refuse(std::string("the fact ") + name + " is missing");
        if (name == std::string_view("format_version")) continue;
        const std::string written = version.mapped().text();
        // Bytes of UTF-8 that begin a character.
        const auto n = std::ranges::count_if(written, [](char c) { return (c & 0xc0) != 0x80; });
        if (n < 1 || n > 100) refuse(std::string(name) + " is no version");
    }
}

using Names = std::span<const std::string_view>;
constexpr std::string_view itself[] = {""};
constexpr std::string_view of_forest[] = {"nodes", "tree_offsets", "leaf_nodes"};
constexpr std::string_view of_index[] = {"leaf_offsets", "atom_offsets", "atoms",
                                         "tree_begin",   "leaf_begin",   "ranks",
                                         "units",        "copies",       "seen"};
constexpr std::string_view of_training[] = {"X", "y", "sample_weight", "counts"};
constexpr std::string_view of_centred[] = {"leaf_means"};
constexpr std::string_view of_jackknife[] = {"drawn"};

enum class Presence { never, optional, always };
Presence always_if(bool condition) {
    return condition ? Presence::always : Presence::never;
}

// Arrays of one group of names.
struct KnownGroup {
    std::string_view name;
    Names arrays;
    Presence presence;
};

void check_reference(const Json& json, FactArrays arrays, std::uint64_t n_features) {
    const Members members =
        entries(json, {"rows", "importance", "mean", "sd", "categorical", "scale", "threshold"});
    const auto rows = arrays.take<float>("rows", members.at("rows"), {n_features});
    if (std::ranges::any_of(rows.view(), [](float x) { return std::isinf(x); })) {
        refuse("the rows of a reference must be without infinity");
    }
    for (const char* name : {"importance", "mean", "sd"}) {
        const auto values = arrays.take(name, members.at(name));
        const bool is_signed = name == std::string_view("mean");
        if (values.size() != n_features || !all_finite(values.view()) ||
            (!is_signed && std::ranges::min(values.view()) < 0)) {
            refuse(std::string(name) + " of a reference must be a number of each feature");
        }
    }
    for (const Json& feature : items(members, "categorical")) {
        if (feature.whole() >= n_features) refuse("a reference must have features that it has");
    }
    const double scale = real(members, "scale"), threshold = not_negative(members, "threshold");
    if (!(scale > 0) || std::isinf(scale) || std::isinf(threshold)) {
        refuse("scale and threshold of a reference must be finite and not negative");
    }
    arrays.require_none();
}

void check_range(const TensorFile& file, const std::string& name, std::uint64_t n_features) {
    const Tensor& found = file.tensors.at(name);
    if (found.shape != std::vector<std::uint64_t>{2, n_features}) {
        refuse(name + " must have two rows of as many numbers as there are features");
    }
    const auto range = file.array<float>(found);
    for (std::size_t i = 0; i < n_features; ++i) {
        const float low = range[i], high = range[n_features + i];
        if (std::isnan(low) && std::isnan(high)) continue;
        if (std::isfinite(low) && std::isfinite(high) && low <= high) continue;
        refuse(name +
               " must hold finite numbers, the least not above the greatest, or NaN for both");
    }
}

// Refuses an array that is there and has another type or shape.
void check_shape(const TensorFile& file, const std::string& name,
                 std::initializer_list<std::string_view> types,
                 const std::vector<std::uint64_t>& shape) {
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end()) return;
    const bool has_type = std::ranges::find(types, found->second.type) != types.end();
    if (has_type && found->second.shape == shape) return;
    refuse("the tensor " + printable(name) + " has another type or shape");
}

void check_training(const TensorFile& file, const std::string& prefix, const ModelFacts& facts,
                    const FurtherArrays& further) {
    const std::uint64_t n = facts.n_training_rows;
    const auto has = [&](const char* name) { return file.tensors.contains(prefix + name); };
    const bool has_rows = has("training.X");
    for (const char* name : {"training.y", "training.sample_weight", "training.counts"}) {
        const bool is_needed = has_rows && name == std::string_view("training.y");
        if (is_needed ? !has(name) : has(name) && !has_rows) {
            refuse("the training rows must have X and y");
        }
    }
    std::vector<std::uint64_t> of_targets{n};
    if (!facts.scalar_output) of_targets.push_back(further.n_outputs);
    const auto n_features = static_cast<std::uint64_t>(facts.n_features);
    check_shape(file, prefix + "training.X", {"F32"}, {n, n_features});
    check_shape(file, prefix + "training.y", {"F64"}, of_targets);
    check_shape(file, prefix + "training.sample_weight", {"F64"}, {n});
    check_shape(file, prefix + "training.counts", {"U8", "U16", "U32", "U64"},
                {n, further.n_trees});
    check_shape(file, prefix + "jackknife.drawn", {"U8"}, {further.n_left_out, further.n_trees});
}

// Groups of a model, of whose mean the facts are `mean`.
std::vector<KnownGroup> known_groups(const ModelFacts& facts, const FurtherArrays& further) {
    const bool is_stacked = further.family == "stacked";
    bool has_trees = false;
    if (facts.parts.mean) {
        const Members mean = entries(*facts.parts.mean, {"share", "boosted"});
        real(mean, "share");
        has_trees = is_there(mean, "boosted");
        if (has_trees) {
            const Members boosted = entries(mean.at("boosted"), {"baseline", "low", "high"});
            for (const char* name : {"baseline", "low", "high"}) real(boosted, name);
        }
    }
    if (is_stacked != facts.parts.mean.has_value()) {
        refuse("the calibration does not fit the mean of the model");
    }
    const Presence residuals = always_if(!further.family.empty());
    const Presence objects = further.is_whole ? Presence::optional : Presence::never;
    const Presence left_out = always_if(further.n_left_out > 0);
    return {{"forest", of_forest, Presence::always},
            {"index", of_index, Presence::always},
            {"feature_range", itself, Presence::always},
            {"training", of_training, Presence::optional},
            {"residuals", of_index, residuals},
            {"centred", of_centred, residuals},
            {"mean_forest", of_forest, always_if(has_trees)},
            {"mean_values", itself, always_if(has_trees)},
            {"mean_line", itself, always_if(has_trees)},
            {"inbag", of_index, left_out},
            {"jackknife", of_jackknife, left_out},
            {"objects", itself, objects}};
}

// Whether a name is of an output or a fold, whose arrays are checked with its facts.
bool is_of_part(const std::string& name, const ModelFacts& facts) {
    const auto begins = [&](const char* kind, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
            if (name.starts_with(kind + std::to_string(i) + ".")) return true;
        }
        return false;
    };
    return begins("output", facts.parts.outputs.size()) || begins("fold", facts.parts.folds.size());
}

}  // namespace

ModelFacts ModelFacts::read(const Json& json, bool is_whole) {
    Members found = json.members();
    if (is_whole) take_versions(found);
    const Members members = entries(
        std::move(found),
        {"weights", "n_training_rows", "allow_nan", "matches_forest", "training_digest",
         "n_features", "feature_names", "target_names", "scalar_output", "counts_are_weighted",
         "encoder", "steps", "calibration", "mean", "boxes", "reference", "folds", "outputs"});
    const std::string weights = text(members, "weights");
    if (weights != "all" && weights != "inbag" && weights != "oob" && weights != "monotonic") {
        refuse("weights must be all, inbag, oob or monotonic, got " + printable(weights));
    }
    ModelFacts facts{weights == "monotonic",
                     whole(members, "n_training_rows"),
                     truth(members, "allow_nan"),
                     static_cast<std::int64_t>(whole(members, "n_features")),
                     of(members, "feature_names", names_of),
                     truth(members, "scalar_output"),
                     of(members, "target_names", names_of).size(),
                     {object_or_null(members, "calibration"), object_or_null(members, "mean"),
                      object_or_null(members, "boxes"), object_or_null(members, "reference"),
                      items(members, "outputs"), items(members, "folds")}};
    for (const char* name : {"matches_forest", "counts_are_weighted"}) truth(members, name);
    if (!is_digest(text(members, "training_digest"))) {
        refuse("training_digest must be 32 hexadecimal digits");
    }
    const bool has_names = !members.at("feature_names").is_null();
    if (has_names && facts.feature_names.size() != static_cast<std::size_t>(facts.n_features)) {
        refuse("it names " + std::to_string(facts.feature_names.size()) + " features of " +
               std::to_string(facts.n_features));
    }
    if (!members.at("steps").is_null()) {
        refuse(
            "the file holds a model whose rows come from steps of scikit-learn, which are not "
            "computed from C; fit the forest alone on their result");
    }
    check_encoder(members.at("encoder"), facts.feature_names);
    const auto& [calibration, mean, boxes, reference, outputs, folds] = facts.parts;
    if (boxes.has_value() == outputs.empty()) refuse("boxes must be those of several outputs");
    if (!is_whole && !(outputs.empty() && folds.empty())) {
        refuse("a part of a model must be without folds and outputs");
    }
    return facts;
}

void check_further(const TensorFile& file, const std::string& prefix, const ModelFacts& facts,
                   const FurtherArrays& further) {
    const auto n_features = static_cast<std::uint64_t>(facts.n_features);
    const auto& [calibration, mean, boxes, reference, outputs, folds] = facts.parts;
    const auto inside = [&](const char* group) { return FactArrays(file, prefix + group + "."); };
    const auto check = [&](const char* group, const std::optional<Json>& own, const auto& use) {
        FactArrays arrays = inside(group);
        try {
            own ? use(*own, std::move(arrays)) : arrays.require_none();
        } catch (const std::invalid_argument& error) {
            refuse(std::string(group) + ": " + error.what());
        }
    };
    check("boxes", boxes, [&](const Json& own, FactArrays arrays) {
        check_boxes(own, std::move(arrays), further.n_outputs);
    });
    check("reference", reference, [&](const Json& own, FactArrays arrays) {
        check_reference(own, std::move(arrays), n_features);
    });
    if (!calibration) inside("calibration").require_none();
    const std::vector<KnownGroup> known = known_groups(facts, further);
    std::set<std::string_view> met{"boxes", "reference", "calibration"};
    for (auto at = file.tensors.lower_bound(prefix); at != file.tensors.end(); ++at) {
        if (!at->first.starts_with(prefix)) break;
        if (is_of_part(at->first, facts)) continue;
        const std::string_view name = std::string_view(at->first).substr(prefix.size());
        const std::size_t dot = std::min(name.find('.'), name.size());
        const std::string_view own = dot < name.size() ? name.substr(dot + 1) : "";
        const auto group = std::ranges::find(known, name.substr(0, dot), &KnownGroup::name);
        const bool is_known =
            group == known.end() ? met.contains(name.substr(0, dot)) && dot < name.size()
                                 : group->presence != Presence::never &&
                                       std::ranges::find(group->arrays, own) != group->arrays.end();
        if (!is_known) {
            refuse("it has the tensor " + printable(at->first) +
                   ", which this version does not know, or not in such a model");
        }
        if (group != known.end()) met.insert(group->name);
    }
    for (const KnownGroup& group : known) {
        if (group.presence != Presence::always || met.contains(group.name)) continue;
        refuse("the tensor " + prefix + std::string(group.name) + " is missing");
    }
    check_range(file, prefix + "feature_range", n_features);
    check_training(file, prefix, facts, further);
}

}  // namespace hdicore
