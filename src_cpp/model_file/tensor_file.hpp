// model_file/tensor_file.hpp: the arrays of a file by name, with their checksums
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/refusal.hpp"
#include "base/types.hpp"
#include "model_file/file_bytes.hpp"

namespace hdicore {

// An array of the file, C-ordered.
struct Tensor {
    std::string_view type;  // such as F64
    std::vector<std::uint64_t> shape;
    std::span<const std::byte> bytes;
};
using Tensors = std::map<std::string, Tensor, std::less<>>;

// The name that the format has for the type of a number.
template <class T>
constexpr std::string_view type_name() {
    constexpr bool is_float = std::is_floating_point_v<T>;
    constexpr std::string_view floats[] = {"F32", "F64"}, wholes[] = {"U8", "U16", "U32", "U64"};
    if constexpr (is_float) return floats[sizeof(T) == 8];
    if constexpr (std::is_signed_v<T>) return sizeof(T) == 8 ? "I64" : "I32";
    return wholes[sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3];
}

struct TensorFile {
    std::shared_ptr<const FileBytes> bytes;  // never null
    Tensors tensors;

    // Reads the header, and compares checksums of the header and of small arrays; of large ones,
    // too, if they are to be `verified`. Throws std::invalid_argument if the file is no model file,
    // of another version, or damaged.
    static TensorFile read(std::shared_ptr<const FileBytes> bytes, bool verified);

    // An array of Ts as one of Elements, which consist of them; it keeps the file open. A copy if
    // it does not lie as an Element must.
    template <class T, class Element = T>
    Array<Element> array(const Tensor& tensor) const {
        if (tensor.type != type_name<T>()) {
            refuse("must be " + std::string(type_name<T>()) + ", got " + std::string(tensor.type));
        }
        const std::size_t n = tensor.bytes.size() / sizeof(Element);
        if (reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % alignof(Element) == 0) {
            return {{reinterpret_cast<const Element*>(tensor.bytes.data()), n}, bytes};
        }
        std::vector<Element> copy(n);
        if (n > 0) std::memcpy(copy.data(), tensor.bytes.data(), n * sizeof(Element));
        return Array<Element>(std::move(copy));
    }
};

// A text from a file as one line of ASCII for an error, cut where it is longer.
std::string printable(std::string_view text, std::size_t max_length = 60);

}  // namespace hdicore
