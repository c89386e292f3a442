// test_json.cpp: what is JSON is read and written as it was, and nothing else is read
// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include "check.hpp"
#include "model_file/json.hpp"

using namespace hdicore;

namespace {

std::string sorted(const std::string& text) {
    return JsonDocument(text).root().sorted_text();
}

void values_are_read() {
    const JsonDocument document(
        " { \"b\" : [ 1 , -2.5e-3 , true , null ] ,\n\"a\":\"\\u00e9\\ud83d\\ude00\\n\\\"\" }\t");
    const auto members = document.root().members();
    CHECK(members.size() == 2 && document.root().is_object());
    CHECK(members.at("a").text() == "\xc3\xa9\xf0\x9f\x98\x80\n\"");
    const auto items = members.at("b").items();
    CHECK(items.size() == 4 && items[0].whole() == 1 && items[1].number() == -2.5e-3);
    CHECK(items[2].truth() && items[3].is_null() && !items[3].is_number());
    CHECK(sorted("18446744073709551615") == "18446744073709551615");
    CHECK(JsonDocument("18446744073709551615").root().whole() == ~std::uint64_t{0});
    CHECK(JsonDocument("5e-324").root().number() == 5e-324);
    CHECK(JsonDocument("0.1").root().number() == 0.1);
    CHECK(JsonDocument("{}").root().members().empty());
}

void texts_are_sorted_and_ascii() {
    CHECK(sorted("{\"b\":[],\"a\":{},\"\xc3\xa9\":-0.0}") ==
          "{\"a\": {}, \"b\": [], \"\\u00e9\": -0.0}");
    CHECK(sorted("\"\\/\\b\\f\\t\\r\x7f \xf0\x9f\x98\x80\"") ==
          "\"/\\b\\f\\t\\r\\u007f \\ud83d\\ude00\"");
    CHECK(sorted("[[1,2],\"x\"]") == "[[1, 2], \"x\"]");
}

void numbers_are_written_as_python_does() {
    const char* const pairs[][2] = {{"0.50", "0.5"},
                                    {"-0", "0"},
                                    {"-0e5", "-0.0"},
                                    {"1E2", "100.0"},
                                    {"12.5e1", "125.0"},
                                    {"100", "100"},
                                    {"1e-4", "0.0001"},
                                    {"0.000012", "1.2e-05"},
                                    {"1e15", "1000000000000000.0"},
                                    {"1e16", "1e+16"},
                                    {"123456789012345678.0", "1.2345678901234568e+17"},
                                    {"0.1000000000000000055511151231257827", "0.1"},
                                    {"-0.30000000000000004", "-0.30000000000000004"},
                                    {"3e-324", "5e-324"},
                                    {"2.2250738585072014e-308", "2.2250738585072014e-308"},
                                    // 2^-1017, whose nearest number of 16 digits is too small.
                                    {"7.1202363472230444e-307", "7.120236347223045e-307"},
                                    {"17976931348623157e292", "1.7976931348623157e+308"},
                                    {"9007199254740993", "9007199254740993"}};
    for (const auto& [written, again] : pairs) CHECK(sorted(written) == again);
    CHECK_REFUSED(sorted("[1, 1e400]"), "must be a finite number");
    CHECK(check::accepted([] { sorted(std::string(4300, '7')); }));
    CHECK_REFUSED(sorted(std::string(4301, '7')), "too long");
}

void other_texts_are_refused() {
    for (const char* text : {"",
                             " ",
                             "{",
                             "}",
                             "[1",
                             "[1,]",
                             "{\"a\"}",
                             "{\"a\":}",
                             "{a:1}",
                             "{\"a\":1,}",
                             "tru",
                             "nul",
                             "nan",
                             "NaN",
                             "Infinity",
                             "-",
                             "+1",
                             "01",
                             "1.",
                             ".5",
                             "1e",
                             "1e+",
                             "--1",
                             "1 2",
                             "\"",
                             "\"\\",
                             "\"\\x\"",
                             "\"\\u12\"",
                             "\"\\u12g4\"",
                             "\"\\ud800\"",
                             "\"\\udc00\"",
                             "\"\\ud800\\u0041\"",
                             "\"\n\"",
                             "\"\x80\"",
                             "\"\xc3\"",
                             "\"\xc0\x80\"",
                             "\"\xed\xa0\x80\"",
                             "\"\xf4\x90\x80\x80\"",
                             "\"\xff\"",
                             "'a'",
                             "[1 2]",
                             "/**/1"}) {
        CHECK(!check::accepted([&] { JsonDocument document(text); }));
    }
    CHECK(!check::accepted([] { JsonDocument document(std::string("\"\0\"", 3)); }));
    CHECK_REFUSED(JsonDocument(std::string(200, '[') + std::string(200, ']')), "too deep");
    CHECK(check::accepted(
        [] { JsonDocument document(std::string(60, '[') + std::string(60, ']')); }));
}

void other_types_are_refused() {
    CHECK_REFUSED(JsonDocument("{\"a\":1,\"a\":2}").root().members(), "names \"a\" twice");
    CHECK_REFUSED(JsonDocument("{\"a\":1,\"\\u0061\":2}").root().sorted_text(), "twice");
    CHECK_REFUSED(JsonDocument("[1]").root().members(), "must be an object, got [1]");
    CHECK_REFUSED(JsonDocument("{}").root().items(), "must be a list");
    CHECK_REFUSED(JsonDocument("1").root().text(), "must be a text");
    CHECK_REFUSED(JsonDocument("\"1\"").root().number(), "must be a number");
    CHECK_REFUSED(JsonDocument("1").root().truth(), "must be true or false");
    CHECK_REFUSED(JsonDocument("1e999").root().number(), "must be a finite number");
    for (const char* text : {"-1", "1.0", "1e2", "18446744073709551616", "true", "\"1\""}) {
        CHECK_REFUSED(JsonDocument(text).root().whole(), "must be a whole number");
    }
}

void what_is_printed_is_one_line() {
    CHECK(printable("a\n\x1b[2J\xc3\xa9") == "a??[2J??");
    CHECK(printable(std::string(100, 'a')) == std::string(60, 'a') + "...");
}

}  // namespace

int main() {
    values_are_read();
    texts_are_sorted_and_ascii();
    numbers_are_written_as_python_does();
    other_texts_are_refused();
    other_types_are_refused();
    what_is_printed_is_one_line();
    return check::finish();
}
