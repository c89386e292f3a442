// json_text.cpp: fuzzes the parser of the header of model files with texts
// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include "input.hpp"
#include "model_file/json.hpp"

namespace {

using hdicore::Json;
using hdicore::JsonDocument;

// Asks a value for everything that it may be.
void read(const Json& json) {
    fuzz::refusal([&] { json.truth(); });
    fuzz::refusal([&] { json.text(); });
    fuzz::refusal([&] { json.whole(); });
    fuzz::refusal([&] { json.number(); });
    fuzz::refusal([&] {
        for (const Json& item : json.items()) read(item);
    });
    fuzz::refusal([&] {
        for (const auto& [name, member] : json.members()) read(member);
    });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(data, data + size);
    std::string sorted;
    const std::string why = fuzz::refusal([&] {
        const JsonDocument document(text);
        read(document.root());
        sorted = document.root().sorted_text();
    });
    if (!why.empty()) return 0;
    // What was read and written is read again as the same.
    const JsonDocument again(sorted);
    REQUIRE(again.root().sorted_text() == sorted);
    return 0;
}
