// model_file/facts.cpp: each entry must be known, as it could change what the others mean
// SPDX-License-Identifier: BSD-3-Clause
#include "model_file/facts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/refusal.hpp"

namespace hdicore {
namespace {

using Members = std::map<std::string, Json>;

// The entries of an object, which must be these.
Members entries(Members found, std::initializer_list<const char*> names) {
    for (const char* name : names) {
        if (!found.contains(name)) refuse(std::string("the fact ") + name + " is missing");
    }
    for (const auto& [name, value] : found) {
        if (std::find(names.begin(), names.end(), name) != names.end()) continue;
        refuse("it has the fact " + printable(name) + ", which this version does not know");
    }
    return found;
}
Members entries(const Json& json, std::initializer_list<const char*> names) {
    return entries(json.members(), names);
}

// Calls read(value) of an entry; errors begin with its name.
template <class Read>
auto of(const Members& members, const char* name, const Read& read) {
    try {
        return read(members.at(name));
    } catch (const std::invalid_argument& error) {
        const std::string why = error.what();
        throw std::invalid_argument(std::string(name) + (why.starts_with("must") ? " " : ": ") +
                                    why);
    }
}

bool truth(const Members& members, const char* name) {
    return of(members, name, [](const Json& json) { return json.truth(); });
}
std::string text(const Members& members, const char* name) {
    return of(members, name, [](const Json& json) { return json.text(); });
}
std::uint64_t whole(const Members& members, const char* name) {
    return of(members, name, [](const Json& json) {
        const std::uint64_t n = json.whole();
        if (n >= std::uint64_t{1} << 63) refuse("must be a whole number below 2**63");
        return n;
    });
}

double real_of(const Json& json) {
    if (!json.is_object()) return json.number();
    const Members members = json.members();
    const auto found = members.find("float");
    const std::string word =
        members.size() == 1 && found != members.end() ? found->second.text() : "";
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (word == "inf") return infinity;
    if (word == "-inf") return -infinity;
    if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
    refuse("must be a number");
}
double real(const Members& members, const char* name) {
    return of(members, name, real_of);
}

std::vector<Json> items(const Members& members, const char* name) {
    return of(members, name, [](const Json& json) { return json.items(); });
}

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

BaseInterval base_of(const Json& json, bool& is_stacked, std::uint64_t& min_samples_leaf) {
    const Members members = entries(json, {"family", "kind", "level", "min_samples_leaf"});
    BaseInterval base;
    const std::string family = text(members, "family");
    if (family == "stacked") {
        is_stacked = true;
    } else if (family != "raw" && family != "centred") {
        refuse("family must be raw, centred or stacked, got " + printable(family));
    }
    base.centred = family != "raw";
    const std::string kind = text(members, "kind");
    if (kind == "hdi") {
        base.kinds = {Kind::hdi};
    } else if (kind == "equal_tailed") {
        base.kinds = {Kind::equal_tailed};
    } else if (kind == "averaged") {
        base.kinds = {Kind::hdi, Kind::equal_tailed};
    } else if (kind == "smoothed_hdi") {
        base.kinds = {Kind::smoothed_hdi};
    } else {
        refuse("kind must be one of intervals, got " + printable(kind));
    }
    base.level = real(members, "level");
    min_samples_leaf = whole(members, "min_samples_leaf");
    if (!(base.level > 0 && base.level < 1)) refuse("level must be in (0, 1)");
    if (min_samples_leaf == 0) refuse("min_samples_leaf must be positive");
    return base;
}

CalibratedLevel level_of(const Json& json, bool& is_stacked, std::uint64_t& min_samples_leaf) {
    const Members members =
        entries(json, {"coverage", "mean_width", "realised", "cross_check", "base", "q_hat",
                       "slope", "unit", "interval_score", "later"});
    const auto base = of(members, "base", [&](const Json& own) {
        return base_of(own, is_stacked, min_samples_leaf);
    });
    CalibratedLevel level{real(members, "coverage"), base, real(members, "q_hat"),
                          real(members, "slope"), real(members, "unit")};
    if (!(level.coverage > 0 && level.coverage < 1)) refuse("coverage must be in (0, 1)");
    if (!(level.q_hat > -std::numeric_limits<double>::infinity())) {
        refuse("q_hat must be a number or infinite");
    }
    if (!(level.slope >= 0 && std::isfinite(level.slope))) {
        refuse("slope must be finite and not negative");
    }
    if (!(level.unit > 0 && std::isfinite(level.unit))) {
        refuse("unit must be finite and positive");
    }
    return level;
}

// An array of numbers, whose length or lengths are in its place among the facts.
Array<double> numbers(const TensorFile& file, const std::string& name, const Json& length,
                      std::size_t n_columns = 0) {
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end()) refuse("the tensor " + printable(name) + " is missing");
    std::vector<std::uint64_t> shape{length.whole()};
    if (n_columns > 0) shape.push_back(n_columns);
    if (found->second.shape != shape)
        refuse("the tensor " + printable(name) + " has another shape");
    return file.array<double>(found->second);
}

PostProcess postprocess_of(const Json& json, const TensorFile& file, const std::string& group) {
    const Members members = entries(json, {"low", "high", "lattice", "clip", "targets"});
    std::optional<Lattice> lattice;
    if (const Json& own = members.at("lattice"); !own.is_null()) {
        const Members points = entries(own, {"base", "step", "slack"});
        lattice = {real(points, "base"), real(points, "step"), real(points, "slack")};
    }
    Array<double> targets;
    if (const Json& own = members.at("targets"); !own.is_null()) {
        targets = numbers(file, group + "postprocess.targets", own);
    }
    return {real(members, "low"), real(members, "high"), truth(members, "clip"), lattice,
            targets.view()};
}

// Nothing if the groups are no column of the rows.
std::optional<CalibrationGroups> groups_of(const Json& json, const TensorFile& file,
                                           const std::string& group, std::size_t n_levels,
                                           std::int64_t n_features) {
    const Members members = entries(json, {"labels", "counts", "q_hat", "feature"});
    CalibrationGroups groups{};
    for (const Json& label : items(members, "labels")) {
        // A text is no number, and so the label of no row.
        constexpr double nan = std::numeric_limits<double>::quiet_NaN();
        groups.labels.push_back(label.is_null()   ? std::nullopt
                                : label.is_text() ? std::optional(nan)
                                                  : std::optional(real_of(label)));
    }
    const Json& length = members.at("q_hat");
    const auto q_hat = numbers(file, group + "groups.q_hat", length, n_levels);
    if (length.whole() != groups.labels.size()) refuse("groups must have quantiles for each label");
    groups.q_hat.assign(q_hat.view().begin(), q_hat.view().end());
    for (const double q : groups.q_hat) {
        if (std::isinf(q)) refuse("the quantiles of groups must be finite or NaN");
    }
    if (members.at("feature").is_null()) return std::nullopt;
    groups.feature = whole(members, "feature");
    if (groups.feature >= static_cast<std::uint64_t>(n_features)) {
        refuse("the groups of the calibration must be those of a feature");
    }
    return groups;
}

}  // namespace

ModelFacts ModelFacts::read(const Json& json, bool whole_model) {
    Members found = json.members();
    for (const char* version : {"format_version", "hdicore", "scikit_learn"}) {
        if (whole_model && found.erase(version) == 0) {
            refuse(std::string("the fact ") + version + " is missing");
        }
    }
    const Members members =
        entries(std::move(found),
                {"weights", "n_training_rows", "allow_nan", "matches_forest", "training_digest",
                 "n_features", "feature_names", "target_names", "scalar_output",
                 "counts_are_weighted", "encoder", "steps", "calibration", "mean", "boxes",
                 "reference", "regions", "folds", "outputs"});
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
                     std::nullopt,
                     items(members, "outputs")};
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
    if (const Json& own = members.at("calibration"); !own.is_null()) facts.calibration = own;
    return facts;
}

StoredCalibration StoredCalibration::read(const Json& json, const TensorFile& file,
                                          const std::string& group, std::int64_t n_features) {
    const Members all = json.members();
    const auto method = all.find("method");
    const std::string name = method == all.end() ? "" : method->second.text();
    if (name == "cv+" || name == "jackknife+") {
        return {std::nullopt, "they were calibrated by " + name +
                                  ", and are read from a forest for each of its folds or rows"};
    }
    if (name != "oob" && name != "split") refuse("method must be oob or split");
    const Members members = entries(json, {"method", "levels", "postprocess", "n", "confidence",
                                           "weighted", "groups", "distribution", "recent"});
    std::vector<CalibratedLevel> levels;
    bool is_stacked = false;
    std::uint64_t first_size = 0;
    for (const Json& own : items(members, "levels")) {
        std::uint64_t size = 0;
        levels.push_back(level_of(own, is_stacked, size));
        if (levels.size() == 1) first_size = size;
        if (size != first_size) refuse("levels must be of trees with one min_samples_leaf");
        if (levels.size() > 1 && !(levels.back().coverage > levels[levels.size() - 2].coverage)) {
            refuse("coverages must ascend");
        }
    }
    if (levels.empty()) refuse("coverages must be one or more");
    if (is_stacked) {
        return {std::nullopt, "the mean of another regressor is in them"};
    }
    PostProcess postprocess = of(members, "postprocess",
                                 [&](const Json& own) { return postprocess_of(own, file, group); });
    std::optional<CalibrationGroups> groups;
    if (const Json& own = members.at("groups"); !own.is_null()) {
        groups = groups_of(own, file, group, levels.size(), n_features);
        if (!groups) {
            return {std::nullopt, "groups of rows have quantiles of their own, and are no feature"};
        }
    }
    return {Calibration{std::move(levels), std::move(postprocess), std::move(groups)}, ""};
}

}  // namespace hdicore
