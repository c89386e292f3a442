// model_file/facts.cpp: numbers at fixed places, and names; what only Python reads is known by name
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/refusal.hpp"
#include "model_file/model_part.hpp"

namespace hdicore {
namespace {

// Arrays of a model, a name that ends with a dot is that of a group; and of a calibration.
constexpr std::string_view known[] = {
    "numbers",    "feature_names", "target_names", "feature_range", "training_digest", "forest.",
    "index.",     "training.",     "centred.",     "mean.",         "jackknife.",      "boxes.",
    "reference.", "encoder",       "steps",        "not_in_c"};
constexpr std::string_view stored[] = {"numbers", "facts",   "recent_scores",
                                       "scores",  "weights", "sizes"};

bool is_known(std::string_view name) {
    const std::string_view own = name.substr(name.find('.') + 1);
    if (name.starts_with("calibration.")) return std::ranges::find(stored, own) != std::end(stored);
    return std::ranges::any_of(known, [&](std::string_view group) {
        return group.ends_with('.') ? name.starts_with(group) : name == group;
    });
}

// Whether a name is of one of n parts of a kind: fold0., fold1., ...
bool is_of_part(std::string_view name, std::string_view kind, std::size_t n) {
    if (!name.starts_with(kind)) return false;
    std::size_t part = n;
    std::from_chars(name.data() + kind.size(), name.data() + name.size(), part);
    return part < n && name.substr(kind.size()).starts_with(std::to_string(part) + ".");
}

void require_known(const TensorFile& file, const std::string& prefix, const ModelFacts& facts) {
    for (auto at = file.tensors.lower_bound(prefix); at != file.tensors.end(); ++at) {
        if (!at->first.starts_with(prefix)) break;
        const std::string_view name = std::string_view(at->first).substr(prefix.size());
        if (is_known(name) || (prefix.empty() && (name == "digests" || name == "objects" ||
                                                  is_of_part(name, "fold", facts.n_folds) ||
                                                  is_of_part(name, "output", facts.n_outputs)))) {
            continue;
        }
        refuse("it has the tensor " + printable(at->first) +
               ", which this version does not know, or not in such a model");
    }
}

template <class T>
Array<T> array(const TensorFile& file, const std::string& name) {
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end()) refuse("the tensor " + name + " is missing");
    if (found->second.shape.size() != 1) refuse(name + " must have one axis");
    return file.array<T>(found->second);
}

// The bytes of a text, or of texts.
std::string bytes_of(const TensorFile& file, const std::string& name) {
    const auto bytes = array<std::uint8_t>(file, name);
    return {bytes.view().begin(), bytes.view().end()};
}

// Each text ends with a zero.
std::vector<std::string> texts(const TensorFile& file, const std::string& name) {
    std::vector<std::string> found;
    if (!file.tensors.contains(name)) return found;
    const std::string all = bytes_of(file, name);
    if (!all.empty() && all.back() != '\0') refuse(name + " must be texts that end with a zero");
    for (std::size_t at = 0; at < all.size(); at += found.back().size() + 1) {
        found.emplace_back(all.c_str() + at);
    }
    return found;
}

}  // namespace

ModelFacts ModelFacts::read(const TensorFile& file, const std::string& prefix) {
    constexpr std::int64_t monotonic = 3;  // the last of the weights
    const auto numbers = array<std::int64_t>(file, prefix + "numbers");
    std::size_t n_read = 0;
    const auto next = [&](std::int64_t most) {
        const std::size_t at = n_read++;
        if (at >= numbers.size()) refuse("numbers of a model are too few");
        if (numbers[at] >= 0 && numbers[at] <= most) return numbers[at];
        refuse("the number " + std::to_string(at) + " of a model is out of range");
    };
    ModelFacts facts{};
    facts.n_features = next(INT32_MAX);
    facts.n_training_rows = static_cast<std::uint64_t>(next(INT64_MAX));
    facts.moved = next(monotonic) == monotonic;
    facts.allow_nan = next(1) == 1;
    next(1);  // whether means are those of the scikit-learn forest
    facts.scalar_output = next(1) == 1;
    next(1);  // whether counts of training rows are weighted
    facts.n_folds = static_cast<std::size_t>(next(INT32_MAX));
    facts.n_outputs = static_cast<std::size_t>(next(INT32_MAX));
    if (n_read != numbers.size()) refuse("numbers of a model are too many");
    facts.feature_names = texts(file, prefix + "feature_names");
    if (file.tensors.contains(prefix + "target_names")) {
        facts.n_target_names = texts(file, prefix + "target_names").size();
    }
    if (file.tensors.contains(prefix + "feature_names") &&
        facts.feature_names.size() != static_cast<std::size_t>(facts.n_features)) {
        refuse("it names " + std::to_string(facts.feature_names.size()) + " features of " +
               std::to_string(facts.n_features));
    }
    if (!prefix.empty() && facts.n_folds + facts.n_outputs > 0) {
        refuse("a part of a model must be without folds and outputs");
    }
    if (file.tensors.contains(prefix + "not_in_c")) {
        refuse("the file holds a model " + printable(bytes_of(file, prefix + "not_in_c"), 300));
    }
    require_known(file, prefix, facts);
    return facts;
}

}  // namespace hdicore
