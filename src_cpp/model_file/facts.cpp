// model_file/facts.cpp: numbers at fixed places, and names; what only Python reads is known by name
// SPDX-License-Identifier: BSD-3-Clause
#include "model_file/facts.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "base/refusal.hpp"

namespace hdicore {
namespace {

// Places in the array `numbers`.
namespace place {
enum Place {
    features,
    training_rows,
    weights,
    allow_nan,
    matches_forest,
    scalar_output,
    counts_are_weighted,
    folds,
    outputs,
    n_places
};
}  // namespace place
constexpr std::int64_t monotonic = 3;  // the last of `weights`
constexpr std::array<std::int64_t, place::n_places> most = {
    INT32_MAX, INT64_MAX, monotonic, 1, 1, 1, 1, INT32_MAX, INT32_MAX};

// Arrays of a model; a name that ends with a dot is that of a group.
constexpr std::string_view known[] = {
    "numbers", "feature_names", "target_names", "feature_range", "training_digest", "forest.",
    "index.",  "training.",     "calibration.", "centred.",      "mean.",           "jackknife.",
    "boxes.",  "reference.",    "encoder",      "steps",         "not_in_c"};
constexpr std::string_view of_file[] = {"digests", "objects"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
    return std::ranges::any_of(names, [&](std::string_view own) {
        return own.ends_with('.') ? name.starts_with(own) : name == own;
    });
}

// Whether a name is of one of n parts of a kind: fold0., fold1., ...
bool is_of_part(std::string_view name, std::string_view kind, std::size_t n) {
    const std::size_t dot = name.find('.');
    if (!name.starts_with(kind) || dot == name.npos) return false;
    const std::string_view digits = name.substr(kind.size(), dot - kind.size());
    std::size_t part = n;
    std::from_chars(digits.data(), digits.data() + digits.size(), part);
    return part < n && digits == std::to_string(part);
}

void require_known(const TensorFile& file, const std::string& prefix, const ModelFacts& facts) {
    for (auto at = file.tensors.lower_bound(prefix); at != file.tensors.end(); ++at) {
        if (!at->first.starts_with(prefix)) break;
        const std::string_view name = std::string_view(at->first).substr(prefix.size());
        const bool is_whole = prefix.empty();
        if (is_one_of(known, name) || (is_whole && is_one_of(of_file, name)) ||
            (is_whole && (is_of_part(name, "fold", facts.n_folds) ||
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
    for (std::size_t at = 0; at < all.size();) {
        const std::size_t end = all.find('\0', at);
        if (end == all.npos) refuse(name + " must be texts that end with a zero");
        found.push_back(all.substr(at, end - at));
        at = end + 1;
    }
    return found;
}

}  // namespace

ModelFacts ModelFacts::read(const TensorFile& file, const std::string& prefix) {
    const auto numbers = array<std::int64_t>(file, prefix + "numbers");
    if (numbers.size() != place::n_places)
        refuse("numbers must be " + std::to_string(place::n_places));
    for (std::size_t i = 0; i < place::n_places; ++i) {
        if (numbers.view()[i] >= 0 && numbers.view()[i] <= most[i]) continue;
        refuse("the number " + std::to_string(i) + " of a model is out of range");
    }
    const auto number = [&](place::Place at) { return numbers.view()[at]; };
    const auto size = [&](place::Place at) { return static_cast<std::size_t>(number(at)); };
    ModelFacts facts{number(place::features),
                     static_cast<std::uint64_t>(number(place::training_rows)),
                     number(place::weights) == monotonic,
                     number(place::allow_nan) == 1,
                     number(place::scalar_output) == 1,
                     size(place::folds),
                     size(place::outputs),
                     texts(file, prefix + "feature_names"),
                     std::nullopt};
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
    require_known(file, prefix, facts);
    if (file.tensors.contains(prefix + "not_in_c")) {
        refuse("the file holds a model " + printable(bytes_of(file, prefix + "not_in_c"), 300));
    }
    return facts;
}

}  // namespace hdicore
