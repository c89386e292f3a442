// model_file/stored_calibration.cpp: what is not computed here is checked all the same
// SPDX-License-Identifier: BSD-3-Clause
#include "model_file/stored_calibration.hpp"

#include <algorithm>
#include <cmath>
#include <compare>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "base/refusal.hpp"

namespace hdicore {

namespace {

// The distribution that bases of a calibration are of.
struct BaseOf {
    std::string family;
    std::uint64_t min_samples_leaf = 0;

    friend auto operator<=>(const BaseOf&, const BaseOf&) = default;
};

// Kind and level of a base.
std::pair<Kind, double> base_of(const Json& json, std::set<BaseOf>& found) {
    constexpr std::pair<std::string_view, Kind> kinds[] = {
        {"hdi", Kind::hdi}, {"equal_tailed", Kind::equal_tailed}, {"averaged", Kind::averaged}};
    const Members members = entries(json, {"family", "kind", "level", "min_samples_leaf"});
    const BaseOf of{text(members, "family"), whole(members, "min_samples_leaf")};
    if (of.family != "raw" && of.family != "centred" && of.family != "stacked") {
        refuse("family must be raw, centred or stacked, got " + printable(of.family));
    }
    if (of.min_samples_leaf == 0) refuse("min_samples_leaf must be positive");
    found.insert(of);
    const std::string kind = text(members, "kind");
    for (const auto& [name, own] : kinds) {
        if (kind == name) return {own, coverage_of(members, "level")};
    }
    refuse("kind must be one of intervals, got " + printable(kind));
}

bool is_share(const Json& number) {
    const double own = real_of(number);
    return own >= 0 && own <= 1;
}

void check_cross_check(const Members& level, const char* name) {
    if (!is_there(level, name)) return;
    Members found = level.at(name).members();
    if (name == std::string_view("later")) {
        if (!found.contains("blocks")) refuse("the fact blocks is missing");
        const std::vector<Json> blocks = items(found, "blocks");
        if (blocks.empty() || !std::ranges::all_of(blocks, is_share)) {
            refuse("blocks must be one or more numbers in [0, 1]");
        }
        found.erase("blocks");
    }
    const Members members = entries(
        std::move(found), {"coverage", "standard_error", "mean_width", "thirds", "worst_of_five"});
    share(members, "coverage");
    share(members, "worst_of_five");
    not_negative(members, "standard_error");
    not_negative(members, "mean_width");
    const std::vector<Json> thirds = items(members, "thirds");
    if (thirds.size() != 3) refuse("thirds must be three");
    for (const Json& third : thirds) {
        if (!third.is_null() && !is_share(third)) refuse("thirds must be in [0, 1]");
    }
}

// The coverage of a level, whose other entries are not read.
double check_level(const Members& members) {
    not_negative(members, "mean_width");
    share(members, "realised");
    check_cross_check(members, "cross_check");
    return coverage_of(members, "coverage");
}

// The coverages of levels of which nothing else is read.
std::vector<double> plain_levels_of(const Members& members) {
    std::vector<double> coverages;
    for (const Json& json : items(members, "levels")) {
        coverages.push_back(
            check_level(entries(json, {"coverage", "mean_width", "realised", "cross_check"})));
    }
    return coverages;
}

void check_coverages(std::span<const double> coverages) {
    if (coverages.empty() || !ascend(coverages)) refuse("coverages must be one or more and ascend");
}

CalibratedLevel level_of(const Json& json, std::set<BaseOf>& found) {
    const Members members = entries(json, {"coverage", "mean_width", "realised", "cross_check",
                                           "base", "q_hat", "interval_score", "later"});
    const auto [kind, share] =
        of(members, "base", [&](const Json& own) { return base_of(own, found); });
    not_negative(members, "interval_score");
    check_cross_check(members, "later");
    CalibratedLevel level{check_level(members), kind, share, real(members, "q_hat")};
    if (!(level.q_hat > -std::numeric_limits<double>::infinity())) {
        refuse("q_hat must be a number or infinite");
    }
    return level;
}

PostProcess postprocess_of(const Json& json, FactArrays& arrays, const std::string& inside = "") {
    const Members members = entries(json, {"low", "high", "lattice", "clip", "targets"});
    std::optional<Lattice> lattice;
    if (const Json& own = members.at("lattice"); !own.is_null()) {
        const Members points = entries(own, {"base", "step", "slack"});
        lattice = {real(points, "base"), real(points, "step"), real(points, "slack")};
    }
    Array<double> targets;
    if (const Json& own = members.at("targets"); !own.is_null()) {
        targets = arrays.take(inside + "postprocess.targets", own);
    }
    return {real(members, "low"), real(members, "high"), truth(members, "clip"), lattice,
            targets.view()};
}

// Nothing if the groups are no column of the rows.
std::optional<CalibrationGroups> groups_of(const Json& json, FactArrays& arrays,
                                           std::size_t n_levels, std::int64_t n_features) {
    const Members members = entries(json, {"labels", "counts", "q_hat", "coverage", "feature"});
    std::vector<std::optional<double>> labels;
    std::set<std::string> distinct;
    for (const Json& label : items(members, "labels")) {
        // A text is no number, and so the label of no row.
        constexpr double nan = std::numeric_limits<double>::quiet_NaN();
        labels.push_back(label.is_null()   ? std::nullopt
                         : label.is_text() ? std::optional(nan)
                                           : std::optional(real_of(label)));
        const std::optional<double>& own = labels.back();
        const bool is_number = own && !std::isnan(*own);
        const bool is_new = is_number
                                ? std::ranges::count(labels, own) == 1
                                : label.is_object() || distinct.insert(label.sorted_text()).second;
        if (!is_new) refuse("the labels of groups must be distinct");
    }
    const auto counts = arrays.take<std::int64_t>("groups.counts", members.at("counts"));
    const auto q_hat = arrays.take("groups.q_hat", members.at("q_hat"), {n_levels});
    if (counts.size() != labels.size() || q_hat.size() != counts.size() * n_levels) {
        refuse("groups must have counts and quantiles for each label");
    }
    if (std::ranges::any_of(counts.view(), [](std::int64_t n) { return n < 1; })) {
        refuse("the counts of groups must be positive");
    }
    const auto coverage = arrays.take("groups.coverage", members.at("coverage"), {n_levels});
    const auto is_in_range = [](double share) { return share >= 0 && share <= 1; };
    if (coverage.size() != q_hat.size() || !std::ranges::all_of(coverage.view(), is_in_range)) {
        refuse("the coverage of groups must be shares, as many as their quantiles");
    }
    std::vector<double> quantiles(q_hat.view().begin(), q_hat.view().end());
    for (const double q : quantiles) {
        if (std::isinf(q)) refuse("the quantiles of groups must be finite or NaN");
    }
    if (members.at("feature").is_null()) return std::nullopt;
    const std::uint64_t feature = whole(members, "feature");
    if (feature >= static_cast<std::uint64_t>(n_features)) {
        refuse("the groups of the calibration must be those of a feature");
    }
    return CalibrationGroups(feature, std::move(labels), std::move(quantiles));
}

void check_distribution(const Json& json, FactArrays& arrays) {
    const Members members = entries(json, {"levels", "scores", "postprocess"});
    const auto levels = arrays.take("distribution.levels", members.at("levels"));
    const auto scores = arrays.take("distribution.scores", members.at("scores"));
    postprocess_of(members.at("postprocess"), arrays, "distribution.");
    if (!ascend(levels.view()) || !(levels[0] > 0 && levels.view().back() < 1)) {
        refuse("levels of the distribution must ascend between 0 and 1");
    }
    if (scores.size() != levels.size() || has_nan(scores.view()) ||
        !std::ranges::is_sorted(scores.view())) {
        refuse("scores of the distribution must be numbers, as many as levels, and ascend");
    }
}

void check_step(const Json& json) {
    const Members members = entries(json, {"method", "window", "rate", "n", "coverage", "q_hat"});
    const std::string method = text(members, "method");
    if (method != "rolling" && method != "aci") refuse("method must be rolling or aci");
    for (const char* name : {"window", "n"}) whole(members, name);
    real(members, "rate");
    for (const char* name : {"coverage", "q_hat"}) {
        for (const Json& number : items(members, name)) real_of(number);
    }
}

void check_recent(const Json& json, FactArrays& arrays, std::size_t n_levels) {
    const Members members = entries(json, {"scores", "misses", "history"});
    if (has_nan(arrays.take("recent.scores", members.at("scores"), {n_levels}).view())) {
        refuse("the latest scores must be numbers");
    }
    const std::vector<Json> misses = items(members, "misses");
    const auto fits = [](const Json& own) { return real_of(own) >= -1 && real_of(own) <= 2; };
    if (misses.size() != n_levels || !std::ranges::all_of(misses, fits)) {
        refuse("the shares of misses must be numbers from -1 to 2, one for each coverage");
    }
    for (const Json& step : items(members, "history")) check_step(step);
}

// Scores of the rows of each fold, or their weights.
std::vector<std::uint64_t> check_scores(const Members& members, const char* name,
                                        FactArrays& arrays, std::size_t n_levels) {
    const bool are_weights = name == std::string_view("weights");
    std::vector<std::uint64_t> lengths;
    for (const Json& length : items(members, name)) lengths.push_back(length.whole());
    const auto values = arrays.take_joined(name, lengths, {n_levels});
    if (!all_finite(values.view())) refuse(std::string(name) + " must be finite");
    const double* row = values.data();
    for (const std::uint64_t length : lengths) {
        for (std::size_t i = 0; i < length * n_levels; ++i) {
            const bool fits =
                are_weights ? row[i] > 0 : i < n_levels || row[i] >= row[i - n_levels];
            if (!fits) refuse(are_weights ? "weights must be positive" : "scores must ascend");
        }
        row += length * n_levels;
    }
    return lengths;
}

StoredCalibration read_cross_calibration(const Json& json, const std::string& method,
                                         FactArrays& arrays) {
    const Members members =
        entries(json, {"levels", "scores", "postprocess", "grouped", "method", "weights"});
    const std::vector<double> coverages = plain_levels_of(members);
    check_coverages(coverages);
    postprocess_of(members.at("postprocess"), arrays);
    truth(members, "grouped");
    const auto lengths = check_scores(members, "scores", arrays, coverages.size());
    if (lengths.size() < 2) refuse("scores must be those of two folds or more");
    if (!members.at("weights").is_null() &&
        check_scores(members, "weights", arrays, coverages.size()) != lengths) {
        refuse("weights must be as many as scores in each fold");
    }
    StoredCalibration found;
    found.why_not = "they were calibrated by " + method +
                    ", and are read from a forest for each of its folds or rows";
    (method == "cv+" ? found.n_forests : found.n_left_out) = lengths.size();
    return found;
}

}  // namespace

StoredCalibration StoredCalibration::read(const Json& json, FactArrays arrays,
                                          std::int64_t n_features) {
    const Members all = json.members();
    const auto found_method = all.find("method");
    const std::string method = found_method == all.end() ? "" : found_method->second.text();
    if (method == "cv+" || method == "jackknife+") {
        StoredCalibration cross = read_cross_calibration(json, method, arrays);
        arrays.require_none();
        return cross;
    }
    if (method != "oob" && method != "split") refuse("method must be oob or split");
    const Members members = entries(json, {"method", "levels", "postprocess", "n", "confidence",
                                           "weighted", "groups", "distribution", "recent"});
    std::vector<CalibratedLevel> levels;
    std::vector<double> coverages;
    std::set<BaseOf> found_bases;
    for (const Json& own : items(members, "levels")) {
        levels.push_back(level_of(own, found_bases));
        coverages.push_back(levels.back().coverage);
    }
    check_coverages(coverages);
    if (found_bases.size() > 1) {
        refuse("levels must be of one distribution, that is of one family and min_samples_leaf");
    }
    if (whole(members, "n") == 0) refuse("n must be positive");
    const bool is_weighted = truth(members, "weighted");
    if (!members.at("confidence").is_null()) {
        coverage_of(members, "confidence");
        if (method != "split" || is_weighted) {
            refuse("confidence must be null unless method is split without weights");
        }
    }
    PostProcess postprocess =
        of(members, "postprocess", [&](const Json& own) { return postprocess_of(own, arrays); });
    std::optional<CalibrationGroups> groups;
    const bool has_groups = is_there(members, "groups");
    if (has_groups) groups = groups_of(members.at("groups"), arrays, levels.size(), n_features);
    if (is_there(members, "distribution")) check_distribution(members.at("distribution"), arrays);
    if (is_there(members, "recent")) check_recent(members.at("recent"), arrays, levels.size());
    arrays.require_none();

    StoredCalibration found;
    found.family = found_bases.begin()->family;
    if (found.family == "stacked") {
        found.why_not = "the mean of another regressor is in them";
    } else if (has_groups && !groups) {
        found.why_not = "groups of rows have quantiles of their own, and are no feature";
    } else {
        found.calibration.emplace(Calibration{std::move(levels), std::move(postprocess)});
        found.groups = std::move(groups);
    }
    return found;
}

void check_boxes(const Json& json, FactArrays arrays, std::size_t n_outputs) {
    const Members members = entries(json, {"levels", "q_hat"});
    const std::vector<double> coverages = plain_levels_of(members);
    check_coverages(coverages);
    const auto q_hat = arrays.take("q_hat", members.at("q_hat"), {n_outputs});
    if (q_hat.size() != coverages.size() * n_outputs || has_nan(q_hat.view())) {
        refuse("the quantiles of boxes must be numbers, of each coverage and output");
    }
    arrays.require_none();
}

}  // namespace hdicore
