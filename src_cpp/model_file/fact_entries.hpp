// model_file/fact_entries.hpp: entries of facts and their arrays, read as what they must be
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "model_file/json.hpp"
#include "model_file/tensor_file.hpp"

namespace hdicore {

// By name. All below throw std::invalid_argument at what is missing, unknown or of another type.
using Members = std::map<std::string, Json>;

// The entries of an object, which must be these.
Members entries(Members found, std::initializer_list<const char*> names);
Members entries(const Json& json, std::initializer_list<const char*> names);

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

bool truth(const Members& members, const char* name);
std::string text(const Members& members, const char* name);
// Below 2^63.
std::uint64_t whole(const Members& members, const char* name);
// NaN and infinity, too. Whole numbers must be below 2^53.
double real_of(const Json& json);
double real(const Members& members, const char* name);
double not_negative(const Members& members, const char* name);
// From 0 to 1.
double share(const Members& members, const char* name);
// Above 0 and below 1.
double coverage_of(const Members& members, const char* name);
std::vector<Json> items(const Members& members, const char* name);
// Whether an entry is an object, or null.
bool is_there(const Members& members, const char* name);

bool all_finite(std::span<const double> values);
bool has_nan(std::span<const double> values);
// Each above the one before; not if one is NaN.
bool ascend(std::span<const double> values);

// The arrays whose names begin with a group's, each of which must be taken.
class FactArrays {
  public:
    FactArrays(const TensorFile& file, const std::string& group);

    bool is_empty() const noexcept { return left_.empty(); }

    // An array whose length is in its place among the facts, by other axes.
    template <class T = double>
    Array<T> take(const std::string& name, const Json& length,
                  std::initializer_list<std::uint64_t> more = {}) {
        return file_.array<T>(tensor(name, length.whole(), more));
    }
    // Arrays of these lengths, one after the other.
    Array<double> take_joined(const std::string& name, std::span<const std::uint64_t> lengths,
                              std::initializer_list<std::uint64_t> more);

    void require_none() const;

  private:
    const Tensor& tensor(const std::string& name, std::uint64_t length,
                         std::initializer_list<std::uint64_t> more);

    const TensorFile& file_;
    std::string group_;
    std::set<std::string> left_;
};

}  // namespace hdicore
