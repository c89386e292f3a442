// model_file/sha256.cpp: 64 rounds for each block of 64 bytes, as the standard writes them
// SPDX-License-Identifier: BSD-3-Clause
#include "model_file/sha256.hpp"

#include <algorithm>
#include <bit>

namespace hdicore {
namespace {

constexpr std::uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

}  // namespace

void Sha256::take(const std::byte* block) noexcept {
    std::uint32_t words[64];
    for (std::size_t i = 0; i < 16; ++i) {
        words[i] = 0;
        for (std::size_t k = 0; k < 4; ++k) {
            words[i] = words[i] << 8 | std::to_integer<std::uint32_t>(block[4 * i + k]);
        }
    }
    for (std::size_t i = 16; i < 64; ++i) {
        const std::uint32_t a = words[i - 15], b = words[i - 2];
        words[i] = words[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + words[i - 7] +
                   (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t i = 0; i < 64; ++i) {
        const std::uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                                    ((e & f) ^ (~e & g)) + constants[i] + words[i];
        const std::uint32_t second =
            (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + first;
        d = c;
        c = b;
        b = a;
        a = first + second;
    }
    const std::uint32_t added[] = {a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < state_.size(); ++i) state_[i] += added[i];
}

void Sha256::update(std::span<const std::byte> bytes) noexcept {
    std::size_t n_rest = n_bytes_ % block_bytes;
    n_bytes_ += bytes.size();
    while (!bytes.empty()) {
        if (n_rest == 0 && bytes.size() >= block_bytes) {
            take(bytes.data());
            bytes = bytes.subspan(block_bytes);
            continue;
        }
        const std::size_t n = std::min(block_bytes - n_rest, bytes.size());
        std::copy_n(bytes.data(), n, rest_.data() + n_rest);
        bytes = bytes.subspan(n);
        n_rest += n;
        if (n_rest < block_bytes) return;
        take(rest_.data());
        n_rest = 0;
    }
}

Sha256::Digest Sha256::digest() {
    const std::uint64_t n_bits = 8 * n_bytes_;
    std::array<std::byte, 2 * block_bytes> end{std::byte{0x80}};
    const std::size_t n_end = 1 + (2 * block_bytes - 9 - n_bytes_ % block_bytes) % block_bytes;
    for (std::size_t i = 0; i < 8; ++i) {
        end[n_end + i] = static_cast<std::byte>(n_bits >> (56 - 8 * i));
    }
    update(std::span(end).first(n_end + 8));
    Digest digest;
    for (std::size_t i = 0; i < digest.size(); ++i) {
        digest[i] = static_cast<std::byte>(state_[i / 4] >> (24 - i % 4 * 8));
    }
    return digest;
}

}  // namespace hdicore
