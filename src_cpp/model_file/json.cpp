// model_file/json.cpp: one pass finds where values stand; texts and numbers are decoded when read
// SPDX-License-Identifier: BSD-3-Clause
#include "model_file/json.hpp"

#include <charconv>
#include <cmath>
#include <iomanip>
#include <locale>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace hdicore {
namespace {

[[noreturn]] void malformed(const char* what, std::size_t at) {
    throw std::invalid_argument(std::string("its JSON ") + what + " at byte " + std::to_string(at));
}

bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

int hexadecimal(char c) noexcept {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool is_surrogate(std::uint32_t code) noexcept {
    return code >= 0xd800 && code < 0xe000;
}

void append_utf8(std::uint32_t code, std::string& text) {
    const auto put = [&](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
    const auto tail = [&](int shift) { put(0x80 | (code >> shift & 0x3f)); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xc0 | code >> 6);
        tail(0);
    } else if (code < 0x10000) {
        put(0xe0 | code >> 12);
        tail(6);
        tail(0);
    } else {
        put(0xf0 | code >> 18);
        tail(12);
        tail(6);
        tail(0);
    }
}

// The code at `at`, which moves behind it; nothing else than shortest forms is UTF-8.
std::uint32_t next_code(std::string_view text, std::size_t& at) {
    const auto byte = [&](std::size_t i) {
        return i < text.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]))
                               : 0u;
    };
    const std::size_t first = at;
    const std::uint32_t head = byte(at++);
    if (head < 0x80) return head;
    const int n_tail = head >= 0xf0 ? 3 : head >= 0xe0 ? 2 : head >= 0xc0 ? 1 : 0;
    std::uint32_t code = head & (0x3fu >> n_tail);
    for (int i = 0; i < n_tail; ++i) {
        if ((byte(at) & 0xc0) != 0x80) malformed("is not UTF-8", first);
        code = code << 6 | (byte(at++) & 0x3f);
    }
    constexpr std::uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    if (n_tail == 0 || head >= 0xf8 || code < least[n_tail] || code > 0x10ffff ||
        is_surrogate(code)) {
        malformed("is not UTF-8", first);
    }
    return code;
}

// The number of the escape \uXXXX whose digits begin at `at`, which moves behind them.
std::uint32_t unicode_escape(std::string_view text, std::size_t& at) {
    std::uint32_t code = 0;
    for (int i = 0; i < 4; ++i) {
        const int digit = at < text.size() ? hexadecimal(text[at]) : -1;
        if (digit < 0) malformed("has a bad escape", at);
        code = code << 4 | static_cast<std::uint32_t>(digit);
        ++at;
    }
    return code;
}

// The character of the escape behind whose backslash `at` is; moves behind it.
std::uint32_t escaped(std::string_view text, std::size_t& at) {
    const std::size_t first = at;
    const char c = at < text.size() ? text[at++] : '\0';
    constexpr std::string_view names = "\"\\/bfnrt";
    constexpr std::string_view meant = "\"\\/\b\f\n\r\t";
    if (const auto found = names.find(c); found != names.npos) {
        return static_cast<std::uint32_t>(static_cast<unsigned char>(meant[found]));
    }
    if (c != 'u') malformed("has a bad escape", first);
    const std::uint32_t high = unicode_escape(text, at);
    if (!is_surrogate(high)) return high;
    if (high >= 0xdc00 || text.substr(at, 2) != "\\u") malformed("has half a character", first);
    at += 2;
    const std::uint32_t low = unicode_escape(text, at);
    if (low < 0xdc00 || low >= 0xe000) malformed("has half a character", first);
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

// What stands between the quotes of a text.
std::string decoded(std::string_view quoted) {
    std::string text;
    for (std::size_t at = 0; at < quoted.size();) {
        if (quoted[at] == '\\') {
            append_utf8(escaped(quoted, ++at), text);
        } else {
            append_utf8(next_code(quoted, at), text);
        }
    }
    return text;
}

void append_unit(std::uint32_t unit, std::string& text) {
    constexpr char digits[] = "0123456789abcdef";
    text += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) text.push_back(digits[unit >> shift & 0xf]);
}

void append_quoted(std::string_view utf8, std::string& text) {
    constexpr std::string_view special = "\"\\\b\f\n\r\t";
    constexpr std::string_view names = "\"\\bfnrt";
    text.push_back('"');
    for (std::size_t at = 0; at < utf8.size();) {
        const std::uint32_t code = next_code(utf8, at);
        const auto found = code < 0x80 ? special.find(static_cast<char>(code)) : special.npos;
        if (found != special.npos) {
            text.push_back('\\');
            text.push_back(names[found]);
        } else if (code >= 0x20 && code < 0x7f) {
            text.push_back(static_cast<char>(code));
        } else if (code < 0x10000) {
            append_unit(code, text);
        } else {
            append_unit(0xd800 + ((code - 0x10000) >> 10), text);
            append_unit(0xdc00 + ((code - 0x10000) & 0x3ff), text);
        }
    }
    text.push_back('"');
}

// The nearest double; nothing if it is not finite.
std::optional<double> parsed(const std::string& text) {
    double value = 0;
    std::istringstream stream{text};
    stream.imbue(std::locale::classic());
    stream >> value;
    return stream.fail() || !std::isfinite(value) ? std::nullopt : std::optional(value);
}

// The nearest number of n digits, as d.ddde-05.
std::string rounded(double value, int n) {
    std::ostringstream stream;
    stream.imbue(std::locale::classic());
    stream << std::scientific << std::setprecision(n - 1) << value;
    return stream.str();
}

// The next greater number of as many digits; 9.99 has none.
std::string raised(std::string text) {
    for (std::size_t i = text.find('e'); i-- > 0;) {
        if (text[i] == '.') continue;
        if (text[i]++ != '9') break;
        text[i] = '0';
    }
    return text;
}

// The fewest digits that are read as the positive number.
std::string shortest(double value) {
    constexpr int always_read = 15;  // digits that are read again if fewer are
    for (int n = parsed(rounded(value, always_read)) == value ? 1 : always_read + 1;; ++n) {
        const std::string nearest = rounded(value, n);
        if (parsed(nearest) == value) return nearest;
        // From a power of two the doubles above are twice as far as those below.
        const std::string above = raised(nearest);
        if (parsed(above) == value) return above;
    }
}

// What Python's repr is of a finite number. std::to_chars of it is missing in old macOS.
std::string repr(double value) {
    const std::string sign = std::signbit(value) ? "-" : "";
    if (value == 0) return sign + "0.0";
    const std::string text = shortest(std::fabs(value));
    const std::size_t end = text.find('e');
    const int exponent = std::stoi(text.substr(end + 1));
    if (exponent < -4 || exponent >= 16) return sign + text;
    std::string digits = text.substr(0, end);
    if (digits.size() > 1) digits.erase(1, 1);
    if (exponent < 0) {
        return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
    }
    const auto n_whole = static_cast<std::size_t>(exponent) + 1;
    if (digits.size() <= n_whole) digits.resize(n_whole + 1, '0');
    return sign + digits.insert(n_whole, 1, '.');
}

}  // namespace

// Recursive descent, whose depth is limited.
class JsonDocument::Parser {
  public:
    explicit Parser(JsonDocument& document) : text_(document.text_), nodes_(document.nodes_) {}

    void parse() {
        value(0);
        skip_space();
        if (at_ != text_.size()) malformed("goes on", at_);
    }

  private:
    char peek() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }

    void skip_space() noexcept {
        while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') ++at_;
    }

    bool take(char c) noexcept {
        skip_space();
        if (peek() != c) return false;
        ++at_;
        return true;
    }

    void expect(char c) {
        if (!take(c)) malformed("lacks a sign", at_);
    }

    void value(int depth) {
        if (depth > max_depth) malformed("is too deep", at_);
        skip_space();
        const std::size_t node = nodes_.size();
        nodes_.push_back({static_cast<std::uint32_t>(at_), 0, 0});
        const char c = peek();
        if (c == '{' || c == '[') {
            ++at_;
            children(c == '{', depth + 1);
        } else if (c == '"') {
            string();
        } else if (c == '-' || is_digit(c)) {
            number();
        } else {
            word();
        }
        nodes_[node].end = static_cast<std::uint32_t>(at_);
        nodes_[node].next = static_cast<std::uint32_t>(nodes_.size());
    }

    void children(bool named, int depth) {
        const char close = named ? '}' : ']';
        if (take(close)) return;
        do {
            if (named) {
                skip_space();
                if (peek() != '"') malformed("lacks a name", at_);
                value(depth);
                expect(':');
            }
            value(depth);
        } while (take(','));
        expect(close);
    }

    void string() {
        ++at_;
        while (peek() != '"') {
            if (static_cast<unsigned char>(peek()) < 0x20) malformed("has a text without end", at_);
            if (peek() == '\\') {
                escaped(text_, ++at_);
            } else {
                next_code(text_, at_);
            }
        }
        ++at_;
    }

    void digits() {
        if (!is_digit(peek())) malformed("has a bad number", at_);
        while (is_digit(peek())) ++at_;
    }

    void number() {
        const std::size_t first = at_;
        if (peek() == '-') ++at_;
        if (peek() == '0') {
            ++at_;
        } else {
            digits();
        }
        if (at_ - first > max_whole_digits) malformed("has a number that is too long", first);
        if (peek() == '.') {
            ++at_;
            digits();
        }
        if (peek() == 'e' || peek() == 'E') {
            ++at_;
            if (peek() == '+' || peek() == '-') ++at_;
            digits();
        }
    }

    void word() {
        for (const std::string_view known : {"null", "true", "false"}) {
            if (text_.compare(at_, known.size(), known) != 0) continue;
            at_ += known.size();
            return;
        }
        malformed("has no value", at_);
    }

    const std::string& text_;
    std::vector<Node>& nodes_;
    std::size_t at_ = 0;
};

JsonDocument::JsonDocument(std::string text) : text_(std::move(text)) {
    if (text_.size() > max_bytes) throw std::invalid_argument("its JSON is too long");
    Parser(*this).parse();
}

std::string_view Json::token() const noexcept {
    const JsonDocument::Node& node = document_->nodes_[node_];
    return std::string_view(document_->text_).substr(node.begin, node.end - node.begin);
}

void Json::refuse(const char* expected) const {
    throw std::invalid_argument(std::string("must be ") + expected + ", got " + printable(token()));
}

template <class Use>
void Json::each_child(const Use& use) const {
    const auto& nodes = document_->nodes_;
    for (std::uint32_t child = node_ + 1; child < nodes[node_].next; child = nodes[child].next) {
        use(Json(*document_, child));
    }
}

bool Json::is_null() const noexcept {
    return token() == "null";
}
bool Json::is_text() const noexcept {
    return token().front() == '"';
}
bool Json::is_number() const noexcept {
    return token().front() == '-' || is_digit(token().front());
}
bool Json::is_whole_number() const noexcept {
    return is_number() && token().find_first_of(".eE") == std::string_view::npos;
}
bool Json::is_list() const noexcept {
    return token().front() == '[';
}
bool Json::is_object() const noexcept {
    return token().front() == '{';
}

bool Json::truth() const {
    if (token() != "true" && token() != "false") refuse("true or false");
    return token() == "true";
}

std::string Json::text() const {
    if (!is_text()) refuse("a text");
    return decoded(token().substr(1, token().size() - 2));
}

std::uint64_t Json::whole() const {
    std::uint64_t value = 0;
    const char* const end = token().data() + token().size();
    const auto [last, error] = std::from_chars(token().data(), end, value);
    if (error != std::errc() || last != end) refuse("a whole number below 2**64");
    return value;
}

double Json::number() const {
    if (!is_number()) refuse("a number");
    const std::optional<double> value = parsed(std::string(token()));
    if (!value) refuse("a finite number");
    return *value;
}

std::vector<Json> Json::items() const {
    if (!is_list()) refuse("a list");
    std::vector<Json> found;
    each_child([&](const Json& child) { found.push_back(child); });
    return found;
}

std::map<std::string, Json> Json::members() const {
    if (!is_object()) refuse("an object");
    std::map<std::string, Json> found;
    std::optional<Json> name;
    each_child([&](const Json& child) {
        if (!name) {
            name = child;
        } else if (!found.emplace(name->text(), child).second) {
            throw std::invalid_argument("its JSON names " + printable(name->token()) + " twice");
        } else {
            name.reset();
        }
    });
    return found;
}

void Json::append_sorted(std::string& text) const {
    if (is_object()) {
        text.push_back('{');
        const char* between = "";
        for (const auto& [name, child] : members()) {
            text += between;
            append_quoted(name, text);
            text += ": ";
            child.append_sorted(text);
            between = ", ";
        }
        text.push_back('}');
    } else if (is_list()) {
        text.push_back('[');
        const char* between = "";
        each_child([&](const Json& child) {
            text += between;
            child.append_sorted(text);
            between = ", ";
        });
        text.push_back(']');
    } else if (is_text()) {
        append_quoted(this->text(), text);
    } else if (is_number() && !is_whole_number()) {
        text += repr(number());
    } else {
        text += token() == "-0" ? "0" : token();
    }
}

std::string Json::sorted_text() const {
    std::string text;
    append_sorted(text);
    return text;
}

std::string printable(std::string_view text) {
    constexpr std::size_t max_length = 60;
    std::string line(text.substr(0, max_length));
    for (char& c : line) {
        if (c < 0x20 || c > 0x7e) c = '?';
    }
    return text.size() > max_length ? line + "..." : line;
}

}  // namespace hdicore
