// model_file/json.hpp: a strict parser of JSON whose values are read where they stand in the text
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hdicore {

class JsonDocument;

// A value in a document that outlives it. What is asked for and is of another type is a
// std::invalid_argument.
class Json {
  public:
    bool is_null() const noexcept;
    bool is_text() const noexcept;
    bool is_number() const noexcept;
    bool is_whole_number() const noexcept;  // without a fraction and an exponent
    bool is_list() const noexcept;
    bool is_object() const noexcept;

    bool truth() const;
    // UTF-8.
    std::string text() const;
    // A whole number without a sign.
    std::uint64_t whole() const;
    // The nearest double, which is finite.
    double number() const;
    std::vector<Json> items() const;
    // By name. Refuses two of one name.
    std::map<std::string, Json> members() const;

    // The text that Python's encoder with sorted names and ASCII alone makes of the value: numbers
    // with the fewest digits that are read as them. Refuses numbers that are not finite.
    std::string sorted_text() const;

  private:
    friend class JsonDocument;
    Json(const JsonDocument& document, std::uint32_t node) : document_(&document), node_(node) {}
    std::string_view token() const noexcept;
    [[noreturn]] void refuse(const char* expected) const;
    // Calls use(child) for each value of a list; of an object names and values by turns.
    template <class Use>
    void each_child(const Use& use) const;
    void append_sorted(std::string& text) const;

    const JsonDocument* document_;
    std::uint32_t node_;
};

// A text and where its values stand in it: 12 bytes for each.
class JsonDocument {
  public:
    static constexpr std::size_t max_bytes = 100'000'000;
    static constexpr int max_depth = 64;
    static constexpr std::size_t max_whole_digits = 4300;  // with a sign; as Python's

    // Throws std::invalid_argument unless the text is one value of JSON in valid UTF-8.
    explicit JsonDocument(std::string text);
    JsonDocument(const JsonDocument&) = delete;
    JsonDocument& operator=(const JsonDocument&) = delete;

    Json root() const noexcept { return {*this, 0}; }

  private:
    friend class Json;
    class Parser;
    struct Node {
        std::uint32_t begin;  // of the value in the text
        std::uint32_t end;    // behind its last character
        std::uint32_t next;   // node behind the value and all in it
    };

    std::string text_;
    std::vector<Node> nodes_;  // each value before those in it
};

// A text from a file as one line of ASCII for an error.
std::string printable(std::string_view text);

}  // namespace hdicore
