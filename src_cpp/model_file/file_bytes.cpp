// model_file/file_bytes.cpp: mmap where there is one, and a plain read elsewhere
// SPDX-License-Identifier: BSD-3-Clause
#include "model_file/file_bytes.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <vector>

#if !defined(_WIN32)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace hdicore {
namespace {

[[noreturn]] void cannot(const std::string& what, const std::string& why) {
    throw std::runtime_error("cannot " + what + " the model file: " + why);
}

}  // namespace

#if defined(_WIN32)

struct FileBytes::System {
    std::vector<std::byte> copy;
};

FileBytes::FileBytes(const std::string& path, bool) : system_(std::make_unique<System>()) {
    const std::filesystem::path name(std::u8string(path.begin(), path.end()));
    std::error_code error;
    const auto size = std::filesystem::file_size(name, error);
    if (error) cannot("open", error.message());
    std::ifstream file(name, std::ios::binary);
    if (!file) cannot("open", "it cannot be read");
    system_->copy.resize(static_cast<std::size_t>(size));
    file.read(reinterpret_cast<char*>(system_->copy.data()), static_cast<std::streamsize>(size));
    if (static_cast<std::uintmax_t>(file.gcount()) != size) cannot("read", "it ends too early");
}

std::span<const std::byte> FileBytes::view() const noexcept {
    return system_->copy;
}

void FileBytes::require_unchanged() const {}

#else

namespace {

// What writing to a file changes: bytes, and seconds and nanoseconds of the last time.
using Identity = std::array<std::int64_t, 3>;

std::string reason() {
    return std::generic_category().message(errno);
}

Identity identity_of(int descriptor) {
    struct stat status;
    if (fstat(descriptor, &status) != 0) cannot("look at", reason());
    if (!S_ISREG(status.st_mode)) cannot("open", "it is no regular file");
#if defined(__APPLE__)
    const struct timespec written = status.st_mtimespec;
#else
    const struct timespec written = status.st_mtim;
#endif
    return {status.st_size, written.tv_sec, written.tv_nsec};
}

// A descriptor that is closed with its owner.
struct Descriptor {
    explicit Descriptor(const std::string& path) : number(open(path.c_str(), flags)) {
        if (number < 0) cannot("open", reason());
    }
    ~Descriptor() { close(number); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    // A pipe without a writer would wait for one.
    static constexpr int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
    int number;
};

std::vector<std::byte> copy_of(int descriptor, std::size_t n_bytes) {
    std::vector<std::byte> bytes(n_bytes);
    std::size_t n_read = 0;
    while (n_read < n_bytes) {
        const ssize_t n = ::read(descriptor, bytes.data() + n_read, n_bytes - n_read);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) cannot("read", reason());
        if (n == 0) cannot("read", "it ends too early");
        n_read += static_cast<std::size_t>(n);
    }
    return bytes;
}

}  // namespace

struct FileBytes::System {
    explicit System(const std::string& path) : file(path), identity(identity_of(file.number)) {}
    ~System() {
        if (mapping != MAP_FAILED) munmap(mapping, n_bytes());
    }
    System(const System&) = delete;
    System& operator=(const System&) = delete;

    std::size_t n_bytes() const noexcept { return static_cast<std::size_t>(identity[0]); }

    Descriptor file;
    Identity identity;
    void* mapping = MAP_FAILED;
    std::vector<std::byte> copy;
};

FileBytes::FileBytes(const std::string& path, bool mapped)
    : system_(std::make_unique<System>(path)) {
    const int descriptor = system_->file.number;
    const std::size_t n_bytes = system_->n_bytes();
    if (n_bytes == 0) return;
    if (!mapped) {
        system_->copy = copy_of(descriptor, n_bytes);
        if (identity_of(descriptor) != system_->identity) {
            cannot("read", "it was written to meanwhile");
        }
        return;
    }
    system_->mapping = mmap(nullptr, n_bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    if (system_->mapping == MAP_FAILED) cannot("map", reason());
}

std::span<const std::byte> FileBytes::view() const noexcept {
    if (system_->mapping == MAP_FAILED) return system_->copy;
    return {static_cast<const std::byte*>(system_->mapping), system_->n_bytes()};
}

void FileBytes::require_unchanged() const {
    if (system_->mapping == MAP_FAILED) return;
    if (identity_of(system_->file.number) == system_->identity) return;
    throw std::runtime_error(
        "the model file was written to in place while it was in use: open it again, and replace "
        "model files by renaming, or open them as hdicore_copied");
}

#endif

FileBytes::~FileBytes() = default;

}  // namespace hdicore
