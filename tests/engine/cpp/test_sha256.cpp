// test_sha256.cpp: digests of the examples of FIPS 180, whole and in pieces
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <span>
#include <string>

#include "check.hpp"
#include "model_file/sha256.hpp"

using hdicore::Sha256;

namespace {

// Of a text that comes in pieces of so many bytes.
std::string digest(const std::string& text, std::size_t piece) {
    Sha256 state;
    for (std::size_t at = 0; at < text.size(); at += piece) {
        state.update(
            std::as_bytes(std::span(text).subspan(at)).first(std::min(piece, text.size() - at)));
    }
    std::string digits;
    for (const std::byte byte : state.digest()) {
        digits.push_back("0123456789abcdef"[std::to_integer<int>(byte >> 4)]);
        digits.push_back("0123456789abcdef"[std::to_integer<int>(byte & std::byte{15})]);
    }
    return digits;
}

}  // namespace

int main() {
    const std::pair<std::string, std::string> known[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {std::string(1'000'000, 'a'),
         "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    for (const auto& [text, expected] : known) {
        for (const std::size_t piece : {1, 7, 63, 64, 65, 1000, 1 << 20}) {
            CHECK(digest(text, piece) == expected);
        }
    }
    for (std::size_t n = 0; n < 200; ++n)
        CHECK(digest(std::string(n, 'x'), 200) == digest(std::string(n, 'x'), 3));
    return check::finish();
}
