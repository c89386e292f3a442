// test_file_bytes.cpp: files are mapped or copied, and what is written to them later is seen
// SPDX-License-Identifier: BSD-3-Clause
#include <filesystem>
#include <fstream>
#include <string>

#include "check.hpp"
#include "model_file/file_bytes.hpp"

using namespace hdicore;

namespace {

template <class Call>
bool fails(const Call& call) {
    try {
        call();
    } catch (const std::runtime_error&) {
        return true;
    }
    return false;
}

std::string text_of(const FileBytes& bytes) {
    return {reinterpret_cast<const char*>(bytes.view().data()), bytes.view().size()};
}

}  // namespace

int main() {
    const std::filesystem::path folder = std::filesystem::temp_directory_path() / "hdicore_bytes";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    const std::string path = (folder / "file").string();
    const auto write = [&](const std::string& text) { std::ofstream(path) << text; };

    CHECK(fails([&] { FileBytes bytes(path, true); }));
    CHECK(fails([&] { FileBytes bytes(folder.string(), false); }));
    write("");
    for (const bool mapped : {false, true}) CHECK(text_of(FileBytes(path, mapped)).empty());

    write("some text");
    const FileBytes mapping(path, true), copy(path, false);
    CHECK(text_of(mapping) == "some text" && text_of(copy) == "some text");
    mapping.require_unchanged();
    write("some longer text");
    copy.require_unchanged();
    CHECK(text_of(copy) == "some text");
#if !defined(_WIN32)
    CHECK(fails([&] { mapping.require_unchanged(); }));
#endif
    std::filesystem::remove_all(folder);
    return check::finish();
}
