// model_file/tensor_file.cpp: the header is not trusted; arrays must tile the file
// SPDX-License-Identifier: BSD-3-Clause
#include "model_file/tensor_file.hpp"

#include <algorithm>
#include <utility>

#include "base/refusal.hpp"
#include "model_file/sha256.hpp"

namespace hdicore {
namespace {

constexpr std::uint64_t format_version = 2;
constexpr std::size_t small = std::size_t{1} << 16;  // bytes whose checksum is always compared

struct ElementType {
    std::string_view name;
    std::string_view text;  // numpy's, which checksums are over
    std::size_t n_bytes;
};
constexpr ElementType element_types[] = {
    {"U8", "|u1", 1},  {"U16", "<u2", 2}, {"U32", "<u4", 4}, {"U64", "<u8", 8},
    {"I32", "<i4", 4}, {"I64", "<i8", 8}, {"F32", "<f4", 4}, {"F64", "<f8", 8},
};

[[noreturn]] void damaged(const std::string& why) {
    refuse("the file is no model file, or is damaged: " + why);
}

const Json& member(const std::map<std::string, Json>& members, const std::string& name) {
    const auto found = members.find(name);
    if (found == members.end()) refuse("it has no " + name);
    return found->second;
}

const ElementType& element_type(const std::string& name) {
    const auto* found = std::find_if(std::begin(element_types), std::end(element_types),
                                     [&](const ElementType& type) { return type.name == name; });
    if (found == std::end(element_types)) refuse("it has the type " + printable(name));
    return *found;
}

// Bytes of an array of this shape; refuses more than there are.
std::size_t size_of(const std::vector<std::uint64_t>& shape, std::size_t n_each,
                    std::size_t n_bytes) {
    std::size_t size = n_each;
    for (const std::uint64_t n : shape) {
        if (n > 0 && size > n_bytes / n) return n_bytes + 1;
        size *= static_cast<std::size_t>(n);
    }
    return size;
}

struct Entry {
    Tensor tensor;
    std::uint64_t begin;
    std::uint64_t end;
};

Entry entry_of(const Json& json, std::span<const std::byte> content) {
    const auto members = json.members();
    const ElementType& type = element_type(member(members, "dtype").text());
    Entry entry{{type.name, {}, {}}, 0, 0};
    for (const Json& n : member(members, "shape").items()) entry.tensor.shape.push_back(n.whole());
    const std::vector<Json> offsets = member(members, "data_offsets").items();
    if (offsets.size() != 2) refuse("data_offsets must be two numbers");
    entry.begin = offsets[0].whole();
    entry.end = offsets[1].whole();
    if (entry.begin > entry.end || entry.end > content.size()) refuse("its range is none");
    const auto n_bytes = static_cast<std::size_t>(entry.end - entry.begin);
    if (size_of(entry.tensor.shape, type.n_bytes, n_bytes) != n_bytes) {
        refuse("its range is not that of its shape");
    }
    entry.tensor.bytes = content.subspan(static_cast<std::size_t>(entry.begin), n_bytes);
    return entry;
}

// Arrays follow each other without a gap, to the end of the file.
void check_tiling(std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges,
                  std::size_t n_bytes) {
    std::sort(ranges.begin(), ranges.end());
    std::uint64_t end = 0;
    for (const auto& [begin, stop] : ranges) {
        if (begin != end) damaged("there is a gap between arrays, or an overlap");
        end = stop;
    }
    if (end != n_bytes) damaged("its arrays do not end where the file ends");
}

std::string digest_of(std::span<const std::byte> bytes) {
    Sha256 state;
    state.update(bytes);
    return state.digest();
}

// numpy's text of a shape.
std::string shape_text(const std::vector<std::uint64_t>& shape) {
    std::string text = "(";
    for (std::size_t i = 0; i < shape.size(); ++i) {
        text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
    }
    return text + (shape.size() == 1 ? ",)" : ")");
}

// The checksum of facts and of all that is known of arrays.
std::string digest_of(const Json& facts, const Tensors& tensors,
                      const std::map<std::string, Json>& digests) {
    Sha256 state;
    state.update(facts.sorted_text());
    for (const auto& [name, tensor] : tensors) {
        const std::string type(element_type(std::string(tensor.type)).text);
        state.update(name + " " + type + " " + shape_text(tensor.shape) + digests.at(name).text());
    }
    return state.digest();
}

void check_version(const Json& facts) {
    const auto members = facts.members();
    const Json& version = member(members, "format_version");
    if (version.is_number() && version.sorted_text() == std::to_string(format_version)) return;
    const auto writer = members.find("hdicore");
    const bool is_older = version.sorted_text() == std::to_string(format_version - 1);
    refuse("the file has format " + printable(version.sorted_text()) + ", written by hdicore " +
           (writer == members.end() ? "?" : printable(writer->second.sorted_text())) +
           ", and this version reads format " + std::to_string(format_version) +
           " of model files: " +
           (is_older ? "make it again, or read it with that version" : "upgrade hdicore"));
}

std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The text of the metadata, and the arrays.
std::pair<std::string, Tensors> read_header(std::span<const std::byte> content,
                                            const std::string& key) {
    constexpr std::size_t n_start = 8;
    if (content.size() < n_start) damaged("it is too short");
    std::uint64_t n_header = 0;
    std::memcpy(&n_header, content.data(), n_start);
    content = content.subspan(n_start);
    if (n_header > content.size() || n_header > JsonDocument::max_bytes) {
        damaged("its header cannot have " + std::to_string(n_header) + " bytes");
    }
    const auto n = static_cast<std::size_t>(n_header);
    const JsonDocument document(text_of(content.first(n)));
    content = content.subspan(n);
    auto header = document.root().members();
    const auto metadata = header.extract("__metadata__");
    if (metadata.empty()) damaged("it has no metadata");
    const auto own = metadata.mapped().members();
    const auto found = own.find(key);
    if (found == own.end()) {
        if (own.contains("hdicore_leaf_index")) {
            refuse("the file holds the leaves of a LeafModel, whose trees it does not know");
        }
        damaged("it holds other tensors");
    }
    Tensors tensors;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
    for (const auto& [name, json] : header) {
        try {
            Entry entry = entry_of(json, content);
            ranges.emplace_back(entry.begin, entry.end);
            tensors.emplace(name, std::move(entry.tensor));
        } catch (const std::invalid_argument& error) {
            damaged("the tensor " + printable(name) + ": " + error.what());
        }
    }
    check_tiling(std::move(ranges), content.size());
    return {found->second.text(), std::move(tensors)};
}

}  // namespace

TensorFile TensorFile::read(std::shared_ptr<const FileBytes> bytes, const std::string& key,
                            bool verified) {
    auto [metadata, tensors] = [&] {
        try {
            return read_header(bytes->view(), key);
        } catch (const std::invalid_argument& error) {
            const std::string why = error.what();
            if (why.starts_with("the file")) throw;
            damaged(why);
        }
    }();
    const auto document = std::make_shared<const JsonDocument>(std::move(metadata));
    const auto members = document->root().members();
    const Json facts = member(members, "facts");
    check_version(facts);
    const auto digests = member(members, "arrays").members();
    const auto same_names = [](const auto& a, const auto& b) { return a.first == b.first; };
    if (!std::equal(digests.begin(), digests.end(), tensors.begin(), tensors.end(), same_names)) {
        refuse("the file is damaged: its checksums are not those of its arrays");
    }
    if (member(members, "sha256").text() != digest_of(facts, tensors, digests)) {
        refuse("the file is damaged: its checksum does not match its contents");
    }
    for (const auto& [name, tensor] : tensors) {
        if (!verified && tensor.bytes.size() > small) continue;
        if (digests.at(name).text() == digest_of(tensor.bytes)) continue;
        refuse("the file is damaged: the checksum of " + printable(name) + " does not match");
    }
    return {std::move(bytes), document, facts, std::move(tensors)};
}

}  // namespace hdicore
