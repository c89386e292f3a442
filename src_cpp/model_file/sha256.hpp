// model_file/sha256.hpp: the checksum of FIPS 180-4 that model files are written with
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hdicore {

class Sha256 {
  public:
    using Digest = std::array<std::byte, 32>;

    void update(std::span<const std::byte> bytes) noexcept;
    Digest digest();  // ends the use

  private:
    static constexpr std::size_t block_bytes = 64;
    void take(const std::byte* block) noexcept;

    std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<std::byte, block_bytes> rest_{};  // bytes that fill no block yet
    std::uint64_t n_bytes_ = 0;
};

}  // namespace hdicore
