// model_file/file_bytes.hpp: the bytes of a file, mapped or copied, and whether it changed since
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace hdicore {

// A mapped file must be replaced by another one under its name, never written to in place: what the
// checks saw may be gone then.
class FileBytes {
  public:
    // Maps the file where the system can; copies it otherwise, or if it is not to be `mapped`.
    // `path` is UTF-8 on Windows. Throws std::runtime_error if it cannot be read.
    FileBytes(const std::string& path, bool mapped);
    ~FileBytes();
    FileBytes(const FileBytes&) = delete;
    FileBytes& operator=(const FileBytes&) = delete;

    std::span<const std::byte> view() const noexcept;

    // Throws std::runtime_error if a mapped file was written to. Takes a microsecond.
    void require_unchanged() const;

  private:
    struct System;
    std::unique_ptr<System> system_;
};

}  // namespace hdicore
