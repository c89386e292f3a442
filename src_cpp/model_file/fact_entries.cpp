// model_file/fact_entries.cpp: each entry and array must be known: it could change others' meaning
// SPDX-License-Identifier: BSD-3-Clause
#include "model_file/fact_entries.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/refusal.hpp"

namespace hdicore {

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
    if (!json.is_object()) {
        const double value = json.number();
        if (json.is_whole_number() && std::fabs(value) >= 0x1p53) refuse("must be a number");
        return value;
    }
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

double share(const Members& members, const char* name) {
    const double value = real(members, name);
    if (!(value >= 0 && value <= 1)) refuse(std::string(name) + " must be in [0, 1]");
    return value;
}
double not_negative(const Members& members, const char* name) {
    const double value = real(members, name);
    if (!(value >= 0)) refuse(std::string(name) + " must not be negative");
    return value;
}
double coverage_of(const Members& members, const char* name) {
    const double value = real(members, name);
    if (!(value > 0 && value < 1)) refuse(std::string(name) + " must be in (0, 1)");
    return value;
}

bool is_there(const Members& members, const char* name) {
    const Json& json = members.at(name);
    if (json.is_null()) return false;
    if (!json.is_object()) refuse(std::string(name) + " must be null or an object");
    return true;
}

std::vector<Json> items(const Members& members, const char* name) {
    return of(members, name, [](const Json& json) { return json.items(); });
}

bool all_finite(std::span<const double> values) {
    return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
}

bool has_nan(std::span<const double> values) {
    return std::ranges::any_of(values, [](double value) { return std::isnan(value); });
}

bool ascend(std::span<const double> values) {
    const auto at_most = [](double a, double b) { return !(a < b); };
    return !has_nan(values) && std::ranges::adjacent_find(values, at_most) == values.end();
}

FactArrays::FactArrays(const TensorFile& file, const std::string& group)
    : file_(file), group_(group) {
    const auto& all = file.tensors;
    for (auto at = all.lower_bound(group); at != all.end(); ++at) {
        if (!at->first.starts_with(group)) break;
        left_.insert(at->first);
    }
}

Array<double> FactArrays::take_joined(const std::string& name,
                                      std::span<const std::uint64_t> lengths,
                                      std::initializer_list<std::uint64_t> more) {
    std::uint64_t n = 0;
    for (const std::uint64_t length : lengths) {
        if (length == 0 || length >= std::uint64_t{1} << 40) refuse(name + " must have lengths");
        n += length;
    }
    return file_.array<double>(tensor(name, n, more));
}

const Tensor& FactArrays::tensor(const std::string& name, std::uint64_t length,
                                 std::initializer_list<std::uint64_t> more) {
    const std::string full = group_ + name;
    if (left_.erase(full) == 0) refuse("the tensor " + printable(full) + " is missing");
    std::vector<std::uint64_t> shape{length};
    shape.insert(shape.end(), more);
    const Tensor& found = file_.tensors.at(full);
    if (length > 0 && found.shape == shape) return found;
    refuse("the tensor " + printable(full) + " has another shape");
}

void FactArrays::require_none() const {
    if (left_.empty()) return;
    refuse("it has the tensor " + printable(*left_.begin()) +
           ", which this version does not know, or not in such a model");
}

}  // namespace hdicore
