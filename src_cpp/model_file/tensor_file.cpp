// model_file/tensor_file.cpp: the header is not trusted; arrays must tile the file
// SPDX-License-Identifier: BSD-3-Clause
#include "model_file/tensor_file.hpp"

#include <algorithm>
#include <utility>

#include "base/refusal.hpp"
#include "model_file/sha256.hpp"

namespace hdicore {
namespace {

constexpr std::uint64_t format_version = 3;
constexpr std::size_t n_start = 8;                        // bytes before the header
constexpr std::size_t max_header = 100'000'000;           // bytes; as safetensors itself
constexpr std::size_t small = std::size_t{1} << 16;       // bytes that are always compared
constexpr std::size_t n_digest = sizeof(Sha256::Digest);  // bytes

// A letter and bits.
constexpr std::string_view element_types[] = {"U8",  "U16", "U32", "U64",
                                              "I32", "I64", "F32", "F64"};

[[noreturn]] void damaged(const std::string& why) {
    refuse("the file is no model file, or is damaged: " + why);
}

bool is_in_name(char c) noexcept {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           c == '.';
}

// The text of a header, read from its beginning. It is JSON as safetensors writes it: without
// blanks, and with names that need no escapes.
class HeaderText {
  public:
    explicit HeaderText(std::string_view text) : left_(text) {}

    bool skip(std::string_view literal) noexcept {
        if (!left_.starts_with(literal)) return false;
        left_.remove_prefix(literal.size());
        return true;
    }
    void expect(std::string_view literal) {
        if (!skip(literal)) damaged("its header is not as safetensors writes it");
    }
    template <class Fits>
    std::string_view take(const Fits& fits) {
        const auto end = std::ranges::find_if_not(left_, fits);
        const auto taken = left_.substr(0, static_cast<std::size_t>(end - left_.begin()));
        left_.remove_prefix(taken.size());
        return taken;
    }
    std::string_view name() { return take(is_in_name); }
    std::uint64_t whole() {
        const auto digits = take([](char c) { return c >= '0' && c <= '9'; });
        const bool has_zeros = digits.size() > 1 && digits.front() == '0';
        if (digits.empty() || digits.size() > 18 || has_zeros) damaged("a number is none");
        std::uint64_t number = 0;
        for (const char c : digits) number = 10 * number + static_cast<std::uint64_t>(c - '0');
        return number;
    }
    std::string_view left() const noexcept { return left_; }

  private:
    std::string_view left_;
};

// What stands behind `name` in facts of an older file, which were JSON within JSON.
std::string_view older_fact(std::string_view header, std::string_view name) {
    const std::string start = "\\\"" + std::string(name) + "\\\": ";
    const std::size_t at = header.find(start);
    if (at == header.npos) return "?";
    HeaderText value(header.substr(at + start.size()));
    value.skip("\\\"");
    return value.left().substr(0, value.left().find_first_of("\\,}"));
}

// Refuses versions of the format that are not this one.
void check_version(std::string_view written, std::string_view header) {
    HeaderText versions(written);
    const auto word = [&] { return versions.take([](char c) { return c > ' ' && c <= '~'; }); };
    const bool is_older = written.starts_with("{");
    const auto format = is_older ? older_fact(header, "format_version") : word();
    versions.skip(" ");
    const auto writer = is_older ? older_fact(header, "hdicore") : word();
    if (format == std::to_string(format_version) && !writer.empty() && versions.skip(" ") &&
        !word().empty() && versions.left().empty()) {
        return;
    }
    refuse("the file has format " + printable(format) + ", written by hdicore " +
           printable(writer) + ", and this version reads format " + std::to_string(format_version) +
           " of model files: " +
           (is_older ? "make it again, or read it with that version" : "upgrade hdicore"));
}

// The next array, whose data is a part of `content`.
std::pair<std::string, Tensor> next_tensor(HeaderText& header, std::span<const std::byte> content) {
    std::string name(header.name());
    header.expect(R"(":{"dtype":")");
    const auto type = header.name();
    const auto* known = std::ranges::find(element_types, type);
    if (known == std::end(element_types)) damaged("it has the type " + printable(type));
    Tensor tensor{*known, {}, {}};
    header.expect(R"(","shape":[)");
    std::size_t size = HeaderText(known->substr(1)).whole() / 8;
    const auto limit = content.size();
    while (!header.skip("]")) {
        if (!tensor.shape.empty()) header.expect(",");
        const std::uint64_t n = header.whole();
        size = n > 0 && size > limit / n ? limit + 1 : size * static_cast<std::size_t>(n);
        tensor.shape.push_back(n);
    }
    header.expect(R"(,"data_offsets":[)");
    const std::uint64_t begin = header.whole();
    header.expect(",");
    const std::uint64_t end = header.whole();
    header.expect("]}");
    if (begin > end || end > limit || end - begin != size) {
        damaged("the range of " + printable(name) + " is not that of its shape");
    }
    tensor.bytes = content.subspan(static_cast<std::size_t>(begin), size);
    return {std::move(name), std::move(tensor)};
}

// Arrays follow each other without a gap, to the end of the file.
void check_tiling(const Tensors& tensors, std::span<const std::byte> content) {
    std::vector<std::span<const std::byte>> ranges;
    for (const auto& [name, tensor] : tensors) ranges.push_back(tensor.bytes);
    const auto place = [](const auto& a) { return std::pair(a.data(), a.size()); };
    std::ranges::sort(ranges, {}, place);
    const std::byte* end = content.data();
    for (const auto& range : ranges) {
        if (range.data() != end) damaged("there is a gap between arrays, or an overlap");
        end = range.data() + range.size();
    }
    if (end != content.data() + content.size()) damaged("its arrays do not end where it ends");
}

Sha256::Digest digest_of(std::span<const std::byte> bytes) {
    Sha256 state;
    state.update(bytes);
    return state.digest();
}

// Compares the checksums in the array `digests`: one of the header and of the others, which are
// those of the arrays in the order of their names.
void check_digests(const Tensors& tensors, std::span<const std::byte> head, bool verified) {
    const auto found = tensors.find("digests");
    const std::uint64_t n = tensors.size();
    if (found == tensors.end() || found->second.type != "U8" ||
        found->second.shape != std::vector<std::uint64_t>{n, n_digest}) {
        refuse("the file is damaged: its checksums are not those of its arrays");
    }
    auto digests = found->second.bytes;
    const auto is_next = [&](const Sha256::Digest& digest) {
        const auto own = digests.first(n_digest);
        digests = digests.subspan(n_digest);
        return std::ranges::equal(own, digest);
    };
    Sha256 state;
    state.update(head);
    state.update(digests.subspan(n_digest));
    if (!is_next(state.digest())) {
        refuse("the file is damaged: its checksum does not match its contents");
    }
    for (const auto& [name, tensor] : tensors) {
        if (name == "digests") continue;
        if (!verified && tensor.bytes.size() > small) {
            digests = digests.subspan(n_digest);
        } else if (!is_next(digest_of(tensor.bytes))) {
            refuse("the file is damaged: the checksum of " + printable(name) + " does not match");
        }
    }
}

}  // namespace

TensorFile TensorFile::read(std::shared_ptr<const FileBytes> bytes, bool verified) {
    const auto all = bytes->view();
    if (all.size() < n_start) damaged("it is too short");
    std::uint64_t n_header = 0;
    std::memcpy(&n_header, all.data(), n_start);
    if (n_header > all.size() - n_start || n_header > max_header) {
        damaged("its header cannot have " + std::to_string(n_header) + " bytes");
    }
    const auto head = all.first(n_start + static_cast<std::size_t>(n_header));
    const auto content = all.subspan(head.size());
    const std::string_view text(reinterpret_cast<const char*>(head.data()) + n_start,
                                static_cast<std::size_t>(n_header));
    HeaderText header(text);
    header.expect(R"({"__metadata__":{")");
    const auto found = header.name();
    if (found == "hdicore_leaf_index") {
        refuse("the file holds the leaves of a LeafModel, whose trees it does not know");
    }
    if (found != "hdicore_model") damaged("it holds other tensors");
    header.expect(R"(":")");
    check_version(header.take([](char c) { return c >= ' ' && c != '"' && c != '\\'; }), text);
    header.expect(R"("})");
    TensorFile file{std::move(bytes), {}};
    while (header.skip(R"(,")")) {
        auto tensor = next_tensor(header, content);
        const std::string name = tensor.first;
        if (!file.tensors.insert(std::move(tensor)).second) damaged(name + " is there twice");
    }
    header.expect("}");
    header.take([](char c) { return c == ' '; });
    if (!header.left().empty()) damaged("its header is not as safetensors writes it");
    check_tiling(file.tensors, content);
    check_digests(file.tensors, head, verified);
    return file;
}

std::string printable(std::string_view text, std::size_t max_length) {
    std::string line(text.substr(0, max_length));
    for (char& c : line) {
        if (c < 0x20 || c > 0x7e) c = '?';
    }
    return text.size() > max_length ? line + "..." : line;
}

}  // namespace hdicore
